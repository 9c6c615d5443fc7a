import { parseTransaction } from "viem";
import { findCostlyPayments } from "./cost-invariants.ts";
import type { Rows } from "./database-rows.ts";
import type { ChainScan } from "./evm-scan.ts";
import { findDuplicates, isTransferOf, listExceptions, listMovements, placeOf, sumBy } from "./list-movements.ts";
import { findLostMoney } from "./money-invariants.ts";
import { findPayoutErrors } from "./payout-invariants.ts";
import { type History, isDuringLostCommits, type StatusReport } from "./response-history.ts";
import { findRelayerErrors, findRepeatedSignings } from "./solana-invariants.ts";
import type { SolanaScan } from "./solana-scan.ts";
import { findIgnoredMoney, findStoppedWatchers } from "./watcher-invariants.ts";

/** The evidence of a run: the rows of the database, a scan of each chain, and the responses that callers received. */
export type Evidence = {
  rows: Rows;
  /** `feeCeiling` in wei per gas. */
  evm: { scan: ChainScan; treasury: string; feeCeiling: bigint } | undefined;
  /** `feeCeiling` is the highest priority fee of a transaction, in lamports. */
  solana: { scan: SolanaScan; treasury: string; feeCeiling: bigint } | undefined;
  history: History;
  /** By chain (CAIP-2): the newest block, or slot, when the last fault was over. */
  heights: Record<string, number>;
};

export type Check = (evidence: Evidence) => string[];

/** The invariants of a finished run. Each check returns one sentence per violation. */
export const invariants: Readonly<Record<string, Check>> = {
  "one use": findRepeatedUses,
  "no lost money": findLostMoney,
  payouts: findPayoutErrors,
  "in time": findIgnoredMoney,
  watching: findStoppedWatchers,
  cost: findCostlyPayments,
  "no lost payment": findLostPayments,
  "monotone finality": findContradictedStatuses,
  ledger: findLedgerErrors,
  lanes: findLaneErrors,
  relayers: findRelayerErrors,
  "one signing": findRepeatedSignings,
  idempotency: findIdempotencyErrors,
  answers: findWrongResponses,
  ends: findUnexpectedEnds,
};

/** Returns all violations, each prefixed with the name of its invariant. */
export function findViolations(evidence: Evidence): string[] {
  return Object.entries(invariants).flatMap(([name, check]) => check(evidence).map((what) => `${name}: ${what}`));
}

const finalStates = new Set(["succeeded", "failed", "expired", "cancelled"]);

/** Checks that an authorization is used once, for one payment, and that a succeeded payment has exactly one Transfer log. */
function findRepeatedUses(evidence: Evidence): string[] {
  const { rows, evm } = evidence;
  const moved = listMovements(evidence);
  const uses = findDuplicates(
    (evm?.scan.uses ?? []).map(({ token, authorizer, nonce }) => `${token} ${authorizer} ${nonce}`),
  );
  const paid = rows.payments.filter(({ mode, state }) => mode === "live" && state === "succeeded");
  const options = new Map(rows.options.map((option) => [option.id, option]));
  const claimed: string[] = [];
  const booked = listExceptions(rows);
  const found = paid.flatMap((payment) => {
    const option = options.get(payment.optionId ?? "");
    if (option === undefined) return [`payment ${payment.id} succeeded without an option`];
    const logs = moved.filter((log) => isTransferOf(log, option));
    claimed.push(...logs.map(placeOf));
    // After lost commits, a Solana wallet may sign again; the surplus transfer is an exception.
    const extra = evidence.history.lost.length === 0 ? [] : logs.filter((log) => booked.has(placeOf(log)));
    if (logs.length - extra.length !== 1)
      return [`payment ${payment.id} succeeded and has ${logs.length} transfers on the chain`];
    const isNamed =
      logs.find((log) => !extra.includes(log))?.txHash === payment.txId && payment.amount === option.amount;
    return isNamed
      ? []
      : [`payment ${payment.id} names ${payment.txId} and was paid by ${logs.map(({ txHash }) => txHash)}`];
  });
  const shared = Map.groupBy(rows.options, ({ token, payer, nonce }) => `${token} ${payer} ${nonce}`);
  return [
    ...uses.map((use) => `the authorization ${use} was used twice`),
    ...found,
    ...findDuplicates(claimed).map((place) => `the transfer ${place} pays two payments`),
    ...[...shared].flatMap(([key, all]) =>
      new Set(all.map(({ paymentId }) => paymentId)).size > 1 ? [`two payments share the authorization ${key}`] : [],
    ),
  ];
}

