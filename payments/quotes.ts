import { isDeepStrictEqual } from "node:util";
import { parseAccountId } from "../chains/caip.ts";
import type { CurrentOption, NewOption, OptionRow } from "../db/options.ts";
import type { Candidate } from "./candidates.ts";
import type { PaymentDeps } from "./deps.ts";
import { type Refusal, refuse } from "./errors.ts";

/** What a buyer was shown and signs, and what the merchant is owed for it; by these a quote is the same or another. */
const terms = [
  ...(["chain", "token", "receiver", "direct", "kind", "authorization_nonce", "valid_before"] as const),
  ...(["amount", "rate", "quoted_until", "fee", "fee_fixed", "fee_points", "owed_asset", "owed_amount"] as const),
  ...(["allowance", "needs_data"] as const),
] as const satisfies readonly (keyof NewOption)[];

/** Pure: true when a quote says what the one before it says: then that one is shown again, and no row is written. */
export function isSameQuote(before: OptionRow, quote: NewOption): boolean {
  return terms.every((term) => isDeepStrictEqual(before[term], quote[term]));
}

/** Pure: true when two quotes are signed alike, so that one movement may be either's. */
export function movesTheSame(one: OptionRow, other: OptionRow): boolean {
  return (["asset", "payer", "receiver", "amount", "valid_before"] as const).every((term) => one[term] === other[term]);
}

/** Pure: the candidate at the price at which it was quoted before, while that holds. */
export function keepPrice(candidate: Candidate, before: OptionRow | undefined, now: Date): Candidate {
  if (candidate.rate === null || !before?.quoted_until || before.quoted_until <= now) return candidate;
  const { amount, rate, quoted_until: quotedUntil } = before;
  return { ...candidate, amount, rate, quotedUntil };
}

/** Returns why a quote cannot be confirmed any more (`quote_expired`); undefined while it can. */
export function findQuoteEnd(deps: Pick<PaymentDeps, "chains" | "now">, quote: CurrentOption): Refusal | undefined {
  if (quote.quoted_until && quote.quoted_until <= deps.now())
    return refuse("quote_expired", "the option's quote has expired");
  return isWithdrawn(deps, quote) ? refuse("quote_expired", WITHDRAWN) : undefined;
}

/** What is said of an option whose money would go where it is not to go any more. */
export const WITHDRAWN = "the option was withdrawn because the merchant is paid elsewhere now; ask for options again";

/**
 * True when a quote is not offered any more: its money would go elsewhere, the merchant is not paid in its asset now, or
 * the networks file has the asset no longer, or as another kind.
 */
function isWithdrawn(deps: Pick<PaymentDeps, "chains">, quote: CurrentOption): boolean {
  const token = deps.chains.get(quote.chain)?.tokens.get(quote.asset);
  return token?.kind !== quote.kind || quote.registered === null || goesElsewhere(deps, quote);
}

/** True when the money of a quote would go neither to the merchant's present destination nor to our present treasury. */
export function goesElsewhere({ chains }: Pick<PaymentDeps, "chains">, quote: CurrentOption): boolean {
  if (!quote.direct) return quote.receiver !== chains.get(quote.chain)?.treasury;
  return parseAccountId(quote.registered ?? "")?.address.toLowerCase() !== quote.receiver;
}
