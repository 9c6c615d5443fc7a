import { expect, test } from "vitest";
import { buildTransaction, buildTransfer, computeBudgetInstructions } from "../../../chains/solana/build-payment.ts";
import { newSolanaKey } from "../../../local/solana-client.ts";
import { type Evidence, findViolations, invariants } from "../../faults/payment-invariants.ts";
import type { SolanaScan } from "../../faults/solana-scan.ts";

const [treasury = "", lane = "", payer = "", shop = "", mint = "", blockhash = ""] = Array.from(
  { length: 6 },
  () => newSolanaKey().address,
);
const chain = "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp";
const asset = `${chain}/token:${mint}`;
const sol = `${chain}/slip44:501`;
const inward = { token: mint, payer, receiver: treasury, amount: 5n, nonce: "0x1" };
const outgoing = { token: mint, payer: treasury, receiver: shop, amount: 5n, nonce: "0x2" };

/** Returns the bytes of a signed transaction with these movements, each with its memo; `unitPrice` in micro-lamports. */
function bytesOf(movements: readonly (typeof inward)[], unitPrice = 0n): string {
  const instructions = movements.flatMap(({ payer, receiver, amount, nonce: memo }) => {
    const accounts = { feePayer: lane, payer, receiver, mint, program: "token" as const, decimals: 6 };
    return buildTransfer({ ...accounts, amount, memo, makeReceiverAccount: false });
  });
  const bytes = buildTransaction(
    lane,
    [...computeBudgetInstructions({ units: 100_000, unitPrice }), ...instructions],
    blockhash,
  );
  return `0x${Buffer.from(bytes).toString("hex")}`;
}

/** Returns the evidence of one payment on Solana that was paid and paid out; the payout's first transaction expired. */
function makeCorrectRun() {
  const entry = (groupId: number, kind: string, account: string, amount: bigint, asset: string) => {
    return { groupId, kind, txHash: "in", logIndex: 0, account, asset, amount };
  };
  const money = (groupId: number, account: string, amount: bigint) => entry(groupId, "payment", account, amount, asset);
  const gas = (groupId: number, kind: string, account: string, amount: bigint) =>
    entry(groupId, kind, account, amount, sol);
  const row = { family: "solana", lane, replacement: 0, maxFee: 0n, fee: 10_000n, state: "final" };
  const status = { paymentId: "pay_1", by: "status" as const, status: "succeeded", isFinal: true, txId: "in" };
  const scan: SolanaScan = {
    transfers: [
      { txHash: "in", logIndex: 2, token: mint, from: payer, to: treasury, amount: 5n, nonce: "0x1", at: 90 },
      { txHash: "out", logIndex: 3, token: mint, from: treasury, to: shop, amount: 5n, nonce: "0x2", at: 95 },
    ],
    transactions: [
      { hash: "in", lane, fee: 10_000n, spent: 10_000n, failed: false },
      { hash: "out", lane, fee: 10_000n, spent: 2_010_000n, failed: false },
    ],
    held: { [mint]: 0n },
    lamports: { [lane]: 7_980_000n },
  };
  return {
    evm: undefined,
    solana: { scan, treasury, feeCeiling: 10n },
    rows: {
      payments: [
        {
          id: "pay_1",
          mode: "live",
          state: "succeeded",
          txId: "in",
          amount: 5n,
          expiresAt: 100,
          optionId: "opt_1",
          settlementId: "stl_1",
        },
      ],
      options: [{ id: "opt_1", paymentId: "pay_1", kind: "spl", ...inward }],
      attempts: [{ id: "att_1", paymentId: "pay_1", state: "verified" }],
      transfers: [
        { id: "trf_1", purpose: "payment", paymentId: "pay_1", settlementId: null, ...inward, state: "confirmed" },
        {
          id: "trf_2",
          purpose: "settlement",
          paymentId: null,
          settlementId: "stl_1",
          ...outgoing,
          state: "confirmed",
        },
      ],
      transactions: [
        { ...row, nonce: 0, hash: "in", bytes: bytesOf([inward], 100n) },
        { ...row, nonce: 1, hash: "dead", bytes: bytesOf([outgoing]), fee: null, state: "expired" },
        { ...row, nonce: 2, hash: "out", bytes: bytesOf([outgoing]) },
      ],
      settlements: [{ id: "stl_1", mode: "live", state: "paid", amount: 5n, asset, destination: `${chain}:${shop}` }],
      cursors: [{ chain, finalNumber: 12 }],
      entries: [
        ...[money(1, "treasury", 5n), money(1, "payable:mrch_1", -5n)],
        ...[money(2, "payable:mrch_1", 5n), money(2, "in_transit", -5n)],
        ...[money(3, "in_transit", 5n), money(3, "treasury", -5n)],
        ...[gas(4, "gas", "gas_spent", 10_000n), gas(4, "gas", `lane:${lane}`, -10_000n)],
        ...[gas(5, "gas", "gas_spent", 10_000n), gas(5, "gas", `lane:${lane}`, -10_000n)],
        ...[gas(6, "rent", "rent", 2_000_000n), gas(6, "rent", `lane:${lane}`, -2_000_000n)],
        ...[
          gas(7, "lane_deposit", `lane:${lane}`, 10_000_000n),
          gas(7, "lane_deposit", "operator_capital", -10_000_000n),
        ],
      ],
      balances: [{ merchantId: "mrch_1", asset, amount: 0n }],
      dust: [],
      failedBookings: [],
      mixed: [],
    },
    history: {
      payments: [
        {
          paymentId: "pay_1",
          mode: "live",
          kind: "plain",
          ends: ["succeeded"],
          confirmed: true,
          endsAfterExpiry: false,
          createdAt: 0,
          forgotten: false,
          left: true,
        },
      ],
      statuses: [{ ...status, begunAt: 5, endedAt: 9 }],
      creations: [],
      contractViolations: [],
      lost: [],
    },
    heights: { [chain]: 12 },
  } satisfies Evidence as Evidence & { solana: { scan: SolanaScan } };
}

