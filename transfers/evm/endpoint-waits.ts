import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import type { TransferDeps } from "../transfer-deps.ts";

/** An endpoint that is behind for this many block times, and at least this many milliseconds, is passed over. */
const MAX_BEHIND_BLOCKS = 10;
const MIN_WAIT_MS = 30_000;

/** Heights that endpoints of a chain have not reached, and since when each is waited for (Unix milliseconds). */
export type Waits = WeakMap<EvmChain["endpoints"], { at: number; height: number }>;

/**
 * Returns true when endpoints have been behind for too long. An endpoint that is a few blocks behind only delays the chain; one
 * that is stuck must not stop it. The time begins again once they have reached the height that they were waited for: this
 * process may have been told nothing of that, because other workers watch the chain in between.
 * @param heights.wanted the height to confirm
 * @param heights.reached the height that the endpoints have reached in this pass; -1 when none has
 */
export function hasWaitedLongEnough(
  deps: Pick<TransferDeps, "now">,
  chain: EvmChain,
  { waits, wanted, reached }: { waits: Waits; wanted: number; reached: number },
): boolean {
  const now = deps.now().getTime();
  const before = waits.get(chain.endpoints);
  const since = before && reached < before.height ? before : { at: now, height: wanted };
  waits.set(chain.endpoints, since);
  return now - since.at >= maxBehindMs(chain.network);
}

/** Returns how long an endpoint that is behind is waited for, milliseconds. */
export function maxBehindMs({ blockMs }: Pick<EvmChain["network"], "blockMs">): number {
  return Math.max(MIN_WAIT_MS, MAX_BEHIND_BLOCKS * blockMs);
}
