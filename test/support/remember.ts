import { mine, type TestChain } from "./chain.ts";

/**
 * Remembers the chain as it is now. Called, what it gives takes every block since then away and makes as many others,
 * without the transactions that were in them. (anvil_reorg on a fork leaves storage of the old blocks behind.)
 */
export async function remember(chain: TestChain): Promise<() => Promise<void>> {
  const before = await chain.client.getBlockNumber();
  const id = await chain.client.snapshot();
  return async () => {
    const depth = Number((await chain.client.getBlockNumber()) - before);
    await chain.client.revert({ id });
    // Another time makes other blocks.
    await chain.client.increaseTime({ seconds: 7 });
    await mine(chain, depth);
  };
}
