import { expect, test } from "vitest";
import { readApiConfig } from "../../../runtime/config.ts";
import { testKeys } from "../../support/test-deps.ts";

const env = {
  DATABASE_URL: "postgres://localhost/pay",
  REDIS_URL: "redis://localhost",
  NETWORKS_FILE: "networks.json",
  ...testKeys,
  PUBLIC_URL: "https://pay.example.test",
};

test.each(["http://operator.example.test/terms", "operator.example.test/terms", "javascript:alert(1)", "https://"])(
  "the configuration rejects %s as a URL of the terms or the privacy policy and names both variables without their values",
  (url) => {
    const read = () => readApiConfig({ ...env, TERMS_URL: url, PRIVACY_URL: url });
    expect(read).toThrow("TERMS_URL: expected an https URL");
    expect(read).toThrow("PRIVACY_URL: expected an https URL");
    expect(read).not.toThrow(url);
  },
);

test("the URLs of the terms and the privacy policy use https or are unset", () => {
  const { TERMS_URL } = readApiConfig({ ...env, TERMS_URL: "https://operator.example.test/terms" });
  expect(TERMS_URL).toBe("https://operator.example.test/terms");
  expect(readApiConfig({ ...env, TERMS_URL: "" }).TERMS_URL).toBeUndefined();
});

test("the checkout page may link back to known wallets, or to the apps that the operator lists instead", () => {
  expect(readApiConfig(env).APP_SCHEMES.has("metamask")).toBe(true);
  const { APP_SCHEMES } = readApiConfig({ ...env, APP_SCHEMES: "MyWallet, other-wallet" });
  expect([...APP_SCHEMES]).toEqual(["mywallet", "other-wallet"]);
});

test.each([
  "https",
  "javascript",
  "mywallet,ethereum",
  "solana",
  "x-safari-https",
  "microsoft-edge",
  "ms-appinstaller",
  "my wallet",
  "a://",
])(
  "the configuration rejects the scheme list %s: an entry is no scheme, or a system, a browser or a payment standard uses it",
  (schemes) => {
    expect(() => readApiConfig({ ...env, APP_SCHEMES: schemes })).toThrow(
      "APP_SCHEMES: expected a comma-separated list of app schemes",
    );
  },
);
