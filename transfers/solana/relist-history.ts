import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { listSignaturesOfEach } from "../../chains/solana/transaction-history.ts";
import type { AccountCursor, HeldAccount } from "../../db/queries/account-cursors.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { REQUIRED_ENDPOINTS, reportOmissions } from "./list-agreement.ts";
import { findNext, MAX_PAGES } from "./list-history.ts";
import { storePage } from "./store-listed.ts";

/**
 * Lists again, at each endpoint, what came after the cursor's `relist_slot`, from the newest transaction backwards, and stores what
 * is not known to be read. Only one endpoint has listed it, or the operator has set the slot. A later run continues when an endpoint does
 * not answer or lags. An endpoint whose history does not go back so far ends it. Returns true when nothing is left to list now.
 */
export async function relistHistory(
  deps: TransferDeps,
  chain: SolanaChain,
  { cursor, held, final }: { cursor: AccountCursor; held: HeldAccount; final: number },
): Promise<boolean> {
  const { relist_slot: slot } = cursor;
  if (slot === null) return true;
  const { account } = held;
  const save = (listed: Parameters<typeof storePage>[1]["listed"], before: string | undefined) =>
    storePage(deps, { held, listed, listedAfter: null, since: slot, progress: { relisted: { slot, before } } });
  let before = cursor.relist_before ?? undefined;
  for (let count = 0; count < MAX_PAGES; count += 1) {
    const { shown } = await listSignaturesOfEach(chain, { account, before, atSlot: final });
    if (shown.length < REQUIRED_ENDPOINTS) return true;
    const isEmpty = shown.every(({ page }) => page.length === 0);
    const pages = shown.filter(({ page }) => isEmpty || page.length > 0);
    if (pages.length < REQUIRED_ENDPOINTS) {
      deps.log.warn(
        { chain: chain.chain, account, slot },
        "no second endpoint lists the treasury's history again back to a slot; what one endpoint has listed stands",
      );
      return save([], undefined);
    }
    const parts = pages.map(({ by, page }) => ({
      by,
      fresh: page.filter((one) => one.slot > slot),
      isEnd: (page.at(-1)?.slot ?? 0) <= slot,
    }));
    reportOmissions(deps, chain, parts, { final, known: slot });
    before = findNext(parts)?.signature;
    const listed = parts.flatMap(({ fresh }) => fresh);
    if (!(await save(listed, before))) return false;
    if (before === undefined) return true;
  }
  return false;
}
