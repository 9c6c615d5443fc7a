import { getChainDriver } from "../../chains/find-chain-driver.ts";
import { type Chain, getChain } from "../../chains/open-chains.ts";
import { listUnreadChains, readDatabaseStatus } from "../../db/epoch.ts";
import { findingKinds } from "../../db/findings.ts";
import { findOldestOpenEntry, findOldestUnexportedHead } from "../../db/queries/audit-heads.ts";
import { countWaitingChanges, type WaitingChanges } from "../../db/queries/destination-changes.ts";
import { countFailures } from "../../db/queries/failed-bookings.ts";
import {
  type ChainStatus,
  findOldestPendingEvent,
  type LaneStatus,
  listChainStatuses,
  listLaneStatuses,
  listOldestOverdue,
  type OverdueTable,
} from "../../db/queries/gauges.ts";
import { countEntries } from "../../db/queries/history-entries.ts";
import { countFindings, findLastCheck } from "../../db/queries/ledger-checks.ts";
import {
  countOpenRefunds,
  countUnfinishedPayments,
  findOldestUnfinishedPayment,
  openRefundStates,
} from "../../db/queries/money-gauges.ts";
import { countBlockedQueues, obstacles, type PayoutKind } from "../../db/queries/payout-queue.ts";
import { listDifferences } from "../../db/queries/reconciliations.ts";
import { listRetentionAges } from "../../db/queries/retention.ts";
import { countHeld, countUnfinished } from "../../db/queries/transfers.ts";
import { refusalReasons } from "../../signer/refusals.ts";
import { findHistory } from "../../transfers/caught-up.ts";
import { MAX_READ_ATTEMPTS } from "../../transfers/history-attempts.ts";
import type { TransferDeps } from "../../transfers/transfer-deps.ts";
import { getTransferDriver } from "../../transfers/transfer-driver.ts";
import { targetMs } from "../lifecycle/payment-target.ts";
import { listChainsWithHistory } from "../lifecycle/watch-chain.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { isSignerLogContradicted } from "./signer-log.ts";

export type SystemGaugeDeps = Pick<PaymentDeps & TransferDeps, "db" | "chains" | "now" | "startedAt">;

/** The state of the whole system as read from the database, for metrics. Fees in wei per gas. */
export type SystemStatus = {
  overdue: { table: OverdueTable; seconds: number }[];
  transfers: { chain: string; state: string; count: number }[];
  /** Payouts on hold because they failed repeatedly before they were broadcast. */
  heldPayouts: { chain: string; count: number }[];
  /** Payments on hold for the same reason. */
  heldPayments: { chain: string; count: number }[];
  lanes: {
    chain: string;
    lane: string;
    nextNonce: number;
    inFlight: number;
    oldestSeconds: number;
    maxFee: bigint | undefined;
    held: boolean;
  }[];
  /**
   * How far each chain is read. `finalLagSeconds`: the usual time in which its blocks are made that were read and are not final
   * and booked; undefined where a watcher counts as behind itself while no block becomes final. `finalitySeconds`: what it is
   * usually, or its upper bound.
   */
  chains: {
    chain: string;
    cursor: number;
    lagSeconds: number;
    finalLagSeconds: number | undefined;
    finalitySeconds: number;
  }[];
  /** The newest reconciliation of the ledger with each chain, minor units. */
  differences: { chain: string; asset: string; difference: bigint }[];
  /** Time since each chain was last reconciled; for one that never was, the time since this process started. */
  reconciliationAges: { chain: string; seconds: number }[];
  /** Contradictions that the newest check of the ledger has found, by kind, and its age. */
  findings: { kind: string; count: number }[];
  ledgerCheckSeconds: number;
  /** Unfinished refunds by state, also with a count of 0. */
  refunds: { state: string; count: number }[];
  /** Age of the oldest accepted payment that has not ended. */
  oldestPaymentSeconds: number;
  /** Number of accepted payments that have not ended within the target of their chain. */
  overduePayments: { chain: string; count: number }[];
  /** Number of rows of each chain that could not be booked. */
  failedBookings: { chain: string; count: number }[];
  /** Number of payout queues (merchant and asset) that each obstacle blocks. */
  blocked: { kind: PayoutKind; obstacle: string; count: number }[];
  /** Changes of merchants' destinations that wait for their time or a decision. */
  destinationChanges: WaitingChanges[];
  /**
   * Where the treasury's history is read separately: its transactions that are not read yet, and that cannot be read, and the time
   * since a complete listing began. Without one, the time since this process started.
   */
  history: { chain: string; unread: number; unreadable: number; listingAgeSeconds: number }[];
  /** Age of the oldest undelivered webhook event. */
  oldestEventSeconds: number;
  /** Age of the oldest head of the audit log that is not exported. */
  auditHeadSeconds: number;
  /** Age of the oldest entry of the audit log that no head covers. */
  auditEntrySeconds: number;
  /** True while the signer's audit log contradicts what it was. */
  isSignerLogContradicted: boolean;
  /** Age of the oldest row of each table of history, and for how long rows could have left. */
  retention: { relation: string; behindSeconds: number; failing: number }[];
  /**
   * When the database was last found to have been rolled back (a restore), and which chains have not been reread since.
   */
  steppedBackAt: Date | undefined;
  /** Position of the database's WAL in bytes. */
  walBytes: number;
  unread: { chain: string; unread: boolean }[];
};

