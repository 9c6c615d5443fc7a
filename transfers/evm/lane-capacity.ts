import type { Sender } from "../../chains/chain-driver.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import { wakeEnoughLanes } from "../../db/queries/lanes.ts";
import type { Db } from "../../db/tables.ts";
import { listLaneAddresses } from "./lane-signers.ts";

/** Another worker can take over a lane when its owner has not renewed the lease for this long, milliseconds. */
export const LEASE_MS = 5_000;
/**
 * A lane counts as working while it was taken, or its last transaction was stored, no longer ago than this, milliseconds. When
 * an endpoint takes longer, other lanes send meanwhile.
 */
const WORKING_MS = 1_000;

/** Returns how many transfers can share one transaction. A lane claims no more than that. */
export function maxBatchSize(chain: EvmChain): number {
  const least = Math.min(...[...chain.tokens.values()].map((token) => token.transferGas));
  return Math.max(1, Math.floor(chain.network.batchGas / least));
}

/**
 * Asks the owners of a sender's lanes to check for ready transfers. Returns true when they can send all that wait. A further
 * lane starts only when the next batches of the working ones are full, because transfers that share a transaction cost less:
 * without this rule, every worker took a lane of its own and sent a few transfers at a time.
 */
export function wakeOwners({ db }: { db: Db }, chain: EvmChain, sender: Sender): Promise<boolean> {
  const lanes = { chain: chain.chain, addresses: listLaneAddresses(chain, sender) };
  return wakeEnoughLanes(db, { ...lanes, most: maxBatchSize(chain), recentMs: LEASE_MS - WORKING_MS });
}
