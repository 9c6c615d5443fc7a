import { readNextNonce } from "../chains/evm/send.ts";
import { getChain } from "../chains/open.ts";
import { ensureLane } from "../db/lanes.ts";
import type { TransferDeps } from "./deps.ts";
import { startSolana } from "./solana/start.ts";
import { checkUnfinished } from "./unfinished.ts";
import { startWatch } from "./watch.ts";

/**
 * Creates the rows of a chain's lanes and its cursor, and leaves existing rows as they are. Called at every start. Throws
 * ChainFault `unknown_asset` when the networks file lacks an asset that unfinished transfers need.
 */
export async function startTransfers(deps: TransferDeps, chainId: string): Promise<void> {
  await checkUnfinished(deps);
  const chain = getChain(deps.chains, chainId);
  if (chain.family === "solana") return startSolana(deps, chain);
  for (const { address } of deps.keys.get(chain.chain)?.lanes ?? []) {
    const nextNonce = await readNextNonce(chain.rpc, address);
    await ensureLane(deps.db, { id: `${chain.chain}:${address}`, chain: chain.chain, address, nextNonce });
  }
  deps.metrics.laneFeeCeiling.set({ chain: chain.chain }, Number(chain.network.fees.maxFeePerGas));
  // Initialized to 0, so that an alert sees the first increase.
  deps.metrics.gasWithoutTransfer.inc({ chain: chain.chain }, 0);
  await startWatch(deps, chain);
}
