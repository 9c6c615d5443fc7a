import { serializeTransaction } from "viem";
import { expect, test } from "vitest";
import type { ChainScan } from "../faults/chain-scan.ts";
import { type Evidence, findViolations, invariants } from "../faults/invariants.ts";

const treasury = "0x00000000000000000000000000000000000000aa";
const lane = "0x00000000000000000000000000000000000000bb";
const payer = "0x00000000000000000000000000000000000000cc";
const shop = "0x00000000000000000000000000000000000000dd";
const token = "0x00000000000000000000000000000000000000ee";
const asset = `eip155:31337/erc20:${token}`;
const gwei = 1_000_000_000n;

const bytesOf = (fee: bigint, data: `0x${string}` = "0x01") =>
  serializeTransaction({ chainId: 31_337, type: "eip1559", nonce: 0, to: token, data, maxFeePerGas: fee });

/** One payment that was paid and paid out, under one nonce that was replaced once. */
function soundRun(): Evidence {
  const inward = { token, payer, receiver: treasury, amount: 5n, nonce: "0x1" };
  const outward = { token, payer: treasury, receiver: shop, amount: 5n, nonce: "0x2" };
  const told = { paymentId: "pay_1", by: "status" as const, status: "succeeded", isFinal: true, txId: "0xt" };
  const entry = (groupId: number, account: string, amount: bigint) => {
    return { groupId, kind: "payment", txHash: "0xt", logIndex: 1, account, asset, amount };
  };
  const paymentRow = { id: "pay_1", mode: "live" as const, state: "succeeded", txId: "0xt", amount: 5n };
  const transactionRow = { family: "eip155", lane, nonce: 0, maxFee: gwei, fee: null, state: "final" };
  const chain = {
    transfers: [
      { txHash: "0xt", logIndex: 1, token, from: payer, to: treasury, amount: 5n, nonce: "0x1" },
      { txHash: "0xt", logIndex: 3, token, from: treasury, to: shop, amount: 5n, nonce: "0x2" },
    ],
    uses: [
      { token, authorizer: payer, nonce: "0x1" },
      { token, authorizer: treasury, nonce: "0x2" },
    ],
    transactions: [{ hash: "0xt", from: lane, nonce: 0, paid: gwei }],
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
        { id: "trf_2", purpose: "settlement", paymentId: null, settlementId: "stl_1", ...outward, state: "confirmed" },
      ],
      transactions: [
        { ...transactionRow, replacement: 0, hash: "0xu", bytes: bytesOf(gwei), state: "replaced" },
        { ...transactionRow, replacement: 1, hash: "0xt", bytes: bytesOf(2n * gwei), maxFee: 2n * gwei },
      ],
      settlements: [{ id: "stl_1", mode: "live", state: "paid", amount: 5n }],
      entries: [
        ...[entry(1, "treasury", 5n), entry(1, "payable:mrch_1", -5n)],
        ...[entry(2, "payable:mrch_1", 5n), entry(2, "in_transit", -5n)],
        ...[entry(3, "in_transit", 5n), entry(3, "treasury", -5n)],
      ],
      balances: [{ merchantId: "mrch_1", asset, amount: 0n }],
      mixed: [],
    },
    history: {
      asked: [{ paymentId: "pay_1", mode: "live", kind: "plain", ends: ["succeeded"], confirmed: true }],
      told: [
        { ...told, by: "confirm", begunAt: 0, endedAt: 5, status: "processing", isFinal: false, txId: null },
        { ...told, begunAt: 5, endedAt: 9 },
        { ...told, begunAt: 10, endedAt: 11 },
      ],
      creations: [
        { key: "live a", body: "{}", httpStatus: 201, answer: "pay_1" },
        { key: "live a", body: "{}", httpStatus: 201, answer: "pay_1" },
        { key: "live a", body: '{"other":1}', httpStatus: 409, answer: "" },
      ],
      offContract: [],
    },
  };
}

test("a run in which nothing went wrong breaks no invariant", () => {
  expect(findViolations(soundRun())).toEqual([]);
});

/** The one row of a list, to be spoilt. */
function first<T>(rows: readonly T[]): T {
  const [row] = rows;
  if (row === undefined) throw new Error("there is no row");
  return row;
}
const last = <T>(rows: readonly T[]): T => first(rows.slice(-1));

type Run = Pick<Evidence, "rows" | "history"> & { chain: ChainScan };