test("a correct run on Solana violates no invariant", () => {
  expect(findViolations(makeCorrectRun())).toEqual([]);
});

test("a payout that was signed again at a higher price violates no invariant", () => {
  const run = makeCorrectRun();
  Object.assign(at(run.rows.transactions, 1), { nonce: 2, state: "replaced" });
  Object.assign(at(run.rows.transactions, 2), { replacement: 1 });
  expect(findViolations(run)).toEqual([]);
});

/** Returns one row of a list, which the test then corrupts. */
function at<T>(rows: readonly T[], index = 0): T {
  const row = rows[index];
  if (row === undefined) throw new Error("there is no row");
  return row;
}

type Run = Pick<Evidence, "rows" | "history"> & { scan: SolanaScan };

const planted: [keyof typeof invariants, string, (run: Run) => unknown][] = [
  [
    "one use",
    "a payment with two transfers",
    ({ scan }) => scan.transfers.push({ ...at(scan.transfers), txHash: "x" }),
  ],
  ["one use", "a payment whose slot a rollback removed", ({ scan }) => scan.transfers.shift()],
  ["one use", "a payment that names another transaction", ({ rows }) => (at(rows.payments).txId = "x")],
  ["no lost money", "money for a payment that has expired", ({ rows }) => (at(rows.payments).state = "expired")],
  ["no lost money", "money without a memo", ({ scan }) => (at(scan.transfers).nonce = null)],
  [
    "payouts",
    "a payout that was made twice",
    ({ scan }) => scan.transfers.push({ ...at(scan.transfers, 1), txHash: "x" }),
  ],
  ["no lost money", "a payout without a settlement", ({ scan }) => (at(scan.transfers, 1).nonce = "0x3")],
  ["in time", "an expired payment that was paid in time", ({ rows }) => (at(rows.payments).state = "expired")],
  ["watching", "a stopped watcher", ({ rows }) => (at(rows.cursors).finalNumber = 11)],
  ["ledger", "a treasury that holds more than is booked", ({ scan }) => (scan.held[mint] = 1n)],
  ["relayers", "bytes that were sent and never stored", ({ scan }) => (at(scan.transactions).hash = "x")],
  [
    "relayers",
    "a transaction that was marked expired but landed",
    ({ rows }) => (at(rows.transactions).state = "expired"),
  ],
  [
    "relayers",
    "a transaction that is final in its row but not on the chain",
    ({ rows }) => (at(rows.transactions, 1).state = "final"),
  ],
  [
    "relayers",
    "a transaction that was marked replaced, with a nonce that no final one has",
    ({ rows }) => (at(rows.transactions, 1).state = "replaced"),
  ],
  [
    "relayers",
    "a transaction that was marked replaced but landed",
    ({ rows }) => (at(rows.transactions).state = "replaced"),
  ],
  ["relayers", "a fee that was booked too low", ({ rows }) => (at(rows.transactions).fee = 5_000n)],
  ["relayers", "a rent that was not booked", ({ rows }) => (at(rows.entries, 11).amount = 0n)],
  ["relayers", "a deposit that the lane does not have", ({ scan }) => (scan.lamports[lane] = 7_970_000n)],
  ["relayers", "a priority above the ceiling", ({ rows }) => (at(rows.transactions).bytes = bytesOf([inward], 1_000n))],
  [
    "one signing",
    "a buyer's transfer in a second transaction, although that one expired",
    ({ rows }) => (at(rows.transactions, 1).bytes = bytesOf([inward])),
  ],
  ["one signing", "a payout in two live transactions", ({ rows }) => (at(rows.transactions, 1).state = "accepted")],
  [
    "answers",
    "a reported final state that differs from the row",
    ({ history }) => history.statuses.map((one) => Object.assign(one, { status: "expired" })),
  ],
];

test.each(planted)("the check %s finds %s", (name, _what, plant) => {
  const run = makeCorrectRun();
  plant({ ...run, scan: run.solana.scan });
  expect(invariants[name]?.(run)).not.toEqual([]);
});
