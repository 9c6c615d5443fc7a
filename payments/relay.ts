import { coalesce } from "../transfers/coalesce.ts";
import type { TransferDeps } from "../transfers/deps.ts";
import { relayReady } from "../transfers/relay.ts";
import type { PaymentDeps } from "./deps.ts";

/**
 * Makes what carries everything that is ready on a chain; calls made during a run share the next one. `more` says that
 * there is work left for another call.
 */
export function createRelay(deps: TransferDeps): (chain: string) => Promise<"idle" | "more"> {
  return coalesce((chain) => relayReady(deps, chain));
}

/** Rings for new transfers, once per chain: whoever answers carries everything that is ready there. */
export async function ringRelays(
  deps: Pick<PaymentDeps, "ring">,
  transfers: readonly { chain: string; transferId: string }[],
): Promise<void> {
  const byChain = new Map(transfers.map((transfer) => [transfer.chain, transfer]));
  await deps.ring(
    "relay-permit",
    [...byChain.values()].map(({ chain, transferId }) => ({ data: { chain, transferId } })),
  );
}
