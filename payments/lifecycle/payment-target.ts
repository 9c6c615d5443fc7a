import type { Chain } from "../../chains/chain.ts";
import { getChainDriver } from "../../chains/find-chain-driver.ts";

/** What a payment may take beyond its chain's time to finality, milliseconds. */
const ALLOWED_MS = 60_000;

/**
 * The time after which a payment is overdue on a chain that has left the networks file, milliseconds. It is longer than the target of
 * any chain, since during a deployment only some workers have a new one.
 */
export const GONE_TARGET_MS = 3_600_000;

/** Returns the time within which a payment on a chain should succeed after its accepted confirm, milliseconds. */
export function targetMs({ chain, network }: Chain): number {
  return getChainDriver(chain).finalityMs(network) + ALLOWED_MS;
}
