import type { BroadcastResult } from "../../chains/evm/evm-broadcast.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import { recordBroadcast, type TransactionKey } from "../../db/queries/transactions.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { forgetLaneBalance } from "./lane-funds.ts";
import { skipForeignNonces } from "./lane-nonce.ts";

/** Stores the result of a broadcast. The watcher, which broadcasts again, uses it too. */
export async function storeBroadcastResult(
  deps: TransferDeps,
  chain: EvmChain,
  key: TransactionKey,
  broadcast: BroadcastResult,
): Promise<void> {
  const state = broadcast.outcome === "accepted" ? "accepted" : "broadcast";
  deps.metrics.transactions.inc({ chain: chain.chain, state: broadcast.outcome });
  await recordBroadcast(deps.db, key, { state, at: deps.now() });
  if (broadcast.outcome === "accepted") return;
  deps.log.warn(
    { chain: chain.chain, lane: key.lane_id, nonce: key.nonce, outcome: broadcast.outcome, reason: broadcast.reason },
    "broadcast was not accepted",
  );
  if (broadcast.outcome === "insufficient_funds") forgetLaneBalance(chain, key.lane_id);
  if (broadcast.outcome !== "nonce_too_low") return;
  // Either these bytes or a replacement are already in a block, or another program uses the key. The watcher finds out
  // which. Skipping the used nonces here avoids wasting more of them.
  await skipForeignNonces(deps, chain, key);
}
