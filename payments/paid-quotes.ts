import { sql } from "kysely";
import type { SeenTransfer } from "../chains/movements.ts";
import type { CurrentOption } from "../db/options.ts";
import type { Db } from "../db/tables.ts";
import type { PaymentDeps } from "./deps.ts";
import { goesElsewhere } from "./quotes.ts";

/** A quote of a payment that is locked, with the payment's deadline. */
export type LockedQuote = CurrentOption & { deadline: Date; merchant_id: string };

/**
 * Money that its payer sends by itself cannot be refused at the end of a quote: it takes its time into a block. What moves
 * later than this after the end pays nothing, milliseconds: a buyer who waits must not choose among yesterday's prices.
 */
export const LATE_QUOTE_MS = 10 * 60_000;

/** The confirms of a quote: when the first of those was accepted that still wait. */
type Confirms = ReadonlyMap<string, { waitingSince: Date | null }>;

/**
 * Returns the quotes that movements pay, one for each payment; the first movement of a payment counts. Several quotes may
 * ask for the same movement and differ in what the chain does not show (a fee, what is owed): then one that was confirmed
 * counts, else the newest that was made before the money moved.
 */
export async function findPaidQuotes(
  deps: PaymentDeps,
  db: Db,
  { bound, quotes }: { bound: readonly SeenTransfer[]; quotes: readonly LockedQuote[] },
): Promise<LockedQuote[]> {
  if (quotes.length === 0) return [];
  const confirms = await readConfirms(db, quotes);
  const paid = new Map<string, LockedQuote>();
  for (const seen of bound) {
    const inTime = quotes.filter((quote) => isFor(seen, quote) && isInTime(seen, quote, confirms));
    const [first] = inTime.toSorted((a, b) => rank(seen, b, confirms) - rank(seen, a, confirms) || b.number - a.number);
    if (!first || paid.has(first.payment_id)) continue;
    if (await hasGoneElsewhere(deps, db, seen, first)) continue;
    paid.set(first.payment_id, first);
  }
  return [...paid.values()];
}

function isFor(seen: SeenTransfer, quote: LockedQuote): boolean {
  return (
    seen.authorizationNonce === quote.authorization_nonce &&
    seen.token === quote.token &&
    seen.payer === quote.payer &&
    seen.receiver === quote.receiver &&
    seen.amount === quote.amount
  );
}

/** Pure: before the payment's deadline and about within its quote. Money whose time a reading does not tell counts as in time. */
function isInTime({ at }: SeenTransfer, quote: LockedQuote, confirms: Confirms): boolean {
  if (at === undefined) return true;
  const waitingSince = confirms.get(quote.id)?.waitingSince;
  if (waitingSince) return at <= quote.deadline || waitingSince <= quote.deadline;
  const quoteEnd = quote.quoted_until && new Date(quote.quoted_until.getTime() + LATE_QUOTE_MS);
  return at <= quote.deadline && (quoteEnd === null || at <= quoteEnd);
}

function rank({ at }: SeenTransfer, quote: LockedQuote, confirms: Confirms): number {
  if (confirms.has(quote.id)) return 2;
  return at === undefined || quote.created_at <= at ? 1 : 0;
}

async function readConfirms(db: Db, quotes: readonly LockedQuote[]): Promise<Confirms> {
  const rows = await db
    .selectFrom("attempt")
    .select(["option_id", sql<Date | null>`min(created_at) filter (where state = 'waiting')`.as("waitingSince")])
    .where(sql<boolean>`payment_id = any(${quotes.map(({ payment_id }) => payment_id)})`)
    .groupBy("option_id")
    .execute();
  return new Map(rows.map(({ option_id, waitingSince }) => [option_id, { waitingSince }]));
}

/**
 * True when money went where it was not to go any more when it moved: to a destination that the merchant had left, or to
 * a treasury that was ours once. It is in nobody's books here, and it does not pay: a stolen destination would be as
 * good as the present one to whoever holds an old quote.
 */
async function hasGoneElsewhere(deps: PaymentDeps, db: Db, seen: SeenTransfer, quote: LockedQuote): Promise<boolean> {
  if (!goesElsewhere(deps, quote)) return false;
  if (quote.direct && seen.at !== undefined) {
    const leftAt = await findLeft(db, quote);
    if (leftAt !== null && seen.at <= leftAt) return false;
  }
  const { payment_id: payment, id: option, receiver } = quote;
  deps.log.error(
    { payment, option, receiver, tx: seen.txHash, amount: String(seen.amount) },
    "money for a withdrawn option went to an account that is not the merchant's or ours any more; it pays nothing",
  );
  return true;
}

/** When a merchant left a destination the last time. */
async function findLeft(db: Db, quote: LockedQuote): Promise<Date | null> {
  const row = await db
    .selectFrom("destination_change")
    .select(({ fn }) => fn.max("at").as("at"))
    .where("merchant_id", "=", quote.merchant_id)
    .where("asset", "=", quote.asset)
    .where(sql<boolean>`lower(before) = ${`${quote.chain}:${quote.receiver}`}`)
    .executeTakeFirst();
  return row?.at ?? null;
}
