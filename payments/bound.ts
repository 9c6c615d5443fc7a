import { createHash } from "node:crypto";
import { sql } from "kysely";
import type { SeenTransfer } from "../chains/movements.ts";
import { insertAttempt, lockWaitingOf } from "../db/attempts.ts";
import { moveToOpened } from "../db/collected.ts";
import { moveRows } from "../db/moves.ts";
import { type OptionRow, selectCurrent } from "../db/options.ts";
import type { Db } from "../db/tables.ts";
import { insertTransfers } from "../db/transfers.ts";
import type { PaymentDeps } from "./deps.ts";
import { newId } from "./ids.ts";
import { readSignatures, type Signatures } from "./lend.ts";
import { findPaidQuotes, type LockedQuote } from "./paid-quotes.ts";
import { toTransfer } from "./transfer.ts";

/** An option has no more confirms with a good signature of its payer's key (db/attempts.ts). */
const ATTEMPTS_READ = 10;

/**
 * Money that was bound to a payment which still waits for its buyer opens its own attempt: a stranger has relayed what
 * the buyer signed, or the buyer's wallet has pushed and then not confirmed. The payment is being paid from now on, by the
 * quote that the money fits. In the transaction that records the movements; the payments' rows stay locked in it, so that a
 * confirm at the same moment comes before or after, and never between.
 * What counts is that the money moved in time by the chain's own time, however late it is read, or that its confirm was
 * accepted in time. Money that moved later becomes an exception.
 */
export async function openBound(
  deps: PaymentDeps,
  db: Db,
  chain: string,
  bound: readonly SeenTransfer[],
): Promise<() => void> {
  const locked = await lockOptions(db, chain, bound);
  const quotes = await findPaidQuotes(deps, db, { bound, quotes: locked });
  // All attempts at once and in one order, before any of them is touched: others take several as well.
  await lockWaitingOf(
    db,
    quotes.map(({ payment_id }) => payment_id),
  );
  const at = deps.now();
  const opened: OptionRow[] = [];
  for (const option of quotes) {
    const set = { due_at: null, option_id: option.id };
    const ids = [option.payment_id];
    const moved = await moveRows(db, "payment", { ids, from: "requires_action", to: "processing", at, set });
    if (moved.length === 0) continue;
    const signatures = await findSignatures(deps, db, option);
    await openAttempt(db, option, at);
    await insertTransfers(db, [{ ...toTransfer(option), ...signatures, state: "awaited", due_at: null }], at);
    opened.push(option);
  }
  return () => {
    if (opened.length === 0) return;
    deps.log.info(
      { chain, payments: opened.map((one) => one.payment_id) },
      "money came by itself for payments that waited",
    );
    deps.metrics.attempts.inc({ outcome: "verified" }, opened.length);
    deps.metrics.paymentMoves.inc({ mode: "live", from: "requires_action", to: "processing" }, opened.length);
    void deps.announce(opened.map((one) => one.payment_id));
  };
}

/** Quotes that movements name, with their payments locked. */
async function lockOptions(db: Db, chain: string, bound: readonly SeenTransfer[]): Promise<LockedQuote[]> {
  const nonces = bound.flatMap((seen) => seen.authorizationNonce ?? []);
  return selectCurrent(db)
    .select(["p.expires_at as deadline", "p.merchant_id"])
    .where("o.chain", "=", chain)
    .where(sql<boolean>`o.authorization_nonce = any(${nonces})`)
    .where("p.mode", "=", "live")
    .orderBy("p.id")
    .forUpdate("p")
    .execute();
}

/** A confirm that waits, or was refused because its authorization is used, lets us make the transfer again after a reorg. */
async function findSignatures(deps: PaymentDeps, db: Db, option: OptionRow): Promise<Signatures | undefined> {
  const attempts = await db
    .selectFrom("attempt")
    .select("results")
    .where("payment_id", "=", option.payment_id)
    .where("option_id", "=", option.id)
    .where("verification", "=", "key")
    .orderBy("created_at", "desc")
    .limit(ATTEMPTS_READ)
    .execute();
  for (const { results } of attempts) {
    const signatures = readSignatures(deps, option, results);
    if (signatures) return signatures;
  }
  return undefined;
}

/** A confirm of the same option that waits for its verdict has it now; without one, the chain is who confirmed. */
async function openAttempt(db: Db, option: OptionRow, at: Date): Promise<void> {
  const waiting = await db
    .selectFrom("attempt")
    .select(["id", "verification"])
    .where("payment_id", "=", option.payment_id)
    .where("option_id", "=", option.id)
    .where("state", "=", "waiting")
    .orderBy("created_at")
    .limit(1)
    .executeTakeFirst();
  const id = waiting?.id ?? newId("att");
  if (!waiting) {
    const digest = createHash("sha256").update(`bound ${option.id}`).digest();
    const { payment_id, id: option_id } = option;
    const row = { id, payment_id, option_id, digest, results: "[]", refusal: null, created_at: at, due_at: null };
    await insertAttempt(db, { ...row, state: "waiting" });
  }
  await moveRows(db, "attempt", { ids: [id], from: "waiting", to: "verified", at, set: { due_at: null } });
  // Nobody has asked the payer's code whether this confirm is the payer's, and now nobody will.
  if (option.needs_data)
    await moveToOpened(db, { attempt: { id, isProved: waiting?.verification !== "wallet" }, option });
}
