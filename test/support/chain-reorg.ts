import { mine, type TestChain } from "./evm-chain.ts";

/**
 * Takes a snapshot of the chain and returns a function that causes a reorg: it replaces every block since the snapshot
 * by an empty one. (anvil_reorg is not used, because on a fork it leaves storage of the old blocks behind.)
 */
export async function prepareReorg(chain: TestChain): Promise<() => Promise<void>> {
  const before = await chain.client.getBlockNumber();
  const id = await chain.client.snapshot();
  return async () => {
    const depth = Number((await chain.client.getBlockNumber()) - before);
    await chain.client.revert({ id });
    // A different timestamp gives the new blocks different hashes.
    await chain.client.increaseTime({ seconds: 7 });
    await mine(chain, depth);
  };
}
