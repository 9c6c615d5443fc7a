import { formatUnits, getAddress } from "viem";
import type { EvmChain } from "../../../chains/evm/open-evm-chain.ts";
import { readFeed } from "../../../chains/evm/price-feeds.ts";
import { toPriceFeed } from "../../../payments/options/native-prices.ts";
import { validatePriceFeed } from "../../../payments/options/prices.ts";
import type { PreflightDeps } from "../family.ts";
import { failure, ok } from "../finding.ts";
import type { Check } from "../run-checks.ts";

/** Checks the price feeds on a chain by the rules that payments apply. */
export function priceChecks({ networks, now }: PreflightDeps, chain: EvmChain): Check[] {
  return [...networks.prices, ...networks.nativePrices.map(toPriceFeed)]
    .filter((source) => source.chain === chain.chain)
    .map((source) => {
      const name = `price ${codeOf(source.base)}/${codeOf(source.quote)}`;
      return {
        name,
        async run() {
          const sequencer = source.sequencer && getAddress(source.sequencer.feed);
          const state = await readFeed(chain, getAddress(source.feed), sequencer);
          const error = validatePriceFeed(source, state, now());
          const price = `${formatUnits(state.answer, state.decimals)} as of ${state.updatedAt.toISOString()}`;
          if (!error) return [ok(name, price)];
          const remedy = source.base.startsWith("native/")
            ? "Correct the feed or its maxAgeSeconds: without a price the dashboards do not show what payments cost."
            : "Correct the feed or its maxAgeSeconds: without a price the currency is not offered.";
          return [failure(name, error, remedy)];
        },
      };
    });
}

const codeOf = (currency: string) => currency.slice(currency.indexOf("/") + 1);
