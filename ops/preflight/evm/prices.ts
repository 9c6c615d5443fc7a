import { formatUnits, getAddress } from "viem";
import type { EvmChain } from "../../../chains/evm/open-evm-chain.ts";
import { compareFeed, type FeedState } from "../../../chains/evm/price-feeds.ts";
import { validateReading } from "../../../payments/options/feed-readings.ts";
import { toPriceFeed } from "../../../payments/options/native-prices.ts";
import { validatePriceFeed } from "../../../payments/options/validate-price-feed.ts";
import type { EvmNetwork } from "../../../runtime/networks/read-networks.ts";
import type { PreflightDeps } from "../family.ts";
import { failure, ok } from "../finding.ts";
import type { Check } from "../run-checks.ts";

/**
 * Checks the price feeds on a chain by the rules that payments apply, as a process finds them when it starts. `network` has all
 * endpoints of the chain, and `chain` those that answer.
 */
export function priceChecks({ networks, now }: PreflightDeps, network: EvmNetwork, chain: EvmChain): Check[] {
  return [...networks.prices, ...networks.nativePrices.map(toPriceFeed)]
    .filter((source) => source.chain === chain.chain)
    .map((source) => {
      const name = `price ${codeOf(source.base)}/${codeOf(source.quote)}`;
      return {
        name,
        async run() {
          const sequencer = source.sequencer && getAddress(source.sequencer.feed);
          const startedAt = now();
          const validate = (state: FeedState) => validatePriceFeed(source, state, startedAt);
          const isUsable = (state: FeedState) => !validate(state);
          const reading = await compareFeed(chain, { feed: getAddress(source.feed), sequencer, isUsable });
          const unused = validateReading(network, source, reading);
          if (unused) throw unused;
          const { state } = reading;
          const error = validate(state);
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
