import { isFresh } from "../cache-age.ts";
import type { FinalTransaction } from "../final-transaction.ts";
import { readFinalHeight } from "./blocks.ts";
import type { Rpc } from "./evm-rpc.ts";
import type { EvmChain } from "./open-evm-chain.ts";

/**
 * How long a final height is used, milliseconds. An older one is conservative, unless a reorg is deeper than the network's
 * policy of finality. The requests of one payout follow each other within less.
 */
const HEIGHT_MS = 1_000;
/**
 * How long a transaction is kept, milliseconds: the requests of one payout follow each other closely. An endpoint that lied once
 * does not count for longer.
 */
const KEPT_MS = 60_000;
/** Movements that are kept of each endpoint: some 10 MB. A caller can name any transaction, and one can have thousands. */
const MAX_MOVEMENTS = 10_000;

type Final = Extract<FinalTransaction, { state: "final" }>;

/** What one endpoint has shown a moment ago. A transaction that was final there stays as it is, so it is read once. */
export type FinalReadings = {
  /** Returns a final height that the endpoint reported a moment ago, or reports now. */
  readHeight: (chain: EvmChain, recent?: "now") => Promise<{ height: number; isNew: boolean }>;
  find: (chain: EvmChain, hash: string) => Final | undefined;
  keep: (chain: EvmChain, hash: string, transaction: Final) => void;
};

// One for each endpoint: no endpoint may vouch for what another one has shown.
const readings = new WeakMap<Rpc, FinalReadings>();

/** Returns what an endpoint has shown. */
export function finalReadingsOf(rpc: Rpc): FinalReadings {
  const known = readings.get(rpc) ?? openReadings(rpc);
  readings.set(rpc, known);
  return known;
}

function openReadings(rpc: Rpc): FinalReadings {
  const transactions = new Map<string, { one: Final; readAt: number }>();
  let movements = 0;
  let last = { height: 0, at: Number.NEGATIVE_INFINITY };
  // The treasury's contracts decide which natural keys the movements have.
  const keyOf = ({ treasury }: EvmChain, hash: string) => `${treasury} ${hash}`;
  const sizeOf = (one: Final) => 1 + one.movements.length;
  const remove = (key: string) => {
    const kept = transactions.get(key);
    if (!kept) return;
    transactions.delete(key);
    movements -= sizeOf(kept.one);
  };
  return {
    async readHeight(chain, recent) {
      const at = performance.now();
      if (recent !== "now" && isFresh(last.at, at, HEIGHT_MS)) return { height: last.height, isNew: false };
      const height = await readFinalHeight(chain, rpc);
      last = { height, at };
      return { height, isNew: true };
    },
    find(chain, hash) {
      const kept = transactions.get(keyOf(chain, hash));
      return kept && isFresh(kept.readAt, performance.now(), KEPT_MS) ? kept.one : undefined;
    },
    keep(chain, hash, one) {
      const key = keyOf(chain, hash);
      remove(key);
      transactions.set(key, { one, readAt: performance.now() });
      movements += sizeOf(one);
      for (const oldest of transactions.keys()) {
        if (movements <= MAX_MOVEMENTS) break;
        remove(oldest);
      }
    },
  };
}
