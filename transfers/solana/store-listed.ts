import type { ListedTransaction } from "../../chains/solana/transaction-history.ts";
import { type HeldAccount, type ListingProgress, storeListing } from "../../db/queries/account-cursors.ts";
import { insertEntries, keepKnownNonces } from "../../db/queries/history-entries.ts";
import { listObservedHashes } from "../../db/queries/observations.ts";
import { listOwnHashes } from "../../db/queries/solana-transactions.ts";
import type { Db } from "../../db/tables.ts";
import type { TransferDeps } from "../transfer-deps.ts";

/** Matches the natural keys of our transfers in a memo. */
export const NONCE = /0x[0-9a-f]{64}/g;

/**
 * Transactions that endpoints list, the same one perhaps several times. `listedAfter`: see `history_entry`. What came up to slot
 * `since` was listed before, by two endpoints.
 */
type Page = {
  held: HeldAccount;
  listed: readonly ListedTransaction[];
  listedAfter: Date | null;
  since: number;
  progress: ListingProgress;
};

/**
 * Stores the listed transactions to be read, without those that are known, and the progress, in one database transaction. Returns
 * false when another reader has taken the account.
 */
export async function storePage(
  deps: TransferDeps,
  { held, listed, listedAfter, since, progress }: Page,
): Promise<boolean> {
  const { chain } = held;
  // What one endpoint lists as failed is read if another one does not.
  const landed = listed.filter(({ failed }) => !failed);
  const hashes = landed.map(({ signature }) => signature);
  return deps.db.transaction().execute(async (db) => {
    if (!(await storeListing(db, held, progress))) return false;
    // The outcome of our own transactions comes from their statuses.
    const own = await listOwnHashes(db, { chain, hashes });
    // The listings of two endpoints overlap, and what was read is not in the table any more.
    const observed = await listObservedHashes(db, { chain, all: landed });
    const fresh = landed.filter(({ signature }) => !own.has(signature) && !observed.has(signature));
    // An endpoint can name any slot. One from before holds nothing, because no endpoint may go back to it to contradict.
    const recent = fresh.filter(({ slot }) => slot > since);
    const named = await listNamed(db, chain, recent);
    // Of several slots, the lowest one from after `since` counts.
    const slots = [...fresh, ...recent.toSorted((one, other) => other.slot - one.slot)];
    const entries = [...new Map(slots.map((one) => [one.signature, one.slot]))].map(([signature, slot]) => {
      const nonces = named.get(signature) ?? [];
      return { signature, slot, listed_after: listedAfter, nonces, urgent: nonces.length > 0, due_at: deps.now() };
    });
    await insertEntries(db, held, entries);
    return true;
  });
}

/**
 * Returns the natural keys of payments and payouts of ours that the memos of these transactions name. The reading order depends on
 * them, and a payment that is named does not expire before the transaction is read.
 */
async function listNamed(
  db: Db,
  chain: string,
  listed: readonly ListedTransaction[],
): Promise<ReadonlyMap<string, string[]>> {
  const named = new Map<string, Set<string>>();
  // Each endpoint's text counts: some list no memos.
  for (const { signature, memo } of listed)
    named.set(signature, new Set([...(named.get(signature) ?? []), ...(memo.match(NONCE) ?? [])]));
  const known = await keepKnownNonces(db, chain, [...new Set([...named.values()].flatMap((nonces) => [...nonces]))]);
  return new Map([...named].map(([signature, nonces]) => [signature, [...nonces].filter((nonce) => known.has(nonce))]));
}
