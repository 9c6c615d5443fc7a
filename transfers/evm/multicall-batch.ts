import type { Hex } from "viem";
import { type Call, encodeMulticall } from "../../chains/evm/multicall.ts";

/** Gas of a transaction before its first call, including the overhead of Multicall3. */
export const BASE_GAS = 60_000n;

/** The content of a lane's next transaction: one direct call, or several calls through Multicall3. */
export type Payload = { to: Hex; data: Hex; gas: bigint };

/**
 * Picks the transfers of one transaction: the oldest first, as many as `batchGas` allows. A transfer that is marked `alone`
 * gets a transaction of its own.
 */
export function pickBatch<T extends { alone: boolean; gas: number }>(ready: readonly T[], batchGas: number): T[] {
  const [first] = ready;
  if (!first) return [];
  if (first.alone) return [first];
  const batch: T[] = [];
  let left = batchGas - Number(BASE_GAS);
  for (const item of ready) {
    if (item.alone) continue;
    left -= item.gas;
    if (left < 0 && batch.length > 0) break;
    batch.push(item);
  }
  return batch;
}

/** Returns the gas limit of a transaction for these members: the sum of their gas limits, and of what it needs besides. */
export function sumGas(members: readonly { gas: number }[]): bigint {
  return BASE_GAS + members.reduce((sum, member) => sum + BigInt(member.gas), 0n);
}

/** Puts the calls of all members into one transaction. */
export function buildPayload(multicall: Hex, members: readonly { calls: readonly Call[]; gas: number }[]): Payload {
  const gas = sumGas(members);
  const calls = members.flatMap((member) => member.calls);
  const [only] = calls;
  if (calls.length === 1 && only) return { to: only.target, data: only.data, gas };
  return { to: multicall, data: encodeMulticall(calls), gas };
}
