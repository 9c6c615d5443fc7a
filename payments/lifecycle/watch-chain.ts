import { getChain } from "../../chains/open-chains.ts";
import { getTransferDriver } from "../../transfers/find-transfer-driver.ts";
import { singleFlight } from "../../transfers/single-flight.ts";
import type { TransferDeps } from "../../transfers/transfer-deps.ts";
import { type PassResult, watchChain } from "../../transfers/watch-pass.ts";
import { refreshFeeds } from "../options/prices.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { createBookingHandlers } from "./book-transfers.ts";

/**
 * Creates the function that runs one pass of a chain's watcher and books what it finds for payments and settlements.
 */
export function createWatch(
  deps: PaymentDeps & TransferDeps,
): (args: { chain: string; signal: AbortSignal }) => Promise<PassResult> {
  const handlers = createBookingHandlers(deps);
  return (args) => {
    // The pass compares quotes with these prices, in transactions in which it reads none.
    void refreshFeeds(deps);
    return watchChain(deps, { ...args, handlers });
  };
}

/**
 * Creates the function that continues to read the treasury's history where it is read separately. Calls made during a run
 * share the next run, for which one of them waits.
 */
export function createHistoryReader(deps: PaymentDeps & TransferDeps): (chain: string) => Promise<"idle" | "more"> {
  const handlers = createBookingHandlers(deps);
  return singleFlight(
    async (chain) => getTransferDriver(getChain(deps.chains, chain)).readHistory(deps, handlers),
    "idle",
  );
}

/** Lists the chains on which the treasury's history is read separately from the watcher's passes. */
export function listChainsWithHistory({ chains }: Pick<PaymentDeps, "chains">): string[] {
  const open = [...chains.values()];
  return open.filter((chain) => !getTransferDriver(chain).readsBlocks).map(({ chain }) => chain);
}
