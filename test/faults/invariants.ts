import { parseTransaction } from "viem";
import type { ChainScan } from "./chain-scan.ts";
import { findCostlyPayments } from "./cost-invariants.ts";
import { findLostMoney } from "./money-invariants.ts";
import { isTransferOf, listExceptions, listMoved, placeOf, repeated, sumBy } from "./moved.ts";
import { findBadPayouts } from "./payout-invariants.ts";
import type { Rows } from "./rows.ts";
import { findBadRelayers, findSecondSignings } from "./solana-invariants.ts";
import type { SolanaScan } from "./solana-scan.ts";
import { type History, isLost, type Told } from "./told.ts";
import { findIgnoredMoney, findStoppedWatchers } from "./watch-invariants.ts";

/** Everything a run left behind: what the database says, what each chain of the run says, and what callers were told. */
export type Evidence = {
  rows: Rows;
  /** The ceiling in wei per gas. */
  evm: { scan: ChainScan; treasury: string; feeCeiling: bigint } | undefined;
  /** The ceiling of a transaction's priority, in lamports. */
  solana: { scan: SolanaScan; treasury: string; feeCeiling: bigint } | undefined;
  history: History;
  /** By chain (CAIP-2): the newest block, or slot, when the last fault was over. */
  heights: Record<string, number>;
};

export type Check = (evidence: Evidence) => string[];

/** What must hold when the dust has settled. Each check gives a sentence per violation. */
export const invariants: Readonly<Record<string, Check>> = {
  "one use": findSecondUses,
  "no lost money": findLostMoney,
  payouts: findBadPayouts,
  "in time": findIgnoredMoney,
  watching: findStoppedWatchers,
  cost: findCostlyPayments,
  "no lost payment": findLostPayments,
  "monotone finality": findTakenBack,
  ledger: findBadBooks,
  lanes: findBadLanes,
  relayers: findBadRelayers,
  "one signing": findSecondSignings,
  idempotency: findBadRepeats,
  answers: findBrokenWords,
  ends: findUnexpectedEnds,
};

/** All violations, each with its invariant before it. */
export function findViolations(evidence: Evidence): string[] {
  return Object.entries(invariants).flatMap(([name, check]) => check(evidence).map((what) => `${name}: ${what}`));
}

const finalStates = new Set(["succeeded", "failed", "expired", "cancelled"]);

/** An authorization is used once and pays one payment; a payment that succeeded has exactly its own Transfer log. */
function findSecondUses(evidence: Evidence): string[] {
  const { rows, evm } = evidence;
  const moved = listMoved(evidence);
  const uses = repeated(
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
    // A wallet that the service has forgotten may sign once more, on Solana; what came too much is an exception.
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
    ...repeated(claimed).map((place) => `the transfer ${place} pays two payments`),
    ...[...shared].flatMap(([key, all]) =>
      new Set(all.map(({ paymentId }) => paymentId)).size > 1 ? [`two payments share the authorization ${key}`] : [],
    ),
  ];
}

