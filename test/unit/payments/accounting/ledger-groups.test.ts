import { expect, test } from "vitest";
import { paymentGroup, unmatchedGroup } from "../../../../payments/accounting/ledger-groups.ts";
import { settlementBegunGroup, settlementPaidGroup } from "../../../../payments/accounting/payout-groups.ts";

const place = { chain: "eip155:1", block_number: 7, block_id: "0xb", tx_hash: "0xt", log_index: 3 } as const;
const movement = { id: "trf_1", asset: "a", amount: 5n, ...place };

const groups = [
  paymentGroup(movement, { merchantId: "mrch_1" }),
  settlementBegunGroup({ id: "stl_1", asset: "a", amount: 5n, merchantId: "mrch_1" }),
  settlementPaidGroup({ ...movement, id: "trf_2" }),
];

test("every booking sums to zero, and the three bookings of a payment leave every account at zero", () => {
  const totals = new Map<string, bigint>();
  for (const { entries } of groups) {
    expect(entries.reduce((sum, entry) => sum + entry.amount, 0n)).toBe(0n);
    for (const { account, amount } of entries) totals.set(account, (totals.get(account) ?? 0n) + amount);
  }
  expect(Object.fromEntries(totals)).toEqual({ treasury: 0n, "payable:mrch_1": 0n, in_transit: 0n });
});

test("a booking of an on-chain movement names its log, and the other bookings name none", () => {
  expect(groups.map(({ onChain }) => onChain)).toEqual([place, undefined, place]);
});

test("every booking has a unique key", () => {
  expect(new Set(groups.map(({ kind, subject }) => `${kind} ${subject}`)).size).toBe(groups.length);
});

test("an unmatched movement into or out of the treasury is an exception, and a movement from the treasury to itself is not", () => {
  const chain = { chain: "eip155:1", treasury: "0xours" };
  const group = (payer: string, receiver: string) =>
    unmatchedGroup(chain as never, { ...place, token: "0xa", payer, receiver, amount: 5n } as never);
  const entries = (amount: bigint) => [
    { account: "treasury", asset: "eip155:1/erc20:0xa", amount },
    { account: "exceptions", asset: "eip155:1/erc20:0xa", amount: -amount },
  ];
  expect(group("0xstranger", "0xours")?.entries).toEqual(entries(5n));
  expect(group("0xours", "0xstranger")?.entries).toEqual(entries(-5n));
  expect(group("0xours", "0xours")).toBeUndefined();
});
