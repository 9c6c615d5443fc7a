import { findTreasuryEpoch } from "../../transfers/caught-up.ts";

/** Returns true when the treasury may sign on a chain: the chain's watcher has read everything that it must know first. */
export async function isCaughtUp(deps: Parameters<typeof findTreasuryEpoch>[0], chain: string): Promise<boolean> {
  return (await findTreasuryEpoch(deps, chain)) !== undefined;
}
