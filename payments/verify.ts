import { sql } from "kysely";
import { type Hex, hexToBytes } from "viem";
import { lockWaiting, markByCode, type WholeAttempt } from "../db/attempts.ts";
import { keepVerified } from "../db/collected.ts";
import { moveRows } from "../db/moves.ts";
import { lockPayments } from "../db/payments.ts";
import type { Db } from "../db/tables.ts";
import { insertTransfers } from "../db/transfers.ts";
import type { Verdict } from "../transfers/verdict.ts";
import type { Verifier } from "../transfers/verify.ts";
import { checkAttempts } from "./check-attempts.ts";
import { keepCovered } from "./covered.ts";
import { type PaymentDeps, RING_AGAIN_MS } from "./deps.ts";
import { refuseAttempts } from "./refuse-attempts.ts";
import { ringRelays } from "./relay.ts";
import { readResults } from "./results.ts";
import { toTransfer } from "./transfer.ts";

export type VerifyDeps = PaymentDeps & { verifier: Verifier };
type Deps = VerifyDeps;

/** So long a transaction that a wallet says to have sent may be unknown to the network, milliseconds. */
const UNKNOWN_FOR_MS = 30_000;
/** So long after the deadline a transaction that was confirmed before it may still come into a block, milliseconds. */
const PENDING_FOR_MS = 60_000;

/** How often an attempt is verified again at once, because another payment of its payer was accepted meanwhile. */
const RACES = 3;

/** What became of an attempt in its group. `byCode`: its payer is code, and it is to be verified as such. */
export type End = { byCode?: true } | { error: unknown; byCode?: never };

/**
 * Verifies attempts of one place. What was accepted is enqueued and announced as soon as it is committed, whatever
 * becomes of the others. Returns what became of the attempts that could be neither accepted nor refused.
 */
export async function verifyTogether(
  deps: Deps,
  waiting: readonly WholeAttempt[],
  races: number = RACES,
): Promise<Map<string, End>> {
  const verdicts = await checkAttempts(deps, waiting);
  const byCode = waiting.filter((whole) => isByCode(verdicts.get(whole)));
  await markByCode(
    deps.db,
    byCode.map(({ attempt }) => attempt.id),
  );
  const good = waiting.filter((whole) => verdicts.get(whole)?.ok);
  const raced = new Set<WholeAttempt>();
  const accepted = await accept(deps, verdicts, keepOnePerPayment(good), raced);
  await notifyAccepted(deps, good, { accepted, verdicts });
  const refusals = waiting.flatMap((whole) => {
    const verdict = verdicts.get(whole);
    if (accepted.has(whole.attempt.id) || raced.has(whole) || isByCode(verdict) || isOpen(deps, whole, verdict))
      return [];
    return [{ whole, reason: verdict && !verdict.ok ? verdict.reason : "the payment is no longer waiting" }];
  });
  const failed = await refuseAttempts(deps, refusals);
  await deps.announce(waiting.filter(({ attempt }) => !accepted.has(attempt.id)).map(({ payment }) => payment.id));
  const ends = new Map<string, End>(byCode.map(({ attempt }) => [attempt.id, { byCode: true }]));
  for (const [id, error] of failed) ends.set(id, { error });
  if (raced.size > 0 && races > 0)
    for (const [id, end] of await verifyTogether(deps, [...raced], races - 1)) ends.set(id, end);
  return ends;
}

function isByCode(verdict: Verdict | undefined): boolean {
  return verdict?.ok === false && verdict.byCode === true;
}

/** Counts, enqueues and announces what a commit has accepted. */
async function notifyAccepted(
  deps: Deps,
  good: readonly WholeAttempt[],
  {
    accepted,
    verdicts,
  }: { accepted: ReadonlyMap<string, string | null>; verdicts: ReadonlyMap<WholeAttempt, Verdict> },
): Promise<void> {
  const moved = good.filter(({ attempt }) => accepted.has(attempt.id));
  if (moved.length === 0) return;
  for (const { mode } of moved.map(({ payment }) => payment)) {
    deps.metrics.attempts.inc({ outcome: "verified" });
    deps.metrics.paymentMoves.inc({ mode, from: "requires_action", to: "processing" });
    if (mode === "test") deps.metrics.paymentMoves.inc({ mode, from: "processing", to: "succeeded" });
  }
  await ringRelays(
    deps,
    moved.flatMap((whole) => {
      const { chain, kind } = whole.option;
      const transferId = accepted.get(whole.attempt.id);
      const verdict = verdicts.get(whole);
      const isWallet = verdict?.ok === true && verdict.smartWallet;
      return transferId && kind !== "push" ? [{ chain, transferId, isWallet }] : [];
    }),
  );
  await deps.announce(moved.map(({ payment }) => payment.id));
}

/** Cannot be verified yet: the sweep enqueues it again, less and less often; the payment stays payable meanwhile. */
function isOpen(deps: Deps, { attempt, payment }: WholeAttempt, verdict: Verdict | undefined): boolean {
  if (verdict?.ok !== false || verdict.later === undefined) return false;
  const now = deps.now().getTime();
  return verdict.later === "pending"
    ? now < payment.expires_at.getTime() + PENDING_FOR_MS
    : now - attempt.created_at.getTime() < UNKNOWN_FOR_MS;
}

/** Of several good attempts for one payment the earliest stands. */
function keepOnePerPayment(good: readonly WholeAttempt[]): WholeAttempt[] {
  const inOrder = good.toSorted((a, b) => a.attempt.created_at.getTime() - b.attempt.created_at.getTime());
  return [...new Map(inOrder.toReversed().map((whole) => [whole.payment.id, whole])).values()];
}

