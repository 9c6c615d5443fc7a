import { expect, test } from "vitest";
import { type Deposit, insertDeposits, sumDeposits } from "../../../signer/records.ts";
import { createStore, inStoreTransaction } from "../../../signer/store.ts";

const asset = `eip155:31337/erc20:0x${"a1".repeat(20)}`;
const at = new Date("2026-03-01T10:00:00Z");

function deposit(logIndex: number, merchantId: string): Deposit {
  const place = { chain: "eip155:31337", txHash: "0x01", logIndex, blockNumber: 1 };
  return { ...place, asset, amount: 10n, payer: "0x02", merchantId, paymentId: `pay_${logIndex}` };
}

test("a log that a request names twice, or that is recorded already, counts once in its merchant's funds", () => {
  const store = createStore(":memory:", { command: "init", at });
  const record = (...deposits: Deposit[]) => inStoreTransaction(store, () => insertDeposits(store, deposits, at));
  record(deposit(1, "mrch_1"), deposit(2, "mrch_2"), deposit(1, "mrch_1"), deposit(3, "mrch_1"));
  record(deposit(3, "mrch_1"), deposit(4, "mrch_1"));
  const funds = ["mrch_1", "mrch_2"].map((merchantId) => sumDeposits(store, { merchantId, asset }));
  expect(funds).toEqual([30n, 10n]);
});
