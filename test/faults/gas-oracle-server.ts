import { setTimeout as pause } from "node:timers/promises";
import type { Account, Address, Hex } from "viem";
import { operator } from "../../local/chain-client.ts";
import { addCleanup } from "../support/cleanups.ts";
import { type EvmEnvironment, finalityBlocks } from "./evm-environment.ts";

/**
 * A desired state of a contract: the call is repeated until `holds` returns true, and afterwards for as long as a reorg
 * may still revert it.
 */
export type ContractChange = {
  to: Address;
  data: Hex;
  holds(): Promise<boolean>;
  /** The sender; the operator by default. */
  account?: Account | Address;
};

export type ContractChanges = {
  /** Requests a state; replaces the request of the same name. */
  make(name: string, wish: ContractChange): void;
  /** Resolves to true as soon as the state holds at the newest block, and to false after `withinMs`. */
  until(name: string, withinMs: number): Promise<boolean>;
};

/** Fees above any spike of a run and above every other sender's, so that the transaction is first in its block. */
export const topFees = { gas: 300_000n, maxFeePerGas: 300_000_000_000n, maxPriorityFeePerGas: 5_000_000_000n };
/** The number of blocks after which an unmined transaction counts as lost. */
const lostAfterBlocks = 3n;

type Served = ContractChange & { sentAt?: bigint; heldAt?: bigint };

/** Applies the requested states until the run is over, one transaction at a time. */
export function applyContractChanges(environment: EvmEnvironment): ContractChanges {
  const contractChanges = new Map<string, Served>();
  const over = new AbortController();
  const served = serve(environment, contractChanges, over.signal);
  addCleanup(async () => {
    over.abort();
    await served;
  });
  return {
    make: (name, wish) => void contractChanges.set(name, { ...wish }),
    async until(name, withinMs) {
      const wish = contractChanges.get(name);
      for (
        const end = Date.now() + withinMs;
        Date.now() < end && !over.signal.aborted;
        await pause(environment.blockMs / 2)
      )
        if (await wish?.holds().catch(() => false)) return true;
      return false;
    },
  };
}

async function serve(
  environment: EvmEnvironment,
  contractChanges: Map<string, Served>,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    // The next round retries, for example after a reorg has changed the nonce.
    for (const [name, wish] of contractChanges)
      await serveOne(environment, wish).then(
        (isDone) => isDone && contractChanges.get(name) === wish && contractChanges.delete(name),
        () => undefined,
      );
    await pause(environment.blockMs, undefined, { signal }).catch(() => undefined);
  }
}

/** Sends the call when needed. Returns whether the state is final. */
async function serveOne({ client }: EvmEnvironment, wish: Served): Promise<boolean> {
  const head = await client.getBlockNumber();
  if (await wish.holds()) {
    wish.heldAt ??= head;
    return head - wish.heldAt > finalityBlocks;
  }
  delete wish.heldAt;
  if (wish.sentAt !== undefined && head - wish.sentAt < lostAfterBlocks) return false;
  wish.sentAt = head;
  await client.sendTransaction({ account: wish.account ?? operator, to: wish.to, data: wish.data, ...topFees });
  return false;
}
