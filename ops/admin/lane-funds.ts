import { Registry } from "prom-client";
import { getChainDriver } from "../../chains/find-chain-driver.ts";
import { closeChains, openChains } from "../../chains/open-chains.ts";
import { toText } from "../../payments/readable-amounts.ts";
import { createMetrics } from "../../runtime/metrics.ts";
import type { Networks } from "../../runtime/networks/read-networks.ts";
import { withTimeout } from "../../runtime/timeout.ts";
import { getTransferDriver } from "../../transfers/find-transfer-driver.ts";
import type { LaneFunds } from "../../transfers/transfer-driver.ts";
import type { Context } from "./command.ts";

/** How long an operator waits for the balances, milliseconds. */
const WITHIN_MS = 5_000;

/** A lane with its funds, minor units, or with the reason why they are not known. */
type LaneView = (LaneFunds & { enough: boolean }) | { chain: string; lane: string; error: string };

/**
 * Returns every lane of the chains on which a payment waits, with its balance and what it needs, or with an error when they
 * cannot be read in time. Returns none without NETWORKS_FILE.
 */
export async function readLanesOf(
  { shownNetworks, log }: Pick<Context, "shownNetworks" | "log">,
  transfers: readonly { asset: string; state: string }[],
): Promise<LaneView[]> {
  const waiting = transfers.filter(({ state }) => state === "ready" || state === "assigned");
  const ids = new Set(waiting.map(({ asset }) => asset.split("/", 1)[0] ?? ""));
  const all = ids.size === 0 ? undefined : shownNetworks();
  if (!all) return [];
  const networks: Networks = { ...all, chains: all.chains.filter(({ chain }) => ids.has(chain)) };
  const metrics = createMetrics(new Registry(), "worker");
  const chains = openChains(networks, metrics);
  try {
    const reads = [...chains.values()].map(async (chain): Promise<LaneView[]> => {
      const read = getTransferDriver(chain).readGasBalances({ metrics, log });
      const funds = await withTimeout(read, WITHIN_MS, "the lanes' balances").catch(() => []);
      return chain.network.lanes.map(({ address }) => {
        const lane = getChainDriver(chain.chain).normalizeAddress(address);
        const known = funds.find((one) => one.lane === lane);
        if (!known) return { chain: chain.chain, lane, error: "its funds cannot be read" };
        return { ...known, enough: known.balance >= known.needs };
      });
    });
    return (await Promise.all(reads)).flat();
  } finally {
    closeChains(chains);
  }
}

/** Returns rows of lanes for people: their amounts have units. */
export function describeLanes({ shownNetworks }: Pick<Context, "shownNetworks">, lanes: readonly LaneView[]): object[] {
  const networks = new Map(shownNetworks()?.chains.map((network) => [network.chain as string, network]));
  return lanes.map((view) => {
    const { chain, lane } = view;
    if ("error" in view) return { chain, lane, balance: view.error, needs: null, enough: null };
    const network = networks.get(chain);
    const show = (amount: bigint) => (network ? toText(amount, getChainDriver(chain).nativeUnit(network)) : amount);
    return { chain, lane, balance: show(view.balance), needs: show(view.needs), enough: view.enough };
  });
}
