import { isFresh } from "../../chains/cache-age.ts";
import { withCallPriority } from "../../chains/call-priority.ts";
import type { Chain } from "../../chains/chain.ts";
import { countEndpoints, isSamePrice } from "../../chains/endpoint-agreement.ts";
import { ChainError } from "../../chains/errors.ts";
import type { FeedReading, FeedState } from "../../chains/evm/price-feeds.ts";
import { getChainDriver } from "../../chains/find-chain-driver.ts";
import { getChain } from "../../chains/open-chains.ts";
import type { PriceFeed } from "../../runtime/networks/read-networks.ts";
import { withTimeout } from "../../runtime/timeout.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { validatePriceFeed } from "./validate-price-feed.ts";

/**
 * How long a process uses a feed's reading, milliseconds. Anyone with a payment's link causes readings, so their number must
 * not depend on the number of requests. A failed reading is kept as well, if it made calls: these count against the budget, too.
 */
const KEPT_MS = 5_000;
/** Time limit for a reading, milliseconds: a merchant's server, or a wallet and its buyer, wait for it. */
const READ_WITHIN_MS = 5_000;

/** How long a reading serves for comparisons, milliseconds. */
const LAST_MS = 24 * 60 * 60_000;

/** The most by which a price that one endpoint of several shows alone may differ from the last that two agreed on, percent. */
const MAX_DRIFT = 5n;

type Deps = Pick<PaymentDeps, "chains" | "metrics" | "log" | "now">;

/** The state of a feed, and why its price must not be used, as of the start of its reading. */
type ValidatedState = { state: FeedState; error: string | undefined };
/** Times are Unix milliseconds. `endedAt` is undefined while the feed is being read. */
type Reading = { found: Promise<ValidatedState>; startedAt: number; endedAt: number | undefined };
/**
 * The readings of a chain's feeds, by feed: the running or newest one, the last that succeeded, and the last that two endpoints agreed
 * on.
 */
type Readings = {
  newest: Map<string, Reading>;
  last: Map<string, { state: FeedState; at: number }>;
  agreed: Map<string, FeedState>;
};

const readingsOf = new WeakMap<Chain, Readings>();

/**
 * Returns the state of a price feed, at most a few seconds old, and the error of a price that must not be used. Concurrent callers
 * share a reading. Where the chain has several endpoints, two must agree on the state, or one must show a price near the last that two
 * agreed on. Throws ChainError, also when the feed is not read in time; the reading goes on then, and serves later callers.
 */
export async function readFeedState(deps: Deps, source: PriceFeed): Promise<ValidatedState> {
  const chain = getChain(deps.chains, source.chain);
  const readings = listReadings(chain);
  const name = nameOf(source);
  const kept = readings.newest.get(name);
  const now = deps.now().getTime();
  const reading = kept && isKept(kept, now) ? kept : startReading(deps, { chain, readings, source });
  const leftMs = READ_WITHIN_MS - Math.max(0, now - reading.startedAt);
  const detail = `no price from ${chain.chain} within ${READ_WITHIN_MS} ms`;
  return withTimeout(reading.found, Math.max(0, leftMs), () => new ChainError("rpc_unreachable", { detail }));
}

/**
 * Returns true while a reading is used: 5 s after it ended, or after it passed its time limit. Later callers start another one,
 * even if it still runs.
 */
function isKept({ startedAt, endedAt }: Reading, now: number): boolean {
  return endedAt === undefined ? isFresh(startedAt, now, READ_WITHIN_MS + KEPT_MS) : isFresh(endedAt, now, KEPT_MS);
}

/** Returns the last state of a feed that this process has read within `withinMs`, a day when unset. */
export function findLastState(
  deps: Pick<PaymentDeps, "chains" | "now">,
  source: PriceFeed,
  withinMs = LAST_MS,
): FeedState | undefined {
  const chain = deps.chains.get(source.chain);
  const last = chain && listReadings(chain).last.get(nameOf(source));
  return last && isFresh(last.at, deps.now().getTime(), withinMs) ? last.state : undefined;
}

function listReadings(chain: Chain): Readings {
  const readings = readingsOf.get(chain) ?? { newest: new Map(), last: new Map(), agreed: new Map() };
  readingsOf.set(chain, readings);
  return readings;
}

/** The limits of a source decide on what endpoints agree, so a feed with two entries in the networks file has two readings. */
const nameOf = (source: PriceFeed) => JSON.stringify(source);

function startReading(
  deps: Deps,
  { chain, readings, source }: { chain: Chain; readings: Readings; source: PriceFeed },
): Reading {
  const name = nameOf(source);
  const found = withCallPriority("convenience", () => readAgreed(deps, chain, source));
  const reading: Reading = { found, startedAt: deps.now().getTime(), endedAt: undefined };
  readings.newest.set(name, reading);
  const end = () => {
    reading.endedAt = deps.now().getTime();
  };
  found.then(
    ({ state }) => {
      end();
      readings.last.set(name, { state, at: deps.now().getTime() });
    },
    (error: unknown) => {
      end();
      // The call budget allowed no call, so the next caller may try at once.
      const isNewest = readings.newest.get(name) === reading;
      if (isNewest && error instanceof ChainError && error.code === "budget_spent") readings.newest.delete(name);
    },
  );
  return reading;
}

/**
 * Reads a feed, and throws a transient ChainError for a state on which one endpoint of several may decide alone. The price is validated
 * once: an endpoint could otherwise show a time that another one agrees with only for a moment of the seconds that a reading is used.
 */
async function readAgreed({ metrics, log, now }: Deps, chain: Chain, source: PriceFeed): Promise<ValidatedState> {
  const { agreed } = listReadings(chain);
  const name = nameOf(source);
  const { feed, sequencer } = source;
  const startedAt = now();
  const validate = (state: FeedState) => validatePriceFeed(source, state, startedAt);
  const args = { feed, sequencer: sequencer?.feed, isUsable: (state: FeedState) => !validate(state) };
  const reading = await getChainDriver(chain.chain).readPriceFeed(chain, args);
  for (const endpoint of reading.disagreeing) {
    metrics.priceDisagreements.inc({ chain: chain.chain, endpoint });
    const fields = { chain: chain.chain, endpoint, feed, isUsed: reading.isConfirmed };
    log.error(fields, "endpoints disagree about a price");
  }
  const error = validateReading(chain.network, source, reading, agreed.get(name));
  if (error?.code === "price_unconfirmed") metrics.pricesUnconfirmed.inc({ chain: chain.chain });
  if (error) throw error;
  if (reading.isConfirmed || countEndpoints(chain.network) === 1) agreed.set(name, reading.state);
  return { state: reading.state, error: validate(reading.state) };
}

/**
 * Returns the transient error of a reading that is not used, because one endpoint of several would decide alone; undefined for any
 * other. `agreed` is the last state that two endpoints have shown to the process. Pure.
 */
export function validateReading(
  network: Parameters<typeof countEndpoints>[0],
  { chain, feed }: Pick<PriceFeed, "chain" | "feed">,
  { state, isConfirmed, disagreeing: [other] }: FeedReading,
  agreed?: FeedState,
): ChainError | undefined {
  if (isConfirmed || countEndpoints(network) === 1) return undefined;
  if (other) return new ChainError("endpoints_disagree", { detail: `${other} shows another price or time of ${feed}` });
  if (agreed && isSamePrice(agreed, state, MAX_DRIFT)) return undefined;
  const far = agreed ? "not near the last that two endpoints have shown" : "two endpoints have shown none yet";
  return new ChainError("price_unconfirmed", { detail: `${feed} of ${chain}: ${far}` });
}
