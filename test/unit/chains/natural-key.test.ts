import { expect, test } from "vitest";
import { deriveNonce, paymentKey, refundKey, returnKey, settlementKey } from "../../../chains/natural-key.ts";

const payment = paymentKey({ merchantId: "mrch_1", paymentId: "pay_1" });

test("the natural key differs by deployment, purpose, payment and merchant", () => {
  const settlement = { merchantId: "mrch_1", asset: "asset", number: 1 };
  const refund = { merchantId: "mrch_1", paymentId: "pay_1", number: 1 };
  const nonces = [
    deriveNonce("shop", payment),
    deriveNonce("shop2", payment),
    deriveNonce("shop", paymentKey({ merchantId: "mrch_1", paymentId: "pay_2" })),
    deriveNonce("shop", paymentKey({ merchantId: "mrch_2", paymentId: "pay_1" })),
    deriveNonce("shop", settlementKey(settlement)),
    deriveNonce("shop", settlementKey({ ...settlement, number: 2 })),
    deriveNonce("shop", settlementKey({ ...settlement, merchantId: "mrch_2" })),
    deriveNonce("shop", settlementKey({ ...settlement, number: 11 })),
    deriveNonce("shop", settlementKey({ ...settlement, asset: "asset1" })),
    deriveNonce("shop", refundKey(refund)),
    deriveNonce("shop", refundKey({ ...refund, merchantId: "mrch_2" })),
    deriveNonce("shop", refundKey({ ...refund, number: 2 })),
    deriveNonce("shop", returnKey({ chain: "eip155:1", txHash: "0x1", logIndex: 1 })),
  ];
  expect(new Set(nonces).size).toBe(nonces.length);
  for (const nonce of nonces) expect(nonce).toMatch(/^0x[0-9a-f]{64}$/);
});

test("the natural key of a payment begins with the second of its id", () => {
  const paymentId = `pay_6a000001${"ab".repeat(12)}`;
  const nonces = ["mrch_1", "mrch_2"].map((merchantId) => deriveNonce("shop", paymentKey({ merchantId, paymentId })));
  for (const nonce of nonces) expect(nonce).toMatch(/^0x6a000001[0-9a-f]{56}$/);
  expect(nonces[0]).not.toBe(nonces[1]);
});

test("the natural key is deterministic, so that signing again cannot pay twice", () => {
  expect(deriveNonce("shop", payment)).toBe(deriveNonce("shop", payment));
});
