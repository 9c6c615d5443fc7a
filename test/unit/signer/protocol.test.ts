import { expect, test } from "vitest";
import { depositsRequest, payoutsResponse } from "../../../signer/protocol.ts";

test("a worker ignores what a newer signer adds to a response", () => {
  const results = [
    { ok: true, signature: "0x12", signedAt: 1 },
    { ok: false, reason: "paused", detail: "", until: 2 },
  ];
  expect(payoutsResponse.parse({ results, version: 2 })).toEqual({
    results: [
      { ok: true, signature: "0x12" },
      { ok: false, reason: "paused", detail: "" },
    ],
  });
});

test("the signer refuses a request with a member that it does not know", () => {
  const deposit = { asset: "eip155:1/erc20:0xa1", merchantId: "m", paymentId: "p", txHash: "0x1", logIndex: 0 };
  expect(depositsRequest.safeParse({ deposits: [deposit] }).success).toBe(true);
  expect(depositsRequest.safeParse({ deposits: [{ ...deposit, approved: true }] }).success).toBe(false);
});
