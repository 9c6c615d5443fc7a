import { serializeTransaction } from "viem";
import { expect, test } from "vitest";
import type { ChainScan } from "../../faults/evm-scan.ts";
import { type Evidence, findViolations, invariants } from "../../faults/payment-invariants.ts";

const treasury = "0x00000000000000000000000000000000000000aa";
const lane = "0x00000000000000000000000000000000000000bb";
const payer = "0x00000000000000000000000000000000000000cc";
const shop = "0x00000000000000000000000000000000000000dd";
const token = "0x00000000000000000000000000000000000000ee";
const asset = `eip155:31337/erc20:${token}`;
const gwei = 1_000_000_000n;

const bytesOf = (fee: bigint, data: `0x${string}` = "0x01") =>
  serializeTransaction({ chainId: 31_337, type: "eip1559", nonce: 0, to: token, data, maxFeePerGas: fee });

/** Returns the evidence of one payment that was paid and paid out, under one nonce that was replaced once. */
function makeCorrectRun(): Evidence {
  const inward = { token, payer, receiver: treasury, amount: 5n, nonce: "0x1" };
  const outgoing = { token, payer: treasury, receiver: shop, amount: 5n, nonce: "0x2" };
  const payment = { endsAfterExpiry: false, createdAt: 0, forgotten: false, left: true };
  const status = { paymentId: "pay_1", by: "status" as const, status: "succeeded", isFinal: true, txId: "0xt" };
  const entry = (groupId: number, account: string, amount: bigint) => {
    return { groupId, kind: "payment", txHash: "0xt", logIndex: 1, account, asset, amount };
  };
  const paymentRow = {
    id: "pay_1",
    mode: "live" as const,
    state: "succeeded",
    txId: "0xt",
    amount: 5n,
    expiresAt: 100,
  };
  const transactionRow = { family: "eip155", lane, nonce: 0, maxFee: gwei, fee: null, state: "final" };
  const chain = {
    transfers: [
      { txHash: "0xt", logIndex: 1, token, from: payer, to: treasury, amount: 5n, nonce: "0x1", at: 90 },
      { txHash: "0xt", logIndex: 3, token, from: treasury, to: shop, amount: 5n, nonce: "0x2", at: 95 },
    ],
    uses: [
      { token, authorizer: payer, nonce: "0x1" },
      { token, authorizer: treasury, nonce: "0x2" },
    ],
    transactions: [{ hash: "0xt", from: lane, nonce: 0, paid: gwei, gasUsed: 90_000n, input: "0x01" }],
    counts: { [lane]: 1 },
    held: { [token]: 0n },
  };
  return {
    evm: { scan: chain, treasury, feeCeiling: 2n * gwei },
    solana: undefined,
    rows: {
      payments: [{ ...paymentRow, optionId: "opt_1", settlementId: "stl_1" }],
      options: [{ id: "opt_1", paymentId: "pay_1", kind: "eip3009", ...inward }],
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
        { ...transactionRow, replacement: 0, hash: "0xu", bytes: bytesOf(gwei), state: "replaced" },
        { ...transactionRow, replacement: 1, hash: "0xt", bytes: bytesOf(2n * gwei), maxFee: 2n * gwei },
      ],
      settlements: [
        { id: "stl_1", mode: "live", state: "paid", amount: 5n, asset, destination: `eip155:31337:${shop}` },
      ],
      cursors: [{ chain: "eip155:31337", finalNumber: 12 }],
      entries: [
        ...[entry(1, "treasury", 5n), entry(1, "payable:mrch_1", -5n)],
        ...[entry(2, "payable:mrch_1", 5n), entry(2, "in_transit", -5n)],
        ...[entry(3, "in_transit", 5n), entry(3, "treasury", -5n)],
      ],
      balances: [{ merchantId: "mrch_1", asset, amount: 0n }],
      dust: [],
      failedBookings: [],
      mixed: [],
    },
    history: {
      payments: [{ paymentId: "pay_1", mode: "live", kind: "plain", ends: ["succeeded"], confirmed: true, ...payment }],
      statuses: [
        { ...status, by: "confirm", begunAt: 0, endedAt: 5, status: "processing", isFinal: false, txId: null },
        { ...status, begunAt: 5, endedAt: 9 },
        { ...status, begunAt: 10, endedAt: 11 },
      ],
      creations: [
        { key: "live a", body: "{}", httpStatus: 201, answer: "pay_1", at: 1 },
        { key: "live a", body: "{}", httpStatus: 201, answer: "pay_1", at: 1 },
        { key: "live a", body: '{"other":1}', httpStatus: 409, answer: "", at: 2 },
      ],
      contractViolations: [],
      lost: [],
    },
    heights: { "eip155:31337": 12 },
  };
}

test("a correct run violates no invariant", () => {
  expect(findViolations(makeCorrectRun())).toEqual([]);
});

