import type { Chain } from "../../chains/chain.ts";
import { getChainDriver } from "../../chains/find-chain-driver.ts";
import { getChain } from "../../chains/open-chains.ts";
import { type ChainStatus, type LaneStatus, listChainStatuses, listLaneStatuses } from "../../db/queries/gauges.ts";
import { countEntries } from "../../db/queries/history-entries.ts";
import { countHeld, countUnfinished } from "../../db/queries/transfer-counts.ts";
import { findHistory } from "../../transfers/caught-up.ts";
import { getTransferDriver } from "../../transfers/find-transfer-driver.ts";
import { MAX_READ_ATTEMPTS } from "../../transfers/history-attempts.ts";
import { listChainsWithHistory } from "../lifecycle/watch-chain.ts";
import { type GaugeDeps, measureAge } from "./gauge-deps.ts";

/** States of an unfinished transfer. Each is reported, also with a count of 0. */
const unfinished = ["ready", "assigned", "included"];

/**
 * Returns the reads of the gauges of chains, lanes and transfers. Omits chains that have left the networks file, but not lanes: a
 * removed lane may still have a transaction in flight.
 */
export function createChainReads(deps: GaugeDeps) {
  const { db } = deps;
  const now = deps.now();
  const configured = [...deps.chains.keys()];
  /** Reads the chains once, for two groups. */
  let statuses: Promise<ChainStatus[]> | undefined;
  const readChains = () => {
    statuses ??= listChainStatuses(db, now).then((rows) => rows.filter(({ chain }) => deps.chains.has(chain)));
    return statuses;
  };
  return {
    /** Unfinished transfers by chain and state. */
    transfers: async () => ({
      transfers: [
        ...configured.flatMap((chain) => unfinished.map((state) => ({ chain, state, count: 0 }))),
        ...(await countUnfinished(db)),
      ],
    }),
    /** Payouts and payments on hold because they failed repeatedly before they were broadcast. */
    held: async () => {
      const held = await countHeld(db);
      const heldOf = (isPayment: boolean) =>
        configured.map((chain) => {
          const found = held.find((one) => one.chain === chain && one.is_payment === isPayment);
          return { chain, count: found?.count ?? 0 };
        });
      return { heldPayouts: heldOf(false), heldPayments: heldOf(true) };
    },
    /** How far each chain is read, and what `measureFinality` returns. */
    chains: async () => ({
      chains: (await readChains()).map(({ chain, cursor, final, reached_head_at: reachedHeadAt }) => ({
        chain,
        cursor,
        lagSeconds: measureAge(now, reachedHeadAt),
        ...measureFinality(getChain(deps.chains, chain), cursor - final),
      })),
    }),
    /** The lanes, with the fee of the newest transaction in flight in wei per gas. */
    lanes: async () => {
      const chains = await readChains();
      const isHeld = (lane: LaneStatus) => {
        const chain = deps.chains.get(lane.chain);
        const status = chains.find((one) => one.chain === lane.chain);
        return chain !== undefined && getTransferDriver(chain).isLaneHeld(lane, status);
      };
      return {
        lanes: (await listLaneStatuses(db)).map((lane) => ({
          chain: lane.chain,
          lane: lane.address,
          nextNonce: lane.next_nonce,
          inFlight: lane.in_flight,
          oldestSeconds: measureAge(now, lane.oldest_at),
          maxFee: lane.newest_max_fee ?? undefined,
          held: isHeld(lane),
        })),
      };
    },
    /**
     * Where the treasury's history is read separately: its transactions that are not read yet, and that cannot be read, and the
     * seconds since a complete listing began. Without one, the time since this process started.
     */
    history: async () => {
      const entries = await countEntries(db, { unreadable: MAX_READ_ATTEMPTS });
      const history: { chain: string; unread: number; unreadable: number; listingAgeSeconds: number }[] = [];
      for (const chain of listChainsWithHistory(deps)) {
        const counts = entries.find((one) => one.chain === chain) ?? { chain, unread: 0, unreadable: 0 };
        const progress = await findHistory(deps, deps.chains.get(chain));
        history.push({ ...counts, listingAgeSeconds: measureAge(now, progress?.listedAt ?? deps.startedAt) });
      }
      return { history };
    },
  };
}

/**
 * Returns `finalitySeconds`, the usual time until a block is final, or its upper bound, and `finalLagSeconds`, the usual time in
 * which the blocks are made that were read and are not final and booked. The latter counts blocks, because the age of a block
 * also grows while the chain makes none. It is undefined where a watcher counts as behind itself while no block becomes final.
 */
function measureFinality(chain: Chain, blocks: number) {
  const driver = getChainDriver(chain.chain);
  return {
    finalLagSeconds: getTransferDriver(chain).readsBlocks
      ? (blocks * driver.blockMs(chain.network)) / 1_000
      : undefined,
    finalitySeconds: driver.finalityMs(chain.network) / 1_000,
  };
}
