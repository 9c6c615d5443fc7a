import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { readApiConfig, readWorkerConfig } from "../../../runtime/config.ts";
import { newEncryptionKeys } from "../../../runtime/encryption.ts";
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

test.each([
  ["redis://u:hush@a,b", "several hosts need redis+cluster: or redis+sentinel:"],
  ["redis+cluster://u:hush@a,b/1", "a cluster has only the database 0"],
  ["redis+sentinel://u:hush@a,b", "redis+sentinel: needs the parameter master"],
  ["redis+sentinel://a?master=pay&hush=1", "a parameter is unknown; master, sentinel_username, sentinel_password are"],
  ["redis://u:hush@a?family=6", "a parameter is unknown; none is"],
  ["redis://u:hush@a/pay", "the path is not the number of a database"],
  ["redis://u:hush@1@a", "special characters of passwords percent-encoded"],
  ["redis://u:hush%@a", "special characters of passwords percent-encoded"],
  ["redis://u:hush@a:99999", "expected redis://host"],
  ["redis://u:hush@a:0", "expected redis://host"],
  ["redis+cluster://u:hush@a,b:0", "expected redis://host"],
  ["redis+cluster://u:hush@a, b", "expected redis://host"],
  ["redis://u:hush @a", "expected redis://host"],
  ["redis://u:hush@a\t", "expected redis://host"],
  ["redis://u:hush@", "expected redis://host"],
  ["redis-cluster://u:hush@a", "expected redis://host"],
  ["postgres://u:hush@a", "expected redis://host"],
])("the configuration rejects the Redis URL %s, says why and does not print it", (url, reason) => {
  const read = () => readApiConfig({ ...env, REDIS_URL: url });
  expect(read).toThrow(/^ {2}REDIS_URL: /m);
  expect(read).toThrow(reason);
  expect(read).not.toThrow("hush");
});

test("the URLs of the terms and the privacy policy use https or are unset", () => {
  const { TERMS_URL } = readApiConfig({ ...env, TERMS_URL: "https://operator.example.test/terms" });
  expect(TERMS_URL).toBe("https://operator.example.test/terms");
  expect(readApiConfig({ ...env, TERMS_URL: "" }).TERMS_URL).toBeUndefined();
});

test("tracing is off by default, and a bad header for the collector is named without its value", async () => {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_TRACES_SAMPLER_ARG: share } = readWorkerConfig(env);
  expect([endpoint, share]).toEqual([undefined, 1]);
  const headers = { ...env, OTEL_EXPORTER_OTLP_HEADERS: "authorization: hidden" };
  expect(() => readWorkerConfig(headers)).toThrow("OTEL_EXPORTER_OTLP_HEADERS: expected name=value");
  expect(() => readWorkerConfig(headers)).not.toThrow("hidden");
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

test.each(["", "a:short", "no-name", `${testKeys.BUYER_DATA_PUBLIC_KEY}x`, `a b:${"A".repeat(43)}=`])(
  "the configuration rejects %j as a key and does not print it",
  (key) => {
    const read = () => readApiConfig({ ...env, BUYER_DATA_PUBLIC_KEY: key });
    expect(read).toThrow(/BUYER_DATA_PUBLIC_KEY: (expected name:key|is missing)/);
    if (key !== "") expect(read).not.toThrow(key);
    const readWorker = () =>
      readWorkerConfig({ ...env, WEBHOOK_PRIVATE_KEYS: `${testKeys.WEBHOOK_PRIVATE_KEYS},${key}x` });
    expect(readWorker).toThrow("WEBHOOK_PRIVATE_KEYS: expected name:key");
  },
);

test("history leaves after 30 days, unless a table names other days or forever", () => {
  const all = { attempt: 30, webhook_event: 30, event: 30, payment_option: 30 };
  expect(readWorkerConfig(env).RETENTION_DAYS).toEqual(all);
  const given = readWorkerConfig({ ...env, RETENTION_DAYS: "event=forever, webhook_event=90" });
  expect(given.RETENTION_DAYS).toEqual({ ...all, event: null, webhook_event: 90 });
  const same = (days: number | null) => ({ attempt: days, webhook_event: days, event: days, payment_option: days });
  expect(readWorkerConfig({ ...env, RETENTION_DAYS: "forever" }).RETENTION_DAYS).toEqual(same(null));
  expect(readWorkerConfig({ ...env, RETENTION_DAYS: "90" }).RETENTION_DAYS).toEqual(same(90));
  expect(readWorkerConfig({ ...env, RETENTION_DAYS: "" }).RETENTION_DAYS).toEqual(all);
});

test.each([
  ["webhook_event=31", "RETENTION_DAYS.event: expected at least the days of webhook_event"],
  ["attempt=forever", "RETENTION_DAYS.payment_option: expected at least the days of attempt"],
  ["event=6,webhook_event=6", "RETENTION_DAYS.event: "],
  ["transfer=30", "RETENTION_DAYS: "],
  ["event", "RETENTION_DAYS.event: "],
  ["6", "RETENTION_DAYS.attempt: "],
])("the configuration rejects %s as a retention", (text, error) => {
  expect(() => readWorkerConfig({ ...env, RETENTION_DAYS: text })).toThrow(error);
});

describe("variables in files", () => {
  const file = async (text: string) => {
    const dir = await mkdtemp(join(tmpdir(), "secrets "));
    onTestFinished(() => rm(dir, { recursive: true, force: true }));
    const path = join(dir, "one");
    await writeFile(path, text);
    return path;
  };
  const { DATABASE_URL: url, ...withoutUrl } = env;

  test("a process reads a variable that is not set from the file that NAME_FILE names", async () => {
    const read = readApiConfig({ ...withoutUrl, DATABASE_URL: "", DATABASE_URL_FILE: await file(`${url}\n`) });
    expect(read.DATABASE_URL).toBe(url);
  });

  test("private keys can be one to a line, so that a file of the new key and the old one rotates them", async () => {
    const [newer, older] = [await newEncryptionKeys("new"), await newEncryptionKeys("old")];
    const text = `${newer.privateKey}\n${older.privateKey}\n`;
    const { WEBHOOK_PRIVATE_KEYS: keys } = readWorkerConfig({
      ...env,
      WEBHOOK_PRIVATE_KEYS: "",
      WEBHOOK_PRIVATE_KEYS_FILE: await file(text),
    });
    expect(keys?.map(({ id }) => id)).toEqual(["new", "old"]);
  });

  test("the configuration rejects a variable that is set twice and a file that cannot be read, and prints no value", async () => {
    const both = { ...env, DATABASE_URL_FILE: await file("postgres://pay:hidden@localhost/pay") };
    expect(() => readApiConfig(both)).toThrow("DATABASE_URL and DATABASE_URL_FILE are both set; set one");
    expect(() => readApiConfig({ ...withoutUrl, DATABASE_URL_FILE: "/nowhere/url" })).toThrow(
      "DATABASE_URL_FILE: /nowhere/url cannot be read (ENOENT)",
    );
    const wrong = { ...withoutUrl, DATABASE_URL_FILE: await file("hidden") };
    expect(() => readApiConfig(wrong)).toThrow("DATABASE_URL: ");
    expect(() => readApiConfig(wrong)).not.toThrow("hidden");
  });
});