/** Returns the first row of a list, which the test then corrupts. */
function first<T>(rows: readonly T[]): T {
  const [row] = rows;
  if (row === undefined) throw new Error("there is no row");
  return row;
}
const last = <T>(rows: readonly T[]): T => first(rows.slice(-1));

type Run = Pick<Evidence, "rows" | "history" | "heights"> & { chain: ChainScan };

const planted: [keyof typeof invariants, string, (run: Run) => unknown][] = [
  ["one use", "an authorization that was used twice", ({ chain }) => chain.uses.push(first(chain.uses))],
  [
    "one use",
    "a payment with two transfers",
    ({ chain }) => chain.transfers.push({ ...first(chain.transfers), txHash: "0xv" }),
  ],
  ["one use", "a payment whose transfer a reorg removed", ({ chain }) => chain.transfers.shift()],
  ["one use", "a payment that names another transaction", ({ rows }) => (first(rows.payments).txId = "0xv")],
  ["one use", "a payment that received less than its row says", ({ rows }) => (first(rows.payments).amount = 6n)],
  ["one use", "a transfer to another receiver", ({ chain }) => (first(chain.transfers).to = shop)],
  ["one use", "a transfer that two payments claim", claimTwice],
  [
    "one use",
    "an authorization that two payments share",
    ({ rows }) => rows.options.push({ ...first(rows.options), paymentId: "pay_2" }),
  ],
  ["no lost money", "money for a payment that has expired", ({ rows }) => (first(rows.payments).state = "expired")],
  ["no lost money", "money that belongs to no payment", ({ chain }) => (first(chain.transfers).nonce = null)],
  ["no lost money", "a payout without a settlement", ({ chain }) => (last(chain.transfers).nonce = "0x3")],
  ["no lost money", "dust that is not in the ledger", ({ chain }) => chain.transfers.push(unmatchedDeposit(7n))],
  [
    "no lost money",
    "a large deposit that is booked only as part of a sum",
    ({ chain, rows }) => {
      chain.transfers.push(unmatchedDeposit(7_000n));
      rows.entries.push(exception(-7_000n), { ...exception(7_000n), account: "treasury" });
    },
  ],
  ["no lost money", "an exception without a movement", ({ rows }) => rows.entries.push(exception(-7n))],
  [
    "payouts",
    "a payout that was made twice",
    ({ chain }) => chain.transfers.push({ ...last(chain.transfers), txHash: "0xv" }),
  ],
  ["payouts", "a payout that is paid in its row but not on the chain", ({ chain }) => chain.transfers.pop()],
  ["payouts", "a payout of less than the ledger says", ({ chain }) => (last(chain.transfers).amount = 4n)],
  ["payouts", "a payout to another account", ({ chain }) => (last(chain.transfers).to = payer)],
  [
    "payouts",
    "a payout that was made twice around a restore, under one nonce",
    (run) => {
      run.history.lost.push({ from: 0, to: 5 });
      run.chain.transfers.push({ ...last(run.chain.transfers), txHash: "0xv" });
    },
  ],
  [
    "payouts",
    "payouts after a restore, under another nonce, that exceed the deposits",
    (run) => {
      run.history.lost.push({ from: 0, to: 5 });
      run.chain.transfers.push({ ...last(run.chain.transfers), txHash: "0xv", nonce: "0x9" });
    },
  ],
  ["in time", "an expired payment that was paid in time", ({ rows }) => (first(rows.payments).state = "expired")],
  ["in time", "a failed payment that was paid in time", ({ rows }) => (first(rows.payments).state = "failed")],
  ["watching", "a stopped watcher", ({ rows }) => (first(rows.cursors).finalNumber = 11)],
  [
    "watching",
    "a movement that is not in the ledger",
    ({ rows }) => rows.failedBookings.push({ kind: "movement", subject: "0xt 1", error: "no" }),
  ],
  ["watching", "a chain without a watcher", ({ rows }) => rows.cursors.pop()],
  [
    "cost",
    "a payment with countless attempts",
    ({ rows }) => rows.attempts.push(...Array.from({ length: 40 }, () => first(rows.attempts))),
  ],
  [
    "cost",
    "gas that is spent repeatedly without a transfer",
    ({ chain, rows }) => {
      first(rows.options).nonce = "0xabc";
      chain.transactions.push(...Array.from({ length: 4 }, () => ({ ...first(chain.transactions), input: "0x0abc" })));
    },
  ],
  ["no lost payment", "a confirmed payment without an end", ({ rows }) => (first(rows.payments).state = "processing")],
  ["no lost payment", "an attempt that was never verified", ({ rows }) => (first(rows.attempts).state = "waiting")],
  ["no lost payment", "a transfer that is still assigned", ({ rows }) => (first(rows.transfers).state = "assigned")],
  ["no lost payment", "a payout that is still due", ({ rows }) => (first(rows.settlements).state = "due")],
  [
    "monotone finality",
    "a final state that was taken back",
    ({ history }) => Object.assign(last(history.statuses), { isFinal: false, status: "processing" }),
  ],
  [
    "monotone finality",
    "a final state that changed to another final state",
    ({ history }) => (last(history.statuses).status = "expired"),
  ],
  ["monotone finality", "a hash that changed", ({ history }) => (last(history.statuses).txId = "0xv")],
  ["ledger", "a group that does not balance", ({ rows }) => (first(rows.entries).amount = 4n)],
  ["ledger", "a treasury that holds more than is booked", ({ chain }) => (chain.held[token] = 1n)],
  ["ledger", "a merchant whose balance differs from the ledger", ({ rows }) => (first(rows.balances).amount = 1n)],
  ["ledger", "money that is still in transit", ({ rows }) => rows.entries.splice(4)],
  ["lanes", "a gap in the nonces", ({ chain }) => (chain.counts[lane] = 2)],
  ["lanes", "a nonce that was stored and never used", ({ chain }) => (chain.counts[lane] = 0)],
  ["lanes", "a nonce with two contents", ({ rows }) => (first(rows.transactions).bytes = bytesOf(gwei, "0x02"))],
  ["lanes", "a nonce without a final transaction", ({ rows }) => (last(rows.transactions).state = "accepted")],
  ["lanes", "an offered fee above the ceiling", ({ rows }) => (first(rows.transactions).maxFee = 3n * gwei)],
  ["lanes", "a paid fee above the ceiling", ({ chain }) => (first(chain.transactions).paid = 3n * gwei)],
  ["lanes", "bytes that were sent and never stored", ({ chain }) => (first(chain.transactions).hash = "0xv")],
  [
    "idempotency",
    "a repeated request that created another payment",
    ({ history }) => (first(history.creations).answer = "pay_2"),
  ],
  [
    "idempotency",
    "another body that was accepted under the same key",
    ({ history }) => (last(history.creations).httpStatus = 201),
  ],
  [
    "idempotency",
    "a payment that was created without a key",
    ({ rows }) => rows.payments.push({ ...first(rows.payments), mode: "test" }),
  ],
  [
    "idempotency",
    "a test payment of a live merchant",
    ({ rows }) => rows.mixed.push({ what: "payment and merchant", id: "pay_1" }),
  ],
  [
    "answers",
    "a reported final state that differs from the row",
    ({ history }) => history.statuses.map((one) => Object.assign(one, { status: "expired" })),
  ],
  ["answers", "a payment that is missing", ({ rows }) => rows.payments.pop()],
  [
    "answers",
    "a payment that is missing although it was created before the restored backup",
    ({ rows, history }) => {
      history.lost.push({ from: 20, to: 30 });
      rows.payments.pop();
    },
  ],
  [
    "answers",
    "a response that violates the contract",
    ({ history }) => history.contractViolations.push("GET /v1/x 200: no id"),
  ],
  ["ends", "an honest payment that was not paid", ({ rows }) => (first(rows.payments).state = "expired")],
];

