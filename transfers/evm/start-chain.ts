import { readNextNonce } from "../../chains/evm/evm-broadcast.ts";
import { lowerCaseHex } from "../../chains/evm/hex.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import { readFromReadable } from "../../chains/evm/readable-answers.ts";
import { ensureLane } from "../../db/queries/lanes.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { startWatch } from "./block-pass.ts";

/** Creates the rows of an EVM chain's lanes and its cursor, and leaves existing rows as they are. */
export async function startEvm(deps: TransferDeps, chain: EvmChain): Promise<void> {
  for (const lane of chain.network.lanes) {
    const address = lowerCaseHex(lane.address);
    const nextNonce = await readFromReadable(chain, (rpc) => readNextNonce(rpc, address));
    await ensureLane(deps.db, { id: `${chain.chain}:${address}`, chain: chain.chain, address, nextNonce });
  }
  deps.metrics.laneFeeCeiling.set({ chain: chain.chain }, Number(chain.network.fees.maxFeePerGas));
  // Initialized to 0, so that an alert sees the first increase.
  deps.metrics.gasWithoutTransfer.inc({ chain: chain.chain }, 0);
  if (chain.network.screening) deps.metrics.screeningFailures.inc({ chain: chain.chain, provider: "oracle" }, 0);
  await startWatch(deps, chain);
}
