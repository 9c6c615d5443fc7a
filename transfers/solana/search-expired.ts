import { type FinalizedState, readAgreedHeight } from "../../chains/solana/cluster-state.ts";
import { readNonces } from "../../chains/solana/nonce-accounts.ts";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { listExpiredReady } from "../../db/queries/expired-transfers.ts";
import type { SolanaTransactionRow } from "../../db/queries/solana-transactions.ts";
import type { TransferRow } from "../../db/queries/transfers.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { runBesidePasses } from "./beside-passes.ts";
import { findExpiryHeight, noteSignedHeights } from "./expiry-heights.ts";
import { listNeverIncluded } from "./never-included.ts";
import { listWaiting } from "./replacements.ts";
import type { TrackedTransaction } from "./tracked-transaction.ts";

/** Transfers checked in one search at most. */
const MAX_CHECKED = 100;

/** Buyers' transfers that no relayer had signed, and hashes of transactions. None of them can be included any longer. */
type Expired = { neverSubmitted: readonly TransferRow[]; neverSeen: readonly string[] };
type Seen = { tracked: readonly TrackedTransaction[]; final: FinalizedState };

const beside = runBesidePasses<Expired>();

/**
 * Searches for transactions that can no longer be included: the final block height, and the confirmed one of two endpoints, is past
 * the lifetime of their blockhash, or another transaction used their durable nonce, and two endpoints whose history goes back to the
 * signing do not know them. A search that waits for an endpoint goes on beside later passes, so that it delays no other payment, and one
 * of them gets what it finds. Returns undefined meanwhile. Throws ChainError.
 */
export function searchExpired(
  deps: Pick<TransferDeps, "db" | "log" | "now">,
  chain: SolanaChain,
  seen: Seen,
): Promise<Expired | undefined> {
  return beside(chain, () => findExpired(deps, chain, seen));
}

async function findExpired(
  deps: Pick<TransferDeps, "db" | "log" | "now">,
  chain: SolanaChain,
  { tracked, final }: Seen,
): Promise<Expired> {
  const args = { chain: chain.chain, height: final.height, now: deps.now(), limit: MAX_CHECKED };
  const ready = await listExpiredReady(deps.db, args);
  const unseen = listWaiting(tracked).map(({ row }) => row);
  await noteSignedHeights(deps, chain, { unseen, final });
  const neverSubmitted = await keepExpired(chain, ready, { final, lastOf: findReportedHeight });
  const expired = await keepExpired(chain, unseen, { final, lastOf: findExpiryHeight });
  const { slot, usedUp } = await listUsedUp(chain, unseen);
  const never = await listNeverIncluded(deps, chain, [...expired, ...usedUp], Math.max(final.slot, slot));
  return { neverSubmitted, neverSeen: [...never] };
}

/** Returns the last height that one endpoint has reported. That suffices for a transaction without our signature: it moves no money. */
const findReportedHeight = (row: TransferRow) => row.last_valid_height ?? undefined;

/**
 * Returns those of these rows whose last height is below the final one, and which two endpoints have passed: one endpoint could end
 * everything in flight by the height that it reports. The confirmed height of the second one suffices, because its final one may
 * stand still. Asks the second endpoint only when the final height has passed. Throws ChainError.
 */
async function keepExpired<R>(
  chain: SolanaChain,
  rows: readonly R[],
  { final, lastOf }: { final: FinalizedState; lastOf: (row: R) => number | undefined },
): Promise<R[]> {
  const listPast = (height: number) => rows.filter((row) => (lastOf(row) ?? height) < height);
  const expired = listPast(final.height);
  if (expired.length === 0 || chain.network.rpc.length < 2) return expired;
  return listPast(Math.min(final.height, await readAgreedHeight(chain)));
}

/**
 * Returns the transactions whose durable nonce has a new final value, and the slot of that value. Ignores values from before
 * the signing, which a lagging endpoint returns.
 */
async function listUsedUp(
  chain: SolanaChain,
  unseen: readonly SolanaTransactionRow[],
): Promise<{ slot: number; usedUp: SolanaTransactionRow[] }> {
  const durable = unseen.filter((row) => row.nonce_account !== null);
  if (durable.length === 0) return { slot: 0, usedUp: [] };
  const places = durable.map((row) => row.nonce_account ?? "");
  const { slot, nonces } = await readNonces(chain, places, "finalized");
  const usedUp = durable.filter(({ nonce_value, nonce_slot }, index) => {
    const nonce = nonces[index];
    return nonce !== undefined && nonce !== nonce_value && slot >= (nonce_slot ?? 0);
  });
  return { slot, usedUp };
}
