import { expect, test } from "vitest";
import { deriveNonce } from "../../../chains/natural-key.ts";

test("the natural key differs by deployment, purpose, payment and merchant", () => {
  const nonces = [
    deriveNonce("shop", ["payment", "pay_1"]),
    deriveNonce("shop2", ["payment", "pay_1"]),
    deriveNonce("shop", ["payment", "pay_2"]),
    deriveNonce("shop", ["settlement", "pay_1"]),
    deriveNonce("shop", ["settlement", "mrch_1", "asset", "1"]),
    deriveNonce("shop", ["settlement", "mrch_1", "asset", "2"]),
    deriveNonce("shop", ["settlement", "mrch_2", "asset", "1"]),
    deriveNonce("shop", ["settlement", "mrch_1", "asset", "11"]),
    deriveNonce("shop", ["settlement", "mrch_1", "asset1", "1"]),
  ];
  expect(new Set(nonces).size).toBe(nonces.length);
  for (const nonce of nonces) expect(nonce).toMatch(/^0x[0-9a-f]{64}$/);
});

test("the natural key is deterministic, so that signing again cannot pay twice", () => {
  expect(deriveNonce("shop", ["payment", "pay_1"])).toBe(deriveNonce("shop", ["payment", "pay_1"]));
});