/** Checks that every confirmed payment is final, and that every attempt, transfer and settlement is finished. */
function findLostPayments({ rows, history }: Evidence): string[] {
  const states = new Map(rows.payments.map(({ id, state }) => [id, state]));
  const confirmed = history.payments.filter((payment) => payment.confirmed);
  const open = (what: string, all: readonly { id: string; state: string }[], ends: readonly string[]) =>
    all.filter(({ state }) => !ends.includes(state)).map(({ id, state }) => `${what} ${id} is still ${state}`);
  return [
    ...confirmed.flatMap(({ paymentId }) => {
      // The check "answers" reports missing payments.
      const state = states.get(paymentId);
      return state === undefined || finalStates.has(state)
        ? []
        : [`payment ${paymentId} was confirmed and is ${state}`];
    }),
    ...open("payment", rows.payments, [...finalStates]),
    ...open("attempt", rows.attempts, ["verified", "refused"]),
    ...open("transfer", rows.transfers, ["confirmed", "ended"]),
    ...open("settlement", rows.settlements, ["paid"]),
  ];
}

/** Checks that no later status contradicts a final status that was returned. */
function findContradictedStatuses({ history }: Evidence): string[] {
  return [...Map.groupBy(history.statuses, ({ paymentId }) => paymentId)].flatMap(([paymentId, statuses]) => {
    const kept = statuses.filter(({ begunAt, endedAt }) => !isDuringLostCommits(history.lost, begunAt, endedAt));
    const ends = kept.filter(({ isFinal }) => isFinal).toSorted((a, b) => a.endedAt - b.endedAt);
    const [first] = ends;
    if (first === undefined) return [];
    const others = kept
      .filter((one) => one.isFinal || one.begunAt > first.endedAt)
      .filter((one) => !isSame(one, first));
    return others.map(
      (one) => `payment ${paymentId} was ${first.status} (${first.txId}), and then ${one.status} (${one.txId})`,
    );
  });
}

const isSame = (one: StatusReport, other: StatusReport) =>
  one.status === other.status && one.isFinal === other.isFinal && one.txId === other.txId;

/** Checks that every ledger group balances, that the ledger equals the chain and the balances, and that nothing is in transit. */
function findLedgerErrors({ rows, evm, solana }: Evidence): string[] {
  const groups = sumBy(rows.entries, ({ groupId, asset }) => `group ${groupId} in ${asset}`);
  const accounts = sumBy(rows.entries, ({ account, asset }) => `${account} ${tokenOf(asset)}`);
  const held = { ...evm?.scan.held, ...solana?.scan.held };
  const dust = sumBy(rows.dust, ({ asset }) => tokenOf(asset));
  const treasury = Object.entries(held).flatMap(([token, held]) => {
    const booked = (accounts.get(`treasury ${token}`) ?? 0n) + (dust.get(token) ?? 0n);
    return booked === held ? [] : [`the treasury holds ${booked} of ${token} in the ledger and ${held} on the chain`];
  });
  const payable = rows.balances.flatMap(({ merchantId, asset, amount }) => {
    const inLedger = -(accounts.get(`payable:${merchantId} ${tokenOf(asset)}`) ?? 0n);
    return inLedger === amount
      ? []
      : [`merchant ${merchantId} has ${inLedger} in the ledger and a balance of ${amount}`];
  });
  const inTransit = [...accounts].filter(([account, sum]) => account.startsWith("in_transit") && sum !== 0n);
  return [
    ...[...groups].flatMap(([group, sum]) => (sum === 0n ? [] : [`${group} sums to ${sum}`])),
    ...treasury,
    ...payable,
    ...inTransit.map(([account, sum]) => `${sum} is still ${account}`),
  ];
}

/** Checks that nonces have no gap and one content each, that every mined transaction was stored, and that fees respect the ceiling. */
function findLaneErrors({ rows, evm, history }: Evidence): string[] {
  if (evm === undefined) return [];
  const { scan: chain, feeCeiling } = evm;
  const transactions = rows.transactions.filter(({ family }) => family === "eip155");
  const stored = new Set(transactions.map(({ hash }) => hash));
  // A transaction that was stored and sent in a period of lost commits exists only on the chain.
  const isWhole = history.lost.length === 0;
  const lanes = [...Map.groupBy(transactions, ({ lane }) => lane)].flatMap(([lane, all]) => {
    const nonces = new Set(all.map(({ nonce }) => nonce));
    const count = chain.counts[lane] ?? 0;
    const missing = Array.from({ length: count }, (_, nonce) => nonce).filter((nonce) => !nonces.has(nonce));
    return [
      ...(isWhole ? missing : []).map((nonce) => `lane ${lane} has used nonce ${nonce} without a stored transaction`),
      ...(nonces.size > count ? [`lane ${lane} has stored ${nonces.size} nonces and used ${count}`] : []),
    ];
  });
  const slots = Map.groupBy(transactions, ({ lane, nonce }) => `lane ${lane} nonce ${nonce}`);
  const contents = [...slots].flatMap(([slot, all]) => {
    const different = new Set(all.map(({ bytes }) => contentOf(bytes))).size;
    const final = all.filter(({ state }) => state === "final").length;
    // After lost commits, the final transaction may be unknown; it has replaced the known ones.
    const isEnded = final === 1 || (!isWhole && final === 0 && all.every(({ state }) => state === "replaced"));
    return [
      ...(different === 1 ? [] : [`${slot} has ${different} contents`]),
      ...(isEnded ? [] : [`${slot} has ${final} final transactions`]),
    ];
  });
  return [
    ...lanes,
    ...contents,
    ...transactions
      .filter(({ maxFee }) => maxFee > feeCeiling)
      .map(({ hash }) => `${hash} offers more than the ceiling`),
    ...chain.transactions
      .filter(({ paid }) => paid > feeCeiling)
      .map(({ hash }) => `${hash} paid more than the ceiling`),
    ...chain.transactions
      .filter(({ hash }) => isWhole && !stored.has(hash))
      .map(({ hash }) => `${hash} is on the chain and was never stored`),
  ];
}

