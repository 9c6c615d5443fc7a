import { readNextNonce } from "../chains/evm/send.ts";
import { ensureLane } from "../db/lanes.ts";
import type { TransferDeps } from "./deps.ts";
import { listLaneSigners } from "./lane-signers.ts";
import { startWatch } from "./watch.ts";

/** Makes the lanes and cursors of all networks known; what is known already keeps its place. Run at every start. */
export async function startTransfers(deps: TransferDeps): Promise<void> {
  for (const chain of deps.chains.values()) {
    const { relayers, own } = listLaneSigners(deps, chain);
    for (const { address } of [...relayers, ...own]) {
      const nextNonce = await readNextNonce(chain.rpc, address);
      await ensureLane(deps.db, { id: `${chain.chain}:${address}`, chain: chain.chain, address, nextNonce });
    }
    deps.metrics.laneFeeCeiling.set({ chain: chain.chain }, Number(chain.network.fees.maxFeePerGas));
    await startWatch(deps, chain);
  }
}