const planted: [keyof typeof invariants, string, (run: Run) => unknown][] = [
  ["one use", "an authorization that was used twice", ({ chain }) => chain.uses.push(first(chain.uses))],
  [
    "one use",
    "a payment with two transfers",
    ({ chain }) => chain.transfers.push({ ...first(chain.transfers), txHash: "0xv" }),
  ],
  ["one use", "a payment whose transfer a reorg has taken", ({ chain }) => chain.transfers.shift()],
  ["one use", "a payment that names another transaction", ({ rows }) => (first(rows.payments).txId = "0xv")],
  ["one use", "a payment that was paid less than it says", ({ rows }) => (first(rows.payments).amount = 6n)],
  ["one use", "a transfer to somebody else", ({ chain }) => (first(chain.transfers).to = shop)],
  ["one use", "a transfer that two payments claim", claimTwice],
  [
    "one use",
    "an authorization of two payments",
    ({ rows }) => rows.options.push({ ...first(rows.options), paymentId: "pay_2" }),
  ],
  ["no lost money", "money for a payment that has expired", ({ rows }) => (first(rows.payments).state = "expired")],
  ["no lost money", "money that nobody knows", ({ chain }) => (first(chain.transfers).nonce = null)],
  ["no lost money", "a payout that nobody asked for", ({ chain }) => (last(chain.transfers).nonce = "0x3")],
  [
    "no lost money",
    "a payout that was made twice",
    ({ chain }) => chain.transfers.push({ ...last(chain.transfers), txHash: "0xv" }),
  ],
  ["no lost money", "a payout that is paid only by its row", ({ chain }) => chain.transfers.pop()],
  ["no lost payment", "a confirmed payment without an end", ({ rows }) => (first(rows.payments).state = "processing")],
  ["no lost payment", "an attempt that nobody judged", ({ rows }) => (first(rows.attempts).state = "waiting")],
  ["no lost payment", "a transfer that is still carried", ({ rows }) => (first(rows.transfers).state = "carried")],
  ["no lost payment", "a payout that is still due", ({ rows }) => (first(rows.settlements).state = "due")],
  [
    "monotone finality",
    "an end that was taken back",
    ({ history }) => Object.assign(last(history.told), { isFinal: false, status: "processing" }),
  ],
  ["monotone finality", "an end that became another one", ({ history }) => (last(history.told).status = "expired")],
  ["monotone finality", "a hash that became another one", ({ history }) => (last(history.told).txId = "0xv")],
  ["ledger", "a group that does not balance", ({ rows }) => (first(rows.entries).amount = 4n)],
  ["ledger", "a treasury that holds more than is booked", ({ chain }) => (chain.held[token] = 1n)],
  ["ledger", "a merchant whose balance is not what the ledger owes", ({ rows }) => (first(rows.balances).amount = 1n)],
  ["ledger", "money that is still in transit", ({ rows }) => rows.entries.splice(4)],
  ["lanes", "a gap", ({ chain }) => (chain.counts[lane] = 2)],
  ["lanes", "a nonce that was stored and never used", ({ chain }) => (chain.counts[lane] = 0)],
  ["lanes", "a nonce with two contents", ({ rows }) => (first(rows.transactions).bytes = bytesOf(gwei, "0x02"))],
  ["lanes", "a nonce without an end", ({ rows }) => (last(rows.transactions).state = "accepted")],
  ["lanes", "an offer above the ceiling", ({ rows }) => (first(rows.transactions).maxFee = 3n * gwei)],
  ["lanes", "a fee above the ceiling", ({ chain }) => (first(chain.transactions).paid = 3n * gwei)],
  ["lanes", "bytes that were sent and never stored", ({ chain }) => (first(chain.transactions).hash = "0xv")],
  ["idempotency", "a repeat that made another payment", ({ history }) => (first(history.creations).answer = "pay_2")],
  ["idempotency", "another body that was taken", ({ history }) => (last(history.creations).httpStatus = 201)],
  [
    "idempotency",
    "a payment that no key made",
    ({ rows }) => rows.payments.push({ ...first(rows.payments), mode: "test" }),
  ],
  [
    "idempotency",
    "test money that met live money",
    ({ rows }) => rows.mixed.push({ what: "payment and merchant", id: "pay_1" }),
  ],
  [
    "answers",
    "an end that was told and is none",
    ({ history }) => history.told.map((one) => Object.assign(one, { status: "expired" })),
  ],
  ["answers", "a payment that is gone", ({ rows }) => rows.payments.pop()],
  ["answers", "an answer off the contract", ({ history }) => history.offContract.push("GET /v1/x 200: no id")],
  ["ends", "an honest payment that was not paid", ({ rows }) => (first(rows.payments).state = "expired")],
];

test.each(planted)("%s: finds %s", (name, _what, plant) => {
  const run = soundRun();
  if (run.evm === undefined) throw new Error("there is no chain");
  plant({ ...run, chain: run.evm.scan });
  expect(invariants[name]?.(run)).not.toEqual([]);
});

function claimTwice({ rows }: Run): void {
  rows.options.push({ ...first(rows.options), id: "opt_2", paymentId: "pay_2" });
  rows.payments.push({ ...first(rows.payments), id: "pay_2", optionId: "opt_2" });
}
