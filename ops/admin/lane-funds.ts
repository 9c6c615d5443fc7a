import { Registry } from "prom-client";
import { closeChains, openChains } from "../../chains/open-chains.ts";
import { createMetrics } from "../../runtime/metrics.ts";
import type { Networks } from "../../runtime/networks/read-networks.ts";
import { withTimeout } from "../../runtime/timeout.ts";
import { getTransferDriver, type LaneFunds } from "../../transfers/transfer-driver.ts";
import type { Context } from "./command.ts";

/** How long an operator waits for the balances, milliseconds. */
const WITHIN_MS = 5_000;

/** The lanes of the chains on which a payment waits, with their balances and what they need; none without NETWORKS_FILE. */
export async function readLanesOf(
  { shownNetworks, log }: Pick<Context, "shownNetworks" | "log">,
  transfers: readonly { asset: string; state: string }[],
): Promise<(LaneFunds & { enough: boolean })[]> {
  const waiting = transfers.filter(({ state }) => state === "ready" || state === "assigned");
  const ids = new Set(waiting.map(({ asset }) => asset.split("/", 1)[0] ?? ""));
  const all = ids.size === 0 ? undefined : shownNetworks();
  if (!all) return [];
  const networks: Networks = { ...all, chains: all.chains.filter(({ chain }) => ids.has(chain)) };
  const metrics = createMetrics(new Registry(), "worker");
  const chains = openChains(networks, metrics);
  try {
    const reads = [...chains.values()].map((chain) => getTransferDriver(chain).readGasBalances({ metrics, log }));
    const lanes = await withTimeout(Promise.all(reads), WITHIN_MS, "the lanes' balances").catch(() => []);
    return lanes.flat().map((lane) => ({ ...lane, enough: lane.balance >= lane.needs }));
  } finally {
    closeChains(chains);
  }
}
