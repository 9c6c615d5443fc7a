import { setTimeout as pause } from "node:timers/promises";
import type { ChainClient } from "../../local/chain-client.ts";
import { addCleanup } from "../support/cleanups.ts";

export type Miner = {
  /** Starts to mine a block at each interval instead of one for each transaction. */
  start(): Promise<void>;
  /** Replaces the newest blocks with empty ones; the transactions in them and in the pool are gone. */
  reorg(depth: number): Promise<void>;
  /** Sets the next block's base fee, wei per gas; later base fees follow by the protocol. */
  setBaseFee(wei: bigint): Promise<void>;
  /** Advances the chain's clock. */
  advance(seconds: number): Promise<void>;
  stop(): Promise<void>;
};

/**
 * Creates a miner that, once started, mines a block every `blockMs` milliseconds. Blocks and reorgs are serialized, so
 * that nothing is mined in the middle of a reorg.
 */
export function makeMiner(client: ChainClient, blockMs: number): Miner {
  const stopping = new AbortController();
  /** Seconds by which the chain's clock was advanced. */
  let ahead = 0;
  let previous: Promise<unknown> = Promise.resolve();
  const serialize = <T>(work: () => Promise<T>): Promise<T> => {
    const mine = previous.then(work);
    previous = mine.catch(() => undefined);
    return mine;
  };
  const mine = async () => {
    for (let next = Date.now(); !stopping.signal.aborted; ) {
      next = Math.max(next + blockMs, Date.now());
      await pause(next - Date.now(), undefined, { signal: stopping.signal }).catch(() => undefined);
      await serialize(() => client.mine({ blocks: 1 })).catch(() => undefined);
    }
  };
  let mining: Promise<void> | undefined;
  const stop = async () => {
    stopping.abort();
    await mining;
  };
  addCleanup(stop);
  // viem's types do not include these methods.
  const request = client.request as unknown as (call: { method: string; params: unknown[] }) => Promise<unknown>;
  return {
    async start() {
      await client.setAutomine(false);
      mining ??= mine();
    },
    reorg: (depth) =>
      serialize(async () => {
        await request({ method: "anvil_reorg", params: [depth, []] });
        // Anvil continues from the time of the last kept block, and would fall further behind with each reorg.
        await request({ method: "anvil_setTime", params: [Math.round(Date.now() / 1_000) + ahead] });
      }),
    setBaseFee: (wei) => serialize(() => client.setNextBlockBaseFeePerGas({ baseFeePerGas: wei })),
    advance: (seconds) =>
      serialize(async () => {
        await client.increaseTime({ seconds });
        ahead += seconds;
      }),
    stop,
  };
}
