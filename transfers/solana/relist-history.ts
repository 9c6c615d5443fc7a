import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { type EndpointPlaces, listSignaturesOfEach } from "../../chains/solana/transaction-history.ts";
import type { AccountCursor, HeldAccount } from "../../db/queries/account-cursors.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { findPlace, type ListPart, REQUIRED_ENDPOINTS, reportOmissions } from "./list-agreement.ts";
import { MAX_PAGES } from "./list-history.ts";
import { storePage } from "./store-listed.ts";

/**
 * Lists again, at each endpoint, what came after the cursor's `relist_slot`, from the newest transaction backwards, and stores what
 * is not known to be read. Only one endpoint has listed it, or the operator has set the slot. Each endpoint continues before the last
 * transaction that it has listed itself: before one that it does not know, it lists nothing. The listing ends when the lists of at least
 * two endpoints, and of all that answer, go back to the slot or have ended. A later run continues when an endpoint does not answer or
 * lags. Returns true when nothing is left to list now.
 */
export async function relistHistory(
  deps: TransferDeps,
  chain: SolanaChain,
  { cursor, held, final }: { cursor: AccountCursor; held: HeldAccount; final: number },
): Promise<boolean> {
  const { relist_slot: slot, relist_at: listedAfter } = cursor;
  if (slot === null) return true;
  const { account } = held;
  let places: EndpointPlaces = cursor.relist_before ?? {};
  for (let count = 0; count < MAX_PAGES; count += 1) {
    const { shown } = await listSignaturesOfEach(chain, { account, atSlot: final }, places);
    const ended = Object.values(places).filter((place) => place === null);
    if (shown.length + ended.length < REQUIRED_ENDPOINTS) return true;
    const parts = shown.map(({ by, page }): ListPart => {
      const isEnd = (page.at(-1)?.slot ?? 0) <= slot;
      return { by, fresh: page.filter((one) => one.slot > slot), isEnd, to: places[by]?.slot };
    });
    reportOmissions(deps, chain, parts, { final, known: slot });
    const isShort = shown.filter(({ page }) => page.length === 0);
    if (isShort.length < shown.length)
      for (const { by } of isShort)
        deps.log.warn(
          { chain: chain.chain, account, slot, endpoint: by },
          "an endpoint does not list the treasury's history again back to a slot; what the others list stands",
        );
    const isOver = parts.every(({ isEnd }) => isEnd);
    places = { ...places, ...Object.fromEntries(parts.map((part) => [part.by, findPlace(part)])) };
    const listed = parts.flatMap(({ fresh }) => fresh);
    const progress = { relisted: { slot, places: isOver ? undefined : places } };
    if (!(await storePage(deps, { held, listed, listedAfter, since: slot, progress }))) return false;
    if (isOver) return true;
  }
  return false;
}
