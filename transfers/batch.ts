import type { Hex } from "viem";
import { type Call, encodeMulticall } from "../chains/evm/multicall.ts";

/** Gas a transaction takes before its first call, and what Multicall3 adds of its own. */
export const BASE_GAS = 60_000n;

/** What a lane is about to sign: one call by itself, or several through Multicall3. */
export type Payload = { to: Hex; data: Hex; gas: bigint };

/**
 * Picks what goes into one transaction: the oldest first, as many as the gas allows. A transfer that has to go alone
 * goes alone.
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

/** Puts the calls of members into one transaction. `gas` is the sum of what each member may take. */
export function buildPayload(multicall: Hex, members: readonly { calls: readonly Call[]; gas: number }[]): Payload {
  const gas = BASE_GAS + members.reduce((sum, member) => sum + BigInt(member.gas), 0n);
  const calls = members.flatMap((member) => member.calls);
  const [only] = calls;
  if (calls.length === 1 && only) return { to: only.target, data: only.data, gas };
  return { to: multicall, data: encodeMulticall(calls), gas };
}