/** What was confirmed has an end, and so has everything that hangs on it. */
function findLostPayments({ rows, history }: Evidence): string[] {
  const states = new Map(rows.payments.map(({ id, state }) => [id, state]));
  const confirmed = history.asked.filter((asked) => asked.confirmed);
  const open = (what: string, all: readonly { id: string; state: string }[], ends: readonly string[]) =>
    all.filter(({ state }) => !ends.includes(state)).map(({ id, state }) => `${what} ${id} is still ${state}`);
  return [
    ...confirmed.flatMap(({ paymentId }) => {
      // Whether it may be gone is for "answers" to say.
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

/** Nobody who has heard of an end is told something else by a question that he asked later. */
function findTakenBack({ history }: Evidence): string[] {
  return [...Map.groupBy(history.told, ({ paymentId }) => paymentId)].flatMap(([paymentId, told]) => {
    const kept = told.filter(({ begunAt, endedAt }) => !isLost(history.lost, begunAt, endedAt));
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

const isSame = (one: Told, other: Told) =>
  one.status === other.status && one.isFinal === other.isFinal && one.txId === other.txId;

/** Groups balance, and the books agree with the chain and with themselves. Nothing is in flight any more. */
function findBadBooks({ rows, evm, solana }: Evidence): string[] {
  const groups = sumBy(rows.entries, ({ groupId, asset }) => `group ${groupId} in ${asset}`);
  const accounts = sumBy(rows.entries, ({ account, asset }) => `${account} ${tokenOf(asset)}`);
  const held = { ...evm?.scan.held, ...solana?.scan.held };
  const dust = sumBy(rows.dust, ({ asset }) => tokenOf(asset));
  const treasury = Object.entries(held).flatMap(([token, held]) => {
    const booked = (accounts.get(`treasury ${token}`) ?? 0n) + (dust.get(token) ?? 0n);
    return booked === held
      ? []
      : [`the books say that the treasury holds ${booked} of ${token}, the chain says ${held}`];
  });
  const payable = rows.balances.flatMap(({ merchantId, asset, amount }) => {
    const owed = -(accounts.get(`payable:${merchantId} ${tokenOf(asset)}`) ?? 0n);
    return owed === amount ? [] : [`merchant ${merchantId} is owed ${owed} by the ledger and ${amount} by its balance`];
  });
  const inTransit = [...accounts].filter(([account, sum]) => account.startsWith("in_transit") && sum !== 0n);
  return [
    ...[...groups].flatMap(([group, sum]) => (sum === 0n ? [] : [`${group} sums to ${sum}`])),
    ...treasury,
    ...payable,
    ...inTransit.map(([account, sum]) => `${sum} is still ${account}`),
  ];
}

/** Nonces leave no gap, each carries one content, what is on the chain was stored before, and fees kept to the ceiling. */
function findBadLanes({ rows, evm, history }: Evidence): string[] {
  if (evm === undefined) return [];
  const { scan: chain, feeCeiling } = evm;
  const transactions = rows.transactions.filter(({ family }) => family === "eip155");
  const stored = new Set(transactions.map(({ hash }) => hash));
  // What was stored and sent in a time whose commits are lost is on the chain only.
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
    // The one that is final may be forgotten; those that are known are replaced by it.
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

/** What a replacement must keep. */
function contentOf(bytes: string): string {
  const { to, value = 0n, data } = parseTransaction(bytes as `0x${string}`);
  return `${to} ${value} ${data}`;
}

/** One key makes one payment and gives one answer; another body under it is a conflict; the modes never meet. */
function findBadRepeats({ rows, history }: Evidence): string[] {
  const kept = history.creations.filter(({ at }) => !isLost(history.lost, at, at));
  const made = kept.filter(({ httpStatus }) => httpStatus === 201);
  const keys = [...Map.groupBy(kept, ({ key }) => key)].flatMap(([key, all]) => {
    const good = all.filter(({ httpStatus }) => httpStatus === 201);
    const answers = new Set(good.map(({ answer }) => answer)).size;
    const bodies = new Set(good.map(({ body }) => body)).size;
    // A key under which nothing was made is free; that nothing was made is counted below.
    if (good.length === 0) return [];
    const odd = all.filter(({ body, httpStatus }) => httpStatus !== (body === good[0]?.body ? 201 : 409));
    return [
      ...(answers > 1 ? [`the key ${key} gave ${answers} answers`] : []),
      ...(bodies > 1 ? [`the key ${key} took ${bodies} bodies`] : []),
      ...odd.map(({ httpStatus }) => `the key ${key} answered ${httpStatus}`),
    ];
  });
  const expected = new Set(made.map(({ key }) => key)).size;
  const isCounted = made.length === 0 || history.lost.length > 0 || rows.payments.length === expected;
  return [
    ...keys,
    ...(isCounted ? [] : [`${expected} keys made ${rows.payments.length} payments`]),
    ...rows.mixed.map(({ what, id }) => `${what} ${id}: test and live meet`),
  ];
}

/** Whatever end somebody was told is the end, every answer had the published form, and every payment that was made is there. */
function findBrokenWords({ rows, history }: Evidence): string[] {
  const payments = new Map(rows.payments.map((payment) => [payment.id, payment]));
  const asked = history.asked.filter(
    ({ paymentId, madeAt }) => !payments.has(paymentId) && !isLost(history.lost, madeAt, madeAt),
  );
  const broken = history.told.filter(({ isFinal, paymentId, status, txId, begunAt, endedAt }) => {
    if (isLost(history.lost, begunAt, endedAt)) return false;
    const { state, txId: own } = payments.get(paymentId) ?? {};
    return isFinal && (status !== state || (txId ?? null) !== (own ?? null));
  });
  return [
    ...asked.map(({ paymentId }) => `payment ${paymentId} was made and is not there`),
    ...broken.map(
      ({ paymentId, status }) =>
        `payment ${paymentId} was told to be ${status} and is ${payments.get(paymentId)?.state}`,
    ),
    ...history.offContract,
  ];
}

/** Every payment ended as its plan allows. Plans know of no FLUSHALL: this is the result that a run without one has. */
function findUnexpectedEnds({ rows, history }: Evidence): string[] {
  const states = new Map(rows.payments.map(({ id, state }) => [id, state]));
  return history.asked.flatMap(({ paymentId, kind, ends, madeAt }) => {
    const state = states.get(paymentId) ?? "gone";
    // What was asked, signed or confirmed may be forgotten, so that the buyer is refused though the money has moved.
    if (history.lost.some(({ to }) => madeAt <= to)) return [];
    return ends.includes(state) ? [] : [`payment ${paymentId} (${kind}) ended ${state}`];
  });
}

const tokenOf = (asset: string) => asset.slice(asset.lastIndexOf(":") + 1);
