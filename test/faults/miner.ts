import { setTimeout as pause } from "node:timers/promises";
import type { ChainClient } from "../../ops/local/chain-client.ts";
import { atEnd } from "../support/at-end.ts";

export type Miner = {
  /** From now on blocks are made in time, and no longer for each transaction. */
  start(): Promise<void>;
  /** Makes the newest blocks anew, without the transactions that were in them and in the pool. */
  reorg(depth: number): Promise<void>;
  /** The next block's base fee, wei per gas; later ones follow from it by the rules. */
  setBaseFee(wei: bigint): Promise<void>;
  /** Raises the chain's own clock. */
  advance(seconds: number): Promise<void>;
  stop(): Promise<void>;
};

/**
 * Makes a block every so many milliseconds, once it is started. Blocks and changes of the chain's past take turns, so that nothing is mined
 * in the middle of a reorg.
 */
export function makeMiner(client: ChainClient, blockMs: number): Miner {
  const stopping = new AbortController();
  /** Seconds that the chain's clock was put forward. */
  let ahead = 0;
  let turn: Promise<unknown> = Promise.resolve();
  const alone = <T>(work: () => Promise<T>): Promise<T> => {
    const mine = turn.then(work);
    turn = mine.catch(() => undefined);
    return mine;
  };
  const mine = async () => {
    for (let next = Date.now(); !stopping.signal.aborted; ) {
      next = Math.max(next + blockMs, Date.now());
      await pause(next - Date.now(), undefined, { signal: stopping.signal }).catch(() => undefined);
      await alone(() => client.mine({ blocks: 1 })).catch(() => undefined);
    }
  };
  let mining: Promise<void> | undefined;
  const stop = async () => {
    stopping.abort();
    await mining;
  };
  atEnd(stop);
  // viem does not know the methods.
  const request = client.request as unknown as (call: { method: string; params: unknown[] }) => Promise<unknown>;
  return {
    async start() {
      await client.setAutomine(false);
      mining ??= mine();
    },
    reorg: (depth) =>
      alone(async () => {
        await request({ method: "anvil_reorg", params: [depth, []] });
        // Anvil goes on from the time of the last block that stayed, and would lag behind more and more.
        await request({ method: "anvil_setTime", params: [Math.round(Date.now() / 1_000) + ahead] });
      }),
    setBaseFee: (wei) => alone(() => client.setNextBlockBaseFeePerGas({ baseFeePerGas: wei })),
    advance: (seconds) =>
      alone(async () => {
        await client.increaseTime({ seconds });
        ahead += seconds;
      }),
    stop,
  };
}
