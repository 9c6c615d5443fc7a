import { type FinalizedState, readConfirmedHeights } from "../../chains/solana/cluster-state.ts";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { lowerSignedHeights, type SolanaTransactionRow } from "../../db/queries/solana-transactions.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { REQUIRED_ENDPOINTS } from "./list-agreement.ts";

/** Blocks in which a transaction can be included after the one whose blockhash it has, a constant of the protocol. */
const LIFETIME_BLOCKS = 150;
/** Blocks by which endpoints may be behind the newest one, whose blockhash a wallet may have used. */
const MARGIN_BLOCKS = 32;
/** A signed height that is this many blocks above the final one was never reached: a final block is some 32 behind the newest. */
const MAX_ABOVE_FINAL = 100;
/** A height that is this many blocks above the final one does not count while two endpoints report lower ones. Finality seldom lags as much. */
const FAR_ABOVE_FINAL = 1_000;

/**
 * Returns the last block height at which a transaction of ours can be included that has a blockhash. It is rather too high: bytes that
 * are given up too early can move money afterwards. Returns undefined while too few endpoints have reported their heights. Pure.
 */
export function findExpiryHeight({ signed_height: signed }: Pick<SolanaTransactionRow, "signed_height">) {
  return signed === null ? undefined : signed + LIFETIME_BLOCKS + MARGIN_BLOCKS;
}

/**
 * Returns the slot in which the nonce of a payout was read, and 0 for one that is far above the final slot: an endpoint has invented it, and
 * a payout must not wait until the cluster reaches it. Pure.
 */
export function findNonceSlot({ nonce_slot: slot }: Pick<SolanaTransactionRow, "nonce_slot">, final: FinalizedState) {
  return slot === null || slot > final.slot + FAR_ABOVE_FINAL ? 0 : slot;
}

/** Returns a slot that one endpoint reports, or a lower one if it is far above the final slot. Pure. */
export const limitSlot = (slot: number, final: FinalizedState) => Math.min(slot, final.slot + FAR_ABOVE_FINAL);

/**
 * Stores the height at which transactions with a blockhash were signed at the latest: the highest one that two endpoints report now. One
 * of the two may lie. If it reports too little, the other one's height counts; if too much, a lower one replaces it when both report
 * less. One of three that reports far too much does not count. Stores nothing while only one endpoint answers: a later pass does.
 * Waits for none that is suspended.
 */
export async function noteSignedHeights(
  deps: Pick<TransferDeps, "db">,
  chain: SolanaChain,
  { unseen, final }: { unseen: readonly SolanaTransactionRow[]; final: FinalizedState },
): Promise<void> {
  const due = unseen.filter(
    ({ nonce_account: durable, signed_height: signed }) =>
      durable === null && (signed === null || signed > final.height + MAX_ABOVE_FINAL),
  );
  if (due.length === 0) return;
  const heights = await readConfirmedHeights(chain);
  if (heights.length < Math.min(REQUIRED_ENDPOINTS, chain.network.rpc.length)) return;
  const near = heights.filter((height) => height <= final.height + FAR_ABOVE_FINAL);
  const height = Math.max(...(near.length < REQUIRED_ENDPOINTS ? heights : near));
  await lowerSignedHeights(deps.db, { chain: chain.chain, hashes: due.map(({ hash }) => hash), height });
}
