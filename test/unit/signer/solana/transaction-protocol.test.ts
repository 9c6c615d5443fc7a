import { expect, test } from "vitest";
import { payoutTransactionRequest } from "../../../../signer/solana/transaction-protocol.ts";

const address = "1".repeat(32);
const request = (markerRent: string) => ({
  asset: `solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1/token:${address}`,
  feePayer: address,
  nonceAccount: address,
  nonce: address,
  markerRent,
  budget: { units: 50_000, unitPrice: "1" },
  payouts: [{ memo: `0x${"ab".repeat(32)}`, destination: address, amount: "1", makeAccount: false }],
});

test("the signer refuses a rent that no marker needs, because a lane pays it and gets it back a month later", () => {
  expect(payoutTransactionRequest.safeParse(request("1447680")).success).toBe(true);
  expect(payoutTransactionRequest.safeParse(request("9900000000")).error?.issues[0]?.path).toEqual(["markerRent"]);
});
