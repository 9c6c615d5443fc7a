import { getChain } from "../chains/open-chains.ts";
import { checkUnfinished } from "./check-unfinished.ts";
import { getTransferDriver } from "./find-transfer-driver.ts";
import { initializeCounters } from "./initialize-counters.ts";
import type { TransferDeps } from "./transfer-deps.ts";

/**
 * Creates the rows of a chain's lanes and its cursor, and leaves existing rows as they are. Called at every start. Throws
 * ChainError `unknown_asset` when the networks file lacks an asset that unfinished transfers need.
 */
export async function startTransfers(deps: TransferDeps, chainId: string): Promise<void> {
  await checkUnfinished(deps);
  // A chain without a cursor is read from another block when the database has lost commits.
  await deps.epoch.check();
  const chain = getChain(deps.chains, chainId);
  initializeCounters(deps, chain);
  await getTransferDriver(chain).start(deps);
}
