import type { EvmChain } from "../chains/evm/open.ts";
import { readGasBalance } from "../chains/evm/send.ts";
import { addressOfLane, type LaneLease } from "../db/lanes.ts";
import type { TransferDeps } from "./deps.ts";

/** What a lane is known to have left at least, wei, while it stays in this process's hands. */
type Known = { fence: number; left: bigint };
const known = new WeakMap<EvmChain, Map<string, Known>>();

/**
 * Returns true when a lane can pay for one more transaction beside those that are in no block yet. A batch that is stored
 * under a lane's nonce stays with it, so it is asked first; another lane takes the batch otherwise. The balance is read
 * when what is left of the last one is not enough. An endpoint that cannot say it keeps no lane from sending.
 * @param cost of the transaction, wei, at most
 * @param inFlight the same of those that are in no block yet
 */
export async function canPay(
  deps: Pick<TransferDeps, "log">,
  chain: EvmChain,
  lease: LaneLease,
  { cost, inFlight }: { cost: bigint; inFlight: bigint },
): Promise<boolean> {
  const lanes = known.get(chain) ?? new Map<string, Known>();
  known.set(chain, lanes);
  const before = lanes.get(lease.id);
  // Between two fences in a row nobody else has spent anything.
  const isOurs = before !== undefined && lease.fence - before.fence <= 1;
  if (isOurs && before.left >= cost) {
    lanes.set(lease.id, { fence: lease.fence, left: before.left - cost });
    return true;
  }
  lanes.delete(lease.id);
  const balance = await readGasBalance(chain.rpc, addressOfLane(lease.id)).catch((err: unknown) => {
    deps.log.warn({ err, chain: chain.chain, lane: lease.id }, "the lane's gas money is not known");
    return undefined;
  });
  if (balance === undefined) return true;
  const left = balance - inFlight - cost;
  if (left < 0n) {
    deps.log.warn({ chain: chain.chain, lane: lease.id, balance: String(balance) }, "a lane has too little gas money");
    return false;
  }
  lanes.set(lease.id, { fence: lease.fence, left });
  return true;
}

/** A lane was found to have less than was believed. */
export function forgetFunds(chain: EvmChain, laneId: string): void {
  known.get(chain)?.delete(laneId);
}
