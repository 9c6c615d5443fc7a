import type { TokenMovement } from "../../chains/token-movement.ts";
import { listQuoteConfirms, type QuoteConfirms } from "../../db/queries/attempts.ts";
import { findLastReplaced } from "../../db/queries/destination-changes.ts";
import type { LockedQuote } from "../../db/queries/payment-options.ts";
import type { Db } from "../../db/tables.ts";
import { findContradictions, reportContradictions } from "../options/quote-contradictions.ts";
import { findQuoteEnd, hasStaleReceiver } from "../options/quotes.ts";
import type { PaymentDeps } from "../payment-deps.ts";

/** Block times are whole seconds, rounded down, so money may have moved this much later than its block says, milliseconds. */
const BLOCK_TIME_PRECISION_MS = 1_000;

/** The confirms by quote. */
type Confirms = ReadonlyMap<string, QuoteConfirms>;

/**
 * Returns the quotes that the movements pay, one for each payment. The first movement of a payment counts. Several
 * quotes may match a movement and differ only in values that are not on chain (the fee, the amount owed). Then a
 * confirmed quote wins, or else the newest quote that was created before the money moved. A quote that contradicts its payment
 * counts as if it did not exist.
 */
export async function findPaidQuotes(
  deps: PaymentDeps,
  db: Db,
  { movements, quotes }: { movements: readonly TokenMovement[]; quotes: readonly LockedQuote[] },
): Promise<LockedQuote[]> {
  if (quotes.length === 0) return [];
  const rows = await listQuoteConfirms(
    db,
    quotes.map(({ payment_id }) => payment_id),
  );
  const confirms = new Map(rows.map((row) => [row.option_id, row]));
  const quoted = quotes.map((quote) => ({ quote, payment: { ...quote, id: quote.payment_id } }));
  const contradictions = await findContradictions(deps, db, quoted);
  reportContradictions(deps, contradictions);
  const valid = quoted.filter((one) => !contradictions.has(one)).map(({ quote }) => quote);
  const paid = new Map<string, LockedQuote>();
  for (const seen of movements) {
    const inTime = valid.filter((quote) => isFor(seen, quote) && isInTime(seen, quote, confirms));
    const [first] = inTime.toSorted((a, b) => rank(seen, b, confirms) - rank(seen, a, confirms) || b.number - a.number);
    if (!first || paid.has(first.payment_id)) continue;
    if (await wentToStaleReceiver(deps, db, seen, first)) continue;
    paid.set(first.payment_id, first);
  }
  return [...paid.values()];
}

function isFor(seen: TokenMovement, quote: LockedQuote): boolean {
  return (
    seen.authorizationNonce === quote.authorization_nonce &&
    seen.token === quote.token &&
    seen.payer === quote.payer &&
    seen.receiver === quote.receiver &&
    seen.amount === quote.amount
  );
}

/**
 * Returns true if money moved before the payment's deadline and within its quote and the grace period, or by a confirm that was made in
 * time and waits. Money whose time is unknown counts as in time. Pure.
 */
function isInTime({ at }: TokenMovement, quote: LockedQuote, confirms: Confirms): boolean {
  if (at === undefined) return true;
  const waitingSince = confirms.get(quote.id)?.waiting_since;
  if (at > quote.deadline && !(waitingSince && waitingSince <= quote.deadline)) return false;
  // An authorization ends by itself. A push can wait in the pool for as long as its buyer wants.
  if (waitingSince && quote.kind !== "push") return true;
  const end = findQuoteEnd(quote);
  return end === null || at <= end;
}

function rank({ at }: TokenMovement, quote: LockedQuote, confirms: Confirms): number {
  if (confirms.has(quote.id)) return 2;
  return at === undefined || quote.created_at.getTime() < at.getTime() + BLOCK_TIME_PRECISION_MS ? 1 : 0;
}

/**
 * Returns true if money went to a receiver that was no longer valid when it moved: a destination that the merchant had
 * replaced, or a former treasury. Such money is not booked and pays nothing. Otherwise the holder of an old quote could
 * still pay to a compromised destination.
 */
async function wentToStaleReceiver(
  deps: PaymentDeps,
  db: Db,
  seen: TokenMovement,
  quote: LockedQuote,
): Promise<boolean> {
  if (!hasStaleReceiver(deps, quote)) return false;
  if (quote.direct && seen.at !== undefined) {
    const { merchant_id: merchantId, asset, chain, receiver } = quote;
    const leftAt = await findLastReplaced(db, { merchantId, asset, destination: `${chain}:${receiver}` });
    if (leftAt !== null && seen.at <= leftAt) return false;
  }
  const { payment_id: payment, id: option, receiver } = quote;
  deps.log.error(
    { payment, option, receiver, tx: seen.txHash, amount: String(seen.amount) },
    "money for a withdrawn option went to a former destination or treasury; it pays nothing",
  );
  return true;
}
