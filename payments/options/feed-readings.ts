import { isFresh } from "../../chains/cache-age.ts";
import { withCallPriority } from "../../chains/call-priority.ts";
import { ChainError } from "../../chains/errors.ts";
import type { FeedState } from "../../chains/evm/price-feeds.ts";
import { getChainDriver } from "../../chains/find-chain-driver.ts";
import { type Chain, getChain } from "../../chains/open-chains.ts";
import type { PriceFeed } from "../../runtime/networks/read-networks.ts";
import { withTimeout } from "../../runtime/timeout.ts";
import type { PaymentDeps } from "../payment-deps.ts";

/**
 * How long a process uses a feed's reading, milliseconds. Anyone with a payment's link causes readings, so their number must
 * not depend on the number of requests. A failed reading is kept as well: its calls count against the budget, too.
 */
const KEPT_MS = 5_000;
/** Time limit for a reading, milliseconds: a merchant's server, or a wallet and its buyer, wait for it. */
const READ_WITHIN_MS = 5_000;

type Source = Pick<PriceFeed, "chain" | "feed" | "sequencer">;
/** `endedAt` is undefined while the feed is being read. */
type Reading = { state: Promise<FeedState>; endedAt: number | undefined };

const readingsOf = new WeakMap<Chain, Map<string, Reading>>();

/**
 * Returns the state of a price feed, at most a few seconds old. Concurrent callers share a reading. Throws ChainError, also
 * when the feed is not read in time.
 */
export async function readFeedState(deps: Pick<PaymentDeps, "chains" | "now">, source: Source): Promise<FeedState> {
  const chain = getChain(deps.chains, source.chain);
  const readings = readingsOf.get(chain) ?? new Map<string, Reading>();
  readingsOf.set(chain, readings);
  const name = `${source.feed} ${source.sequencer?.feed}`;
  const kept = readings.get(name);
  const isKept = kept?.endedAt === undefined || isFresh(kept.endedAt, deps.now().getTime(), KEPT_MS);
  if (kept && isKept) return kept.state;
  const reading: Reading = { state: readFeed(chain, source), endedAt: undefined };
  readings.set(name, reading);
  const end = () => {
    reading.endedAt = deps.now().getTime();
  };
  reading.state.then(end, end);
  return reading.state;
}

function readFeed(chain: Chain, { feed, sequencer }: Source): Promise<FeedState> {
  const driver = getChainDriver(chain.chain);
  const reading = withCallPriority("convenience", () =>
    driver.readPriceFeed(chain, { feed, sequencer: sequencer?.feed }),
  );
  const detail = `no price from ${chain.chain} within ${READ_WITHIN_MS} ms`;
  return withTimeout(reading, READ_WITHIN_MS, () => new ChainError("rpc_unreachable", { detail }));
}