test("a response from a period of lost commits may contradict the final rows", () => {
  const { rows, history, ...rest } = makeCorrectRun();
  history.lost.push({ from: 8, to: 30 });
  rows.payments.pop();
  first(history.payments).createdAt = 9;
  expect(invariants["answers"]?.({ rows, history, ...rest })).toEqual([]);
});

test("dust deposits may be booked as one sum", () => {
  const run = makeCorrectRun();
  run.evm?.scan.transfers.push(unmatchedDeposit(7n), unmatchedDeposit(8n));
  run.rows.entries.push(exception(-7n));
  run.rows.dust.push({ asset, amount: 8n });
  expect(invariants["no lost money"]?.(run)).toEqual([]);
});

test("the invariants ignore transfers of zero", () => {
  const run = makeCorrectRun();
  run.evm?.scan.transfers.push({ ...unmatchedDeposit(0n), from: treasury, to: payer }, unmatchedDeposit(0n));
  expect(findViolations(run)).toEqual([]);
});

test.each(planted)("the check %s finds %s", (name, _what, plant) => {
  const run = makeCorrectRun();
  if (run.evm === undefined) throw new Error("there is no chain");
  plant({ ...run, chain: run.evm.scan });
  expect(invariants[name]?.(run)).not.toEqual([]);
});

/** Returns a transfer into the treasury that names no payment. */
function unmatchedDeposit(amount: bigint) {
  return { txHash: "0xw", logIndex: 5, token, from: shop, to: treasury, amount, nonce: null, at: 95 };
}

function exception(amount: bigint) {
  return { groupId: 9, kind: "unmatched", txHash: null, logIndex: null, account: "exceptions", asset, amount };
}

function claimTwice({ rows }: Run): void {
  rows.options.push({ ...first(rows.options), id: "opt_2", paymentId: "pay_2" });
  rows.payments.push({ ...first(rows.payments), id: "pay_2", optionId: "opt_2" });
}
