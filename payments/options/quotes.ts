import { isDeepStrictEqual } from "node:util";
import { parseAccountId } from "../../chains/caip.ts";
import { canonicalAddress } from "../../chains/canonical-ids.ts";
import { findAsset } from "../../chains/open-chains.ts";
import type { CurrentOption, NewOption, OptionRow } from "../../db/queries/payment-options.ts";
import { type Refusal, refuse } from "../error-codes.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import type { Price } from "./candidates.ts";

/**
 * Grace period after a quote's end, milliseconds. Money that the payer sends on their own takes time to reach a block,
 * so it is accepted this long. Later money pays nothing: a buyer must not wait and choose among old prices.
 */
export const QUOTE_GRACE_MS = 10 * 60_000;

/** The columns that define a quote: what the buyer sees and signs, and what the merchant is owed. */
const terms = [
  ...(["chain", "token", "receiver", "direct", "kind", "authorization_nonce", "valid_before"] as const),
  ...(["amount", "rate", "quoted_until", "fee", "fee_fixed", "fee_basis_points", "owed_asset", "owed_amount"] as const),
  ...(["allowance", "needs_data"] as const),
] as const satisfies readonly (keyof NewOption)[];

/** Returns true when a quote equals the previous one, which is then reused. Pure. */
export function isSameQuote(before: OptionRow, quote: Omit<NewOption, "id">): boolean {
  return terms.every((term) => before[term] === quote[term] || isDeepStrictEqual(before[term], quote[term]));
}

/** Returns true when two quotes ask for the same transfer, so that a movement on chain matches both. Pure. */
export function isSameTransfer(one: OptionRow, other: OptionRow): boolean {
  return (["asset", "payer", "receiver", "amount"] as const).every((term) => one[term] === other[term]);
}

/** Returns until when money may move by a quote at a price; null for a quote that needs no price. Pure. */
export function findQuoteEnd({ quoted_until: end }: Pick<OptionRow, "quoted_until">): Date | null {
  return end && new Date(end.getTime() + QUOTE_GRACE_MS);
}

/** Returns the price of a quote, while it is valid; undefined for none, and for a quote that needs no price. Pure. */
export function findQuotedPrice(quote: OptionRow | undefined, now: Date): Price | undefined {
  if (!quote?.quoted_until || quote.quoted_until <= now) return undefined;
  const { amount, rate, quoted_until: quotedUntil } = quote;
  return { amount, rate, quotedUntil };
}

/** Returns the refusal (`quote_expired`) for a quote that can no longer be confirmed; undefined while it can. */
export function findQuoteRefusal(deps: Pick<PaymentDeps, "chains" | "now">, quote: CurrentOption): Refusal | undefined {
  if (quote.quoted_until && quote.quoted_until <= deps.now())
    return refuse("quote_expired", "the option's quote has expired");
  return isWithdrawn(deps, quote) ? refuse("quote_expired", OPTION_WITHDRAWN) : undefined;
}

/** The refusal of an option whose receiver is no longer valid. */
export const OPTION_WITHDRAWN =
  "the option was withdrawn because the merchant is paid elsewhere now; ask for options again";

/**
 * Returns true when a quote is no longer offered: its receiver is no longer valid, the merchant is no longer paid in
 * its asset, or the networks file has removed the asset, changed its kind, or removed the asset that the merchant would be owed.
 */
function isWithdrawn(deps: Pick<PaymentDeps, "chains">, quote: CurrentOption): boolean {
  const token = deps.chains.get(quote.chain)?.tokens.get(quote.asset);
  const isOwedDelisted = quote.owed_asset !== null && !findAsset(deps.chains, quote.owed_asset);
  return token?.kind !== quote.kind || isOwedDelisted || quote.registered === null || hasStaleReceiver(deps, quote);
}

/** Returns true when the receiver of a quote is neither the merchant's current destination nor our current treasury. */
export function hasStaleReceiver({ chains }: Pick<PaymentDeps, "chains">, quote: CurrentOption): boolean {
  if (!quote.direct) return quote.receiver !== chains.get(quote.chain)?.treasury;
  const address = parseAccountId(quote.registered ?? "")?.address ?? "";
  return canonicalAddress(quote.chain, address) !== quote.receiver;
}
