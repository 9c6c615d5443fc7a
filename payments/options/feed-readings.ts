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
 * not depend on the number of requests. A failed reading is kept as well, if it made calls: these count against the budget, too.
 */
const KEPT_MS = 5_000;
/** Time limit for a reading, milliseconds: a merchant's server, or a wallet and its buyer, wait for it. */
const READ_WITHIN_MS = 5_000;

/** How long a reading serves for comparisons, milliseconds. */
const LAST_MS = 24 * 60 * 60_000;

type Source = Pick<PriceFeed, "chain" | "feed" | "sequencer">;
/** Times are Unix milliseconds. `endedAt` is undefined while the feed is being read. */
type Reading = { state: Promise<FeedState>; startedAt: number; endedAt: number | undefined };
/** The readings of a chain's feeds, by feed: the running or newest one, and the last that succeeded. */
type Readings = { newest: Map<string, Reading>; last: Map<string, { state: FeedState; at: number }> };

const readingsOf = new WeakMap<Chain, Readings>();

/**
 * Returns the state of a price feed, at most a few seconds old. Concurrent callers share a reading. Throws ChainError, also
 * when the feed is not read in time; the reading goes on then, and serves later callers.
 */
export async function readFeedState(deps: Pick<PaymentDeps, "chains" | "now">, source: Source): Promise<FeedState> {
  const chain = getChain(deps.chains, source.chain);
  const readings = listReadings(chain);
  const name = nameOf(source);
  const kept = readings.newest.get(name);
  const now = deps.now().getTime();
  const reading = kept && isKept(kept, now) ? kept : startReading(deps, { chain, readings, source });
  const leftMs = READ_WITHIN_MS - Math.max(0, now - reading.startedAt);
  const detail = `no price from ${chain.chain} within ${READ_WITHIN_MS} ms`;
  return withTimeout(reading.state, Math.max(0, leftMs), () => new ChainError("rpc_unreachable", { detail }));
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
  source: Source,
  withinMs = LAST_MS,
): FeedState | undefined {
  const chain = deps.chains.get(source.chain);
  const last = chain && listReadings(chain).last.get(nameOf(source));
  return last && isFresh(last.at, deps.now().getTime(), withinMs) ? last.state : undefined;
}

function listReadings(chain: Chain): Readings {
  const readings = readingsOf.get(chain) ?? { newest: new Map(), last: new Map() };
  readingsOf.set(chain, readings);
  return readings;
}

const nameOf = ({ feed, sequencer }: Source) => `${feed} ${sequencer?.feed}`;

function startReading(
  deps: Pick<PaymentDeps, "now">,
  { chain, readings, source }: { chain: Chain; readings: Readings; source: Source },
): Reading {
  const name = nameOf(source);
  const { feed, sequencer } = source;
  const state = withCallPriority("convenience", () =>
    getChainDriver(chain.chain).readPriceFeed(chain, { feed, sequencer: sequencer?.feed }),
  );
  const reading: Reading = { state, startedAt: deps.now().getTime(), endedAt: undefined };
  readings.newest.set(name, reading);
  const end = () => {
    reading.endedAt = deps.now().getTime();
  };
  state.then(
    (found) => {
      end();
      readings.last.set(name, { state: found, at: deps.now().getTime() });
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
