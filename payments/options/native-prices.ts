import { getChainDriver } from "../../chains/find-chain-driver.ts";
import type { NativePrice, PriceFeed } from "../../runtime/networks/read-networks.ts";
import { repeatEvery } from "../../runtime/repeat.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { readValidFeed } from "./prices.ts";

/** Interval between reads of the prices, milliseconds. */
const READ_EVERY_MS = 60_000;

type Deps = Pick<PaymentDeps, "chains" | "networks" | "now" | "log" | "metrics">;

/**
 * Keeps the gauge of the prices of native coins up to date, with one read per feed and minute. A price that is stale or
 * unavailable is removed from the gauge. Returns a function that stops it.
 */
export function watchNativePrices(deps: Deps, everyMs: number = READ_EVERY_MS): () => void {
  return repeatEvery(everyMs, async () => {
    await Promise.all(deps.networks.nativePrices.map((source) => setPrice(deps, source)));
  });
}

/** Returns a price of a native coin in the form in which feeds are read and validated. */
export const toPriceFeed = ({ coin, gasOf: _, ...feed }: NativePrice): PriceFeed => ({
  ...feed,
  base: `native/${coin}`,
});

async function setPrice(deps: Deps, source: NativePrice): Promise<void> {
  const found = await readValidFeed(deps, toPriceFeed(source)).catch((err: unknown) => {
    deps.log.warn({ err, coin: source.coin }, "price of a native coin cannot be read");
    return undefined;
  });
  for (const chain of source.gasOf) {
    const labels = { chain, currency: source.quote };
    const network = deps.networks.chains.find((one) => one.chain === chain);
    if (!found || !network) {
      deps.metrics.nativePrice.remove(labels);
      continue;
    }
    const { decimals } = getChainDriver(chain).nativeUnit(network);
    deps.metrics.nativePrice.set(labels, Number(found.answer) / 10 ** (found.decimals + decimals));
  }
}
