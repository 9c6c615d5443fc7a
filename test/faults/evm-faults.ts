import { setTimeout as pause } from "node:timers/promises";
import type { EvmEnvironment } from "./evm-environment.ts";
import type { Fault } from "./fault-scheduler.ts";
import type { Random } from "./seeded-random.ts";

/** The faults of an EVM chain itself. */
export function evmFaults({ client, miner, blockMs, keys }: EvmEnvironment, random: Random): Fault[] {
  const spike = async () => {
    const { baseFeePerGas } = await client.getBlock();
    // Far above what lanes have offered, and below their ceiling.
    const least = baseFeePerGas === null || baseFeePerGas < lowFee ? lowFee : baseFeePerGas;
    const raised = least * BigInt(random.between(2, 50));
    await miner.setBaseFee(raised < highFee ? raised : highFee);
    await pause(blockMs);
  };
  const drop = async () => {
    for (const until = Date.now() + random.between(1_000, 3_000); Date.now() < until; await pause(50)) {
      const { pending } = await client.getTxpoolContent();
      const ours = keys.lanes.flatMap(({ address }) => Object.values(pending[address] ?? {}));
      for (const { hash } of ours)
        if (random.chance(0.5)) await client.dropTransaction({ hash }).catch(() => undefined);
    }
  };
  const reorg = { name: "a reorg", run: () => miner.reorg(random.between(1, 5)) };
  return [reorg, reorg, { name: "a base fee spike", run: spike }, { name: "transactions are dropped", run: drop }];
}

const lowFee = 1_000_000_000n;
const highFee = 60_000_000_000n;