/** States of an unfinished transfer. Each is reported, also with a count of 0. */
const unfinished = ["ready", "assigned", "included"];

/** Reads the gauges of a group. */
export type SystemReads = ReturnType<typeof createSystemReads>;

/**
 * Returns the reads of the gauges that every worker reports with the same values, by group: one that fails takes no gauge of
 * another group with it. Those of money come first. Create them anew for each scrape. Omits chains that have left the networks file, but not lanes: a
 * removed lane may still have a transaction in flight.
 */
export function createSystemReads(deps: SystemGaugeDeps) {
  const { db } = deps;
  const now = deps.now();
  const configured = [...deps.chains.keys()];
  const secondsSince = (at: Date | null) => (at === null ? 0 : Math.max(0, now.getTime() - at.getTime()) / 1000);
  /** Reads the chains once, for two groups. */
  let statuses: Promise<ChainStatus[]> | undefined;
  const readChains = () => {
    statuses ??= listChainStatuses(db, now).then((rows) => rows.filter(({ chain }) => deps.chains.has(chain)));
    return statuses;
  };
  return {
    bookings: async () => {
      const failures = await countFailures(db);
      return {
        failedBookings: [...new Set([...configured, ...failures.map(({ chain }) => chain)])].map((chain) => ({
          chain,
          count: failures.find((one) => one.chain === chain)?.count ?? 0,
        })),
      };
    },
    reconciliations: async () => {
      const found = (await listDifferences(db)).filter(({ chain }) => deps.chains.has(chain));
      return {
        differences: found.map(({ at: _, ...one }) => one),
        // One run stores all rows of a chain.
        reconciliationAges: configured.map((chain) => ({
          chain,
          seconds: secondsSince(found.find((one) => one.chain === chain)?.at ?? deps.startedAt),
        })),
      };
    },
    ledger_checks: async () => {
      const findings = await countFindings(db);
      return {
        findings: findingKinds.map((kind) => ({ kind, count: findings.find((one) => one.kind === kind)?.count ?? 0 })),
        ledgerCheckSeconds: secondsSince(await findLastCheck(db)),
      };
    },
    signer_log: async () => ({ isSignerLogContradicted: await isSignerLogContradicted(deps) }),
    database: async () => {
      const { rewoundAt, walBytes } = await readDatabaseStatus(db);
      const unread = new Set(await listUnreadChains(db));
      return {
        steppedBackAt: rewoundAt,
        walBytes,
        unread: configured.map((chain) => ({ chain, unread: unread.has(chain) })),
      };
    },
    overdue: async () => ({
      overdue: (await listOldestOverdue(db, now)).map(({ table, since }) => ({ table, seconds: secondsSince(since) })),
    }),
    transfers: async () => ({
      transfers: [
        ...configured.flatMap((chain) => unfinished.map((state) => ({ chain, state, count: 0 }))),
        ...(await countUnfinished(db)),
      ],
    }),
    held: async () => {
      const held = await countHeld(db);
      const heldOf = (isPayment: boolean) =>
        configured.map((chain) => {
          const found = held.find((one) => one.chain === chain && one.is_payment === isPayment);
          return { chain, count: found?.count ?? 0 };
        });
      return { heldPayouts: heldOf(false), heldPayments: heldOf(true) };
    },
    chains: async () => ({
      chains: (await readChains()).map(({ chain, cursor, final, reached_head_at: reachedHeadAt }) => ({
        chain,
        cursor,
        lagSeconds: secondsSince(reachedHeadAt),
        ...measureFinality(getChain(deps.chains, chain), cursor - final),
      })),
    }),
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
          oldestSeconds: secondsSince(lane.oldest_at),
          maxFee: lane.newest_max_fee ?? undefined,
          held: isHeld(lane),
        })),
      };
    },
    payments: async () => {
      const acceptedBefore = [...deps.chains.values()].map((chain) => ({
        chain: chain.chain,
        at: new Date(now.getTime() - targetMs(chain)),
      }));
      const overdue = await countUnfinishedPayments(db, acceptedBefore);
      return {
        oldestPaymentSeconds: secondsSince(await findOldestUnfinishedPayment(db)),
        overduePayments: configured.map((chain) => ({
          chain,
          count: overdue.find((one) => one.chain === chain)?.count ?? 0,
        })),
      };
    },
    refunds: async () => {
      const refunds = await countOpenRefunds(db);
      return {
        refunds: openRefundStates.map((state) => refunds.find((one) => one.state === state) ?? { state, count: 0 }),
      };
    },
    payouts: async () => ({
      blocked: [
        ...[...obstacles, ...refusalReasons].map((obstacle) => ({ kind: "settlement" as const, obstacle, count: 0 })),
        ...["balance_short", "unrecorded_payout", ...refusalReasons].map((obstacle) => ({
          kind: "refund" as const,
          obstacle,
          count: 0,
        })),
        ...(await countBlockedQueues(db)),
      ],
    }),
    destinations: async () => ({ destinationChanges: await countWaitingChanges(db) }),
    history: async () => {
      const entries = await countEntries(db, { unreadable: MAX_READ_ATTEMPTS });
      const history: SystemStatus["history"] = [];
      for (const chain of listChainsWithHistory(deps)) {
        const counts = entries.find((one) => one.chain === chain) ?? { chain, unread: 0, unreadable: 0 };
        const progress = await findHistory(deps, deps.chains.get(chain));
        history.push({ ...counts, listingAgeSeconds: secondsSince(progress?.listedAt ?? deps.startedAt) });
      }
      return { history };
    },
    webhooks: async () => ({ oldestEventSeconds: secondsSince(await findOldestPendingEvent(db)) }),
    audit: async () => ({
      auditHeadSeconds: secondsSince(await findOldestUnexportedHead(db)),
      auditEntrySeconds: secondsSince(await findOldestOpenEntry(db)),
    }),
    retention: async () => ({
      retention: (await listRetentionAges(db)).map(({ relation, days, next_at, failing }) => ({
        relation,
        behindSeconds: days === null ? 0 : Math.max(0, secondsSince(next_at) - days * 86_400),
        failing,
      })),
    }),
  } satisfies Record<string, () => Promise<Partial<SystemStatus>>>;
}

/**
 * Returns how long it usually takes to make the blocks that are not final, and the usual time to finality. Counts blocks,
 * because the age of a block also grows while the chain makes none.
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

/** Reads the gauges of all groups, one statement after the other. Throws the error of a group that cannot be read. */
export async function readSystemStatus(deps: SystemGaugeDeps): Promise<SystemStatus> {
  const read = createSystemReads(deps);
  return {
    ...(await read.overdue()),
    ...(await read.transfers()),
    ...(await read.held()),
    ...(await read.chains()),
    ...(await read.lanes()),
    ...(await read.bookings()),
    ...(await read.reconciliations()),
    ...(await read.ledger_checks()),
    ...(await read.payments()),
    ...(await read.refunds()),
    ...(await read.payouts()),
    ...(await read.destinations()),
    ...(await read.history()),
    ...(await read.webhooks()),
    ...(await read.audit()),
    ...(await read.signer_log()),
    ...(await read.database()),
    ...(await read.retention()),
  };
}
