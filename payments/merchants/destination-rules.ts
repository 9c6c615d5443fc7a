import { parseAccountId } from "../../chains/caip.ts";
import { canonicalAddress } from "../../chains/canonical-ids.ts";
import type { ChangeTerms } from "../../db/queries/destination-changes.ts";

const HOUR_MS = 60 * 60_000;

/**
 * A change of one asset's destination: the account (CAIP-10) before and after it. Null: there is none. `givenAsset` is the
 * asset as its merchant spelled it; null where that is `asset`.
 */
export type WantedChange = {
  destinationId: string;
  asset: string;
  givenAsset: string | null;
  before: string | null;
  after: string | null;
};

/**
 * Returns when a change applies. A deletion moves no money and applies at once. So does the first destination for an
 * asset while the merchant is new: it has not been paid, and its first change is younger than the account's waiting period.
 * Every other change waits for that period; a destination that was deleted and is added again is not the first one.
 */
export function findApplyTime(
  terms: ChangeTerms,
  { asset, before, after }: Pick<WantedChange, "asset" | "before" | "after">,
  at: Date,
): Date {
  const waitMs = terms.waiting_hours * HOUR_MS;
  const firstAt = terms.first_change_at ?? at;
  const isNew = !terms.has_been_paid && at.getTime() - firstAt.getTime() < waitMs;
  const isFirst = before === null && isNew && !terms.known_assets.includes(asset);
  return after === null || isFirst ? at : new Date(at.getTime() + waitMs);
}

/**
 * Returns what a request for an account does: nothing when the account waits already, a withdrawal of the waiting change
 * when the account applies already, and otherwise a new change, which replaces the waiting one.
 */
export function planChange(args: {
  applied: string | null;
  waiting: string | null;
  wanted: string;
}): "keep" | "withdraw" | "request" {
  const [applied, waiting, wanted] = [args.applied, args.waiting, args.wanted].map(
    (text) => text && toComparable(text),
  );
  if (wanted === waiting) return "keep";
  return wanted === applied ? "withdraw" : "request";
}

/** Returns the form in which accounts are compared. */
function toComparable(text: string): string {
  const account = parseAccountId(text);
  return account ? `${account.chain}:${canonicalAddress(account.chain, account.address)}` : text;
}