/** Returns the part of a transaction that a replacement must not change. */
function contentOf(bytes: string): string {
  const { to, value = 0n, data } = parseTransaction(bytes as `0x${string}`);
  return `${to} ${value} ${data}`;
}

/** Checks that a key creates one payment with one response, that another body conflicts, and that test and live rows never mix. */
function findIdempotencyErrors({ rows, history }: Evidence): string[] {
  const kept = history.creations.filter(({ at }) => !isDuringLostCommits(history.lost, at, at));
  const made = kept.filter(({ httpStatus }) => httpStatus === 201);
  const keys = [...Map.groupBy(kept, ({ key }) => key)].flatMap(([key, all]) => {
    const good = all.filter(({ httpStatus }) => httpStatus === 201);
    const answers = new Set(good.map(({ answer }) => answer)).size;
    const bodies = new Set(good.map(({ body }) => body)).size;
    // A key without a created payment is still free; the count below notices a missing payment.
    if (good.length === 0) return [];
    const odd = all.filter(({ body, httpStatus }) => httpStatus !== (body === good[0]?.body ? 201 : 409));
    return [
      ...(answers > 1 ? [`the key ${key} returned ${answers} different responses`] : []),
      ...(bodies > 1 ? [`the key ${key} accepted ${bodies} bodies`] : []),
      ...odd.map(({ httpStatus }) => `the key ${key} answered ${httpStatus}`),
    ];
  });
  const expected = new Set(made.map(({ key }) => key)).size;
  const isCounted = made.length === 0 || history.lost.length > 0 || rows.payments.length === expected;
  return [
    ...keys,
    ...(isCounted ? [] : [`${expected} keys created ${rows.payments.length} payments`]),
    ...rows.mixed.map(({ what, id }) => `${what} ${id}: test and live rows are mixed`),
  ];
}

/** Checks that every returned final status is the payment's state, every response fits the contract, and every created payment exists. */
function findWrongResponses({ rows, history }: Evidence): string[] {
  const payments = new Map(rows.payments.map((payment) => [payment.id, payment]));
  const missing = history.payments.filter(
    ({ paymentId, createdAt }) => !payments.has(paymentId) && !isDuringLostCommits(history.lost, createdAt, createdAt),
  );
  const broken = history.statuses.filter(({ isFinal, paymentId, status, txId, begunAt, endedAt }) => {
    if (isDuringLostCommits(history.lost, begunAt, endedAt)) return false;
    const { state, txId: own } = payments.get(paymentId) ?? {};
    return isFinal && (status !== state || (txId ?? null) !== (own ?? null));
  });
  return [
    ...missing.map(({ paymentId }) => `payment ${paymentId} was created and is missing`),
    ...broken.map(
      ({ paymentId, status }) =>
        `payment ${paymentId} was reported as ${status} and is ${payments.get(paymentId)?.state}`,
    ),
    ...history.contractViolations,
  ];
}

/** Checks that every payment ended as its plan allows. Faults such as FLUSHALL do not change the allowed ends. */
function findUnexpectedEnds({ rows, history }: Evidence): string[] {
  const states = new Map(rows.payments.map(({ id, state }) => [id, state]));
  return history.payments.flatMap(({ paymentId, kind, ends, createdAt }) => {
    const state = states.get(paymentId) ?? "gone";
    // After lost commits, the service may have no record of the payment and refuse a buyer whose money has moved.
    if (history.lost.some(({ to }) => createdAt <= to)) return [];
    return ends.includes(state) ? [] : [`payment ${paymentId} (${kind}) ended ${state}`];
  });
}

const tokenOf = (asset: string) => asset.slice(asset.lastIndexOf(":") + 1);
