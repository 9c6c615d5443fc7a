import { coalesce } from "../transfers/coalesce.ts";
import type { TransferDeps } from "../transfers/deps.ts";
import { findTransferChain, relayReady } from "../transfers/relay.ts";

/**
 * Makes what carries a transfer: whatever else is ready on its chain goes along, and calls made meanwhile share the next
 * run. `more` says that there is work left for another call; a transfer that is no longer waiting is "idle" at once.
 */
export function createRelay(deps: TransferDeps): (transferId: string) => Promise<"idle" | "more"> {
  const relay = coalesce((chain) => relayReady(deps, chain));
  return async (transferId) => {
    const chain = await findTransferChain(deps, transferId);
    return chain === undefined ? "idle" : relay(chain);
  };
}