/**
 * The guarded move that decides who pays: confirmed before the deadline (however long verification took), while the
 * payment waits and the merchant is still paid where the quote says, one attempt only. Gives the accepted attempts, each with its transfer (null in test mode), which are
 * written in the same transaction. `raced` takes those whose payers' other payments were accepted since they were verified.
 */
async function accept(
  deps: Deps,
  verdicts: ReadonlyMap<WholeAttempt, Verdict>,
  good: readonly WholeAttempt[],
  raced: Set<WholeAttempt>,
): Promise<Map<string, string | null>> {
  if (good.length === 0) return new Map();
  return deps.db.transaction().execute(async (db) => {
    const at = deps.now();
    // Payments before attempts, as whoever else takes both: then nobody waits in a circle.
    await lockPayments(
      db,
      good.map(({ payment }) => payment.id),
    );
    // Another job may have judged some of them meanwhile; the lock keeps the rest ours.
    const ours = new Set(
      await lockWaiting(
        db,
        good.map(({ attempt }) => attempt.id),
      ),
    );
    const mine = good.filter(({ attempt }) => ours.has(attempt.id));
    const still = await keepCovered(db, { verdicts, attempts: mine, raced });
    const paymentIds = still.map(({ payment }) => payment.id);
    const chosen = JSON.stringify(Object.fromEntries(still.map(({ payment, option }) => [payment.id, option.id])));
    const set = { due_at: null, option_id: sql<string>`${chosen}::jsonb ->> payment.id` };
    const attemptIds = still.map(({ attempt }) => attempt.id);
    const inTime = {
      where: sql`exists (select from attempt a
        where a.payment_id = payment.id and a.id = any(${attemptIds}) and a.created_at <= payment.expires_at)
        and ${isStillDestination(still)}`,
      set,
    };
    const moved = new Set(
      await moveRows(db, "payment", { ids: paymentIds, from: "requires_action", to: "processing", at, ...inTime }),
    );
    const won = still.filter(({ payment }) => moved.has(payment.id));
    const ids = won.map(({ attempt }) => attempt.id);
    await keepVerified(
      db,
      won.flatMap(({ attempt, option }) => (option.needs_data ? [attempt.id] : [])),
    );
    await moveRows(db, "attempt", { ids, from: "waiting", to: "verified", at, set: { due_at: null } });
    await succeedInTestMode(
      db,
      won.filter(({ payment }) => payment.mode === "test"),
      at,
    );
    const transfers = won
      .filter(({ payment }) => payment.mode === "live")
      .map((whole) => makeTransfer(deps, whole, verdicts.get(whole)));
    await insertTransfers(db, transfers, at);
    const transferOf = new Map(transfers.map((transfer) => [transfer.payment_id, transfer.id]));
    return new Map(won.map(({ attempt, payment }) => [attempt.id, transferOf.get(payment.id) ?? null]));
  });
}

/** SQL: of payments whose buyers pay the merchant directly, the destination has not been changed at this moment. */
function isStillDestination(attempts: readonly WholeAttempt[]) {
  const direct = attempts.filter(({ option }) => option.direct);
  const column = (of: (whole: WholeAttempt) => string | null) => direct.map(of);
  return sql`not exists (
    select from unnest(${column(({ payment }) => payment.id)}::text[], ${column(({ option }) => option.asset)}::text[],
      ${column(({ option }) => option.registered)}::text[]) as f (id, asset, destination)
    where f.id = payment.id and not exists (select from settlement_destination d
      where d.merchant_id = payment.merchant_id and d.asset = f.asset and d.destination = f.destination))`;
}

function makeTransfer(deps: Deps, { attempt, option }: WholeAttempt, verdict: Verdict | undefined) {
  const transfer = toTransfer(option);
  // The buyer's wallet has sent it already: all there is to do is to watch.
  if (option.kind === "push") return { ...transfer, state: "awaited" as const };
  const { proof, permit } = readResults(attempt.results);
  if (option.kind === "spl") {
    const validBefore = verdict?.ok ? verdict.validBefore : undefined;
    if (validBefore === undefined) throw new Error(`it is not known until when attempt ${attempt.id} can land`);
    const signature = Buffer.from(proof, "base64");
    return {
      ...transfer,
      signature,
      valid_before: validBefore,
      due_at: new Date(deps.now().getTime() + RING_AGAIN_MS),
    };
  }
  const signature = Buffer.from(hexToBytes(proof as Hex));
  const signed = { signature, permit: permit && Buffer.from(hexToBytes(permit)) };
  const smartWallet = verdict?.ok === true && verdict.smartWallet;
  const due_at = new Date(deps.now().getTime() + RING_AGAIN_MS);
  const code_hash = (verdict?.ok && verdict.codeHash) || null;
  return { ...transfer, ...signed, smart_wallet: smartWallet, code_hash, due_at };
}

/** Test mode moves no funds: what was confirmed has succeeded (specification, part 1 and 2.2). */
async function succeedInTestMode(db: Db, won: readonly WholeAttempt[], at: Date): Promise<void> {
  for (const { payment, option } of won) {
    const set = { tx_id: `test:${payment.id}`, paid_asset: option.asset, paid_amount: option.amount, fee: option.fee };
    await moveRows(db, "payment", { ids: [payment.id], from: "processing", to: "succeeded", at, set });
  }
}
