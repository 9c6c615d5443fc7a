import { readBlock } from "../../chains/evm/blocks.ts";
import { readGasBalance, readNextNonce } from "../../chains/evm/evm-broadcast.ts";
import { lowerCaseHex } from "../../chains/evm/hex.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import { addressOfLane, type LaneLease } from "../../db/queries/lanes.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import type { LaneFunds } from "../transfer-driver.ts";
import { priceTransaction, sumCosts } from "./price-transaction.ts";
import { samplePayment } from "./rollup-charge.ts";

/** A lower bound of a lane's balance, wei, which holds while this process keeps the lane. */
type Known = { fence: number; left: bigint };
const known = new WeakMap<EvmChain, Map<string, Known>>();

/**
 * Returns what a lane can pay for one more transaction in addition to those that are in no block yet, wei, or undefined when no
 * endpoint returns the balance. A batch stays with the lane under whose nonce it is stored, so this is read first, and another
 * lane can take what this one cannot pay. Reads the balance only when the rest of the last one does not suffice.
 * @param cost highest cost of the transaction, wei
 * @param inFlight highest cost of the transactions that are in no block yet, wei
 */
export async function readSpendable(
  deps: Pick<TransferDeps, "log">,
  chain: EvmChain,
  lease: LaneLease,
  { cost, inFlight }: { cost: bigint; inFlight: bigint },
): Promise<bigint | undefined> {
  const lanes = known.get(chain) ?? new Map<string, Known>();
  known.set(chain, lanes);
  const before = lanes.get(lease.id);
  // With consecutive fences, no other process has used the lane in between.
  const isOurs = before !== undefined && lease.fence >= before.fence && lease.fence - before.fence <= 1;
  if (isOurs && before.left >= cost) return before.left;
  if (!isNewer(before, lease)) lanes.delete(lease.id);
  const balance = await readGasBalance(chain.rpc, addressOfLane(lease.id)).catch((err: unknown) => {
    deps.log.warn({ err, chain: chain.chain, lane: lease.id }, "lane's gas balance cannot be read");
    return undefined;
  });
  if (balance === undefined) return undefined;
  const left = balance - inFlight;
  if (left < cost)
    deps.log.warn(
      { chain: chain.chain, lane: lease.id, balance: String(balance), cost: String(cost + inFlight) },
      "lane has too little gas for the whole batch",
    );
  if (!isNewer(lanes.get(lease.id), lease)) lanes.set(lease.id, { fence: lease.fence, left });
  return left;
}

/** Notes the highest cost of a transaction that a lane is about to send, wei. */
export function spendGas(chain: EvmChain, lease: LaneLease, cost: bigint): void {
  const lanes = known.get(chain);
  const one = lanes?.get(lease.id);
  if (one && !isNewer(one, lease)) lanes?.set(lease.id, { fence: lease.fence, left: one.left - cost });
}

/** Returns true when a later run of this process, which took the lane over, has read the balance. */
const isNewer = (one: Known | undefined, lease: LaneLease) => one !== undefined && one.fence > lease.fence;

/**
 * Sets the gauges of the lanes' gas balances and of their accounts' nonces. A lane that cannot be read keeps its last values.
 * Returns the balances that were read; none when the present fee cannot be read.
 */
export async function readLaneBalances(
  deps: Pick<TransferDeps, "metrics" | "log">,
  evm: EvmChain,
): Promise<LaneFunds[]> {
  const { chain, rpc, network } = evm;
  const needs = await readTransferCost(evm).catch((err: unknown) => {
    deps.log.warn({ err, chain }, "cost of a transfer cannot be read");
    return undefined;
  });
  const read: LaneFunds[] = [];
  for (const { address } of network.lanes) {
    const lane = lowerCaseHex(address);
    try {
      const balance = await readGasBalance(rpc, lane);
      deps.metrics.laneGasBalance.set({ chain, lane }, Number(balance));
      if (needs !== undefined) read.push({ chain, lane, balance, needs });
      deps.metrics.laneAccountNonce.set({ chain, lane }, await readNextNonce(rpc, lane));
    } catch (err) {
      deps.log.warn({ err, chain, lane }, "lane's gas balance and nonce cannot be read");
    }
  }
  return read;
}

/** Reads the highest cost of one transfer that is sent now, wei, as `readSpendable` is asked for it; at most the fee ceiling's. */
async function readTransferCost(chain: EvmChain): Promise<bigint> {
  const sample = samplePayment(chain);
  const price = await priceTransaction(chain, sample, (await readBlock(chain.rpc, "latest")).baseFee);
  if (!price) return sample.gas * chain.network.fees.maxFeePerGas;
  return sumCosts(price, sample.gas + price.extraGas, { cost: 0n, gas: 0n }).cost;
}

/** Forgets a lane's balance after a node reported that it is lower. */
export function forgetLaneBalance(chain: EvmChain, laneId: string): void {
  known.get(chain)?.delete(laneId);
}
