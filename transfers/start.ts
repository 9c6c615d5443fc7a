import { getChain } from "../chains/open.ts";
import type { TransferDeps } from "./deps.ts";
import { driverOf } from "./driver.ts";
import { checkUnfinished } from "./unfinished.ts";

/**
 * Creates the rows of a chain's lanes and its cursor, and leaves existing rows as they are. Called at every start. Throws
 * ChainFault `unknown_asset` when the networks file lacks an asset that unfinished transfers need.
 */
export async function startTransfers(deps: TransferDeps, chainId: string): Promise<void> {
  await checkUnfinished(deps);
  await driverOf(getChain(deps.chains, chainId)).start(deps);
}
