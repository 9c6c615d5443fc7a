import type { Chain } from "../chains/chain.ts";
import { listWaiting } from "../db/queries/transfers.ts";
import type { BookingHandlers } from "./booking-handlers.ts";
import type { TransferDeps } from "./transfer-deps.ts";

/** Sends the transfers that wait for a lane. Call it when new blocks were read. */
export async function relayWaiting(
  deps: TransferDeps,
  { chain }: Pick<Chain, "chain">,
  { relay }: Pick<BookingHandlers, "relay">,
): Promise<void> {
  const waiting = await listWaiting(deps.db, { chain, now: deps.now() });
  if (waiting.length > 0) await relay(chain, waiting);
}
