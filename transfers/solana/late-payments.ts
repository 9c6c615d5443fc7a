import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import {
  type EndpointPlaces,
  type ListedTransaction,
  listSignaturesOfEach,
} from "../../chains/solana/transaction-history.ts";
import { findHistoryProgress } from "../../db/queries/account-cursors.ts";
import { listPaidBeside } from "../../db/queries/expired-transfers.ts";
import type { SolanaTransferRow } from "../../db/queries/transfers.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { runBesidePasses } from "./beside-passes.ts";
import { type SortedByBlockhash, sortByBlockhash } from "./expired-blockhashes.ts";
import { findPlace, type ListPart } from "./list-agreement.ts";
import { MAX_PAGES } from "./list-history.ts";
import { NONCE } from "./store-listed.ts";

/**
 * A transfer that was accepted longer ago than this may have waited, while no worker ran, until its blockhash expired, milliseconds. Workers
 * sign the others without asking, because their blockhashes were valid when they were accepted.
 */
const LATE_MS = 5_000;
/** How long what a check has found counts for later calls, milliseconds. Other workers may make the next ones. */
const CHECK_KEPT_MS = 30_000;

type Deps = Pick<TransferDeps, "now" | "db">;
/** A transaction that is confirmed, and not booked yet, names those in `named`. It may be their buyer's own transfer. */
type Sorted = SortedByBlockhash & { named: readonly SolanaTransferRow[] };

const beside = runBesidePasses<Sorted & { at: number }>();

/** Returns the time before which transfers were accepted that may have waited for too long. */
export const lateBefore = ({ now }: Pick<Deps, "now">) => new Date(now().getTime() - LATE_MS);

/**
 * Sorts late transfers of buyers as `sortByBlockhash` does, and puts those into `named` that their buyers may have made themselves. A check
 * that waits for an endpoint goes on beside later calls, so that it delays no other payment, and one of them gets what it finds. A transfer
 * is in no list meanwhile.
 */
export async function sortLate(deps: Deps, chain: SolanaChain, rows: readonly SolanaTransferRow[]): Promise<Sorted> {
  const found = rows.length > 0 ? await beside(chain, () => check(deps, chain, rows)) : undefined;
  const isRecent = found !== undefined && deps.now().getTime() - found.at <= CHECK_KEPT_MS;
  if (!isRecent) return { signable: [], expired: [], named: [] };
  // An earlier call may have begun the check, with other transfers.
  const keep = (sorted: readonly SolanaTransferRow[]) => rows.filter(({ id }) => sorted.some((one) => one.id === id));
  const valid = keep(found.signable);
  // Asked after the endpoints: what they have shown may have been listed and read meanwhile.
  const paid = await listPaidBeside(deps.db, { ids: valid.map(({ id }) => id), now: deps.now() });
  return {
    signable: valid.filter(({ id }) => !paid.has(id)),
    expired: keep(found.expired),
    named: [...keep(found.named), ...valid.filter(({ id }) => paid.has(id))],
  };
}

async function check(deps: Deps, chain: SolanaChain, rows: readonly SolanaTransferRow[]) {
  const { signable: valid, expired } = await sortByBlockhash(chain, rows);
  const nonces = valid.length > 0 ? await listNamedNonces(deps, chain) : new Set<string>();
  const named = valid.filter((row) => nonces?.has(row.authorization_nonce));
  const signable = nonces ? valid.filter((row) => !named.includes(row)) : [];
  return { signable, expired, named, at: deps.now().getTime() };
}

/**
 * Returns the natural keys that the memos of the treasury's confirmed transactions name, at any endpoint and in any asset, in slots up to
 * which the history is not listed. Leaves out endpoints that do not answer. Returns undefined while none lists all of these transactions.
 */
async function listNamedNonces({ db }: Deps, chain: SolanaChain): Promise<ReadonlySet<string> | undefined> {
  const lists = await Promise.all(
    [...chain.tokens.values()].map(async ({ treasuryAccount: account }) => {
      const progress = await findHistoryProgress(db, { chain: chain.chain, accounts: [account] });
      return listUnlisted(chain, account, progress?.listedSlot ?? -1);
    }),
  );
  if (lists.includes(undefined)) return undefined;
  const landed = lists.flatMap((list) => list ?? []).filter(({ failed }) => !failed);
  return new Set(landed.flatMap(({ memo }) => memo.match(NONCE) ?? []));
}

/**
 * Returns an account's confirmed transactions after a slot, as any endpoint lists them; undefined while none lists all of them. Leaves out
 * endpoints that have not reached the slot.
 */
async function listUnlisted(
  chain: SolanaChain,
  account: string,
  listedSlot: number,
): Promise<ListedTransaction[] | undefined> {
  const found: ListedTransaction[] = [];
  let hasEnded = false;
  let places: EndpointPlaces = {};
  for (let count = 0; count < MAX_PAGES; count += 1) {
    const of = { account, depth: "confirmed" as const, atSlot: Math.max(0, listedSlot) };
    const { shown } = await listSignaturesOfEach(chain, of, places);
    const parts = shown.map(({ by, page }): ListPart => {
      const fresh = page.filter(({ slot }) => slot > listedSlot);
      return { by, fresh, isEnd: fresh.length < page.length };
    });
    found.push(...parts.flatMap(({ fresh }) => fresh));
    const continued = parts.flatMap((part) => {
      const place = findPlace(part);
      return place ? [[part.by, place] as const] : [];
    });
    hasEnded ||= continued.length < parts.length;
    if (continued.length === 0) break;
    const others = chain.network.rpc.map(({ name }) => [name, null] as const);
    places = Object.fromEntries([...others, ...continued]);
  }
  return hasEnded ? found : undefined;
}
