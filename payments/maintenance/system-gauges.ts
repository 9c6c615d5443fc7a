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
import { countOpenRefunds, findOldestUnfinishedPayment, openRefundStates } from "../../db/queries/money-gauges.ts";
import { countBlockedQueues, obstacles, type PayoutKind } from "../../db/queries/payout-queue.ts";
import { listDifferences } from "../../db/queries/reconciliations.ts";
import { listRetentionAges } from "../../db/queries/retention.ts";
import { countHeld, countUnfinished } from "../../db/queries/transfers.ts";
import { refusalReasons } from "../../signer/refusals.ts";
import { MAX_READ_ATTEMPTS } from "../../transfers/history-attempts.ts";
import { getTransferDriver } from "../../transfers/transfer-driver.ts";
import { listChainsWithHistory } from "../lifecycle/watch-chain.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { isSignerLogContradicted } from "./signer-log.ts";

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
  chains: { chain: string; cursor: number; lagSeconds: number }[];
  /** The newest reconciliation of the ledger with each chain, minor units. */
  differences: { chain: string; asset: string; difference: bigint; ageSeconds: number }[];
  /** Contradictions that the newest check of the ledger has found, by kind, and its age. */
  findings: { kind: string; count: number }[];
  ledgerCheckSeconds: number;
  /** Unfinished refunds by state, also with a count of 0. */
  refunds: { state: string; count: number }[];
  /** Age of the oldest accepted payment that has not ended. */
  oldestPaymentSeconds: number;
  /** Number of rows of each chain that could not be booked. */
  failedBookings: { chain: string; count: number }[];
  /** Number of payout queues (merchant and asset) that each obstacle blocks. */
  blocked: { kind: PayoutKind; obstacle: string; count: number }[];
  /** Changes of merchants' destinations that wait for their time or a decision. */
  destinationChanges: WaitingChanges[];
  /** Transactions of the treasury's history that are not read yet, and that cannot be read, where it is read separately. */
  history: { chain: string; unread: number; unreadable: number }[];
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

/**
 * Reads the gauges that every worker reports with the same values. Runs one statement after the other, so that a scrape
 * uses one connection. Omits chains that have left the networks file, but not lanes: a removed lane may still have a
 * transaction in flight.
 */
export async function readSystemStatus(deps: Pick<PaymentDeps, "db" | "chains" | "now">): Promise<SystemStatus> {
  const now = deps.now();
  const secondsSince = (at: Date | null) => (at === null ? 0 : Math.max(0, now.getTime() - at.getTime()) / 1000);
  const overdue = await listOldestOverdue(deps.db, now);
  const counts = await countUnfinished(deps.db);
  const held = await countHeld(deps.db);
  const heldOf = (isPayment: boolean) =>
    [...deps.chains.keys()].map((chain) => {
      const found = held.find((one) => one.chain === chain && one.is_payment === isPayment);
      return { chain, count: found?.count ?? 0 };
    });
  const lanes = await listLaneStatuses(deps.db);
  const differences = (await listDifferences(deps.db)).filter(({ chain }) => deps.chains.has(chain));
  const findings = await countFindings(deps.db);
  const checkedAt = await findLastCheck(deps.db);
  const failures = await countFailures(deps.db);
  const refunds = await countOpenRefunds(deps.db);
  const oldestPayment = await findOldestUnfinishedPayment(deps.db);
  const entries = await countEntries(deps.db, { unreadable: MAX_READ_ATTEMPTS });
  const oldestEvent = await findOldestPendingEvent(deps.db);
  const auditHead = await findOldestUnexportedHead(deps.db);
  const auditEntry = await findOldestOpenEntry(deps.db);
  const blocked = await countBlockedQueues(deps.db);
  const changes = await countWaitingChanges(deps.db);
  const { rewoundAt, walBytes } = await readDatabaseStatus(deps.db);
  const unread = new Set(await listUnreadChains(deps.db));
  const ages = await listRetentionAges(deps.db);
  const isLaneHeld = (lane: LaneStatus, status: ChainStatus | undefined) => {
    const chain = deps.chains.get(lane.chain);
    return chain !== undefined && getTransferDriver(chain).isLaneHeld(lane, status);
  };
  const chains = (await listChainStatuses(deps.db, now)).filter(({ chain }) => deps.chains.has(chain));
  return {
    steppedBackAt: rewoundAt,
    walBytes,
    findings: findingKinds.map((kind) => ({ kind, count: findings.find((one) => one.kind === kind)?.count ?? 0 })),
    ledgerCheckSeconds: secondsSince(checkedAt),
    unread: [...deps.chains.keys()].map((chain) => ({ chain, unread: unread.has(chain) })),
    overdue: overdue.map(({ table, since }) => ({ table, seconds: secondsSince(since) })),
    transfers: [
      ...[...deps.chains.keys()].flatMap((chain) => unfinished.map((state) => ({ chain, state, count: 0 }))),
      ...counts,
    ],
    heldPayouts: heldOf(false),
    heldPayments: heldOf(true),
    lanes: lanes.map((lane) => ({
      chain: lane.chain,
      lane: lane.address,
      nextNonce: lane.next_nonce,
      inFlight: lane.in_flight,
      oldestSeconds: secondsSince(lane.oldest_at),
      maxFee: lane.newest_max_fee ?? undefined,
      held: isLaneHeld(
        lane,
        chains.find(({ chain }) => chain === lane.chain),
      ),
    })),
    chains: chains.map(({ chain, cursor, reached_head_at: reachedHeadAt }) => ({
      chain,
      cursor,
      lagSeconds: secondsSince(reachedHeadAt),
    })),
    differences: differences.map(({ at, ...one }) => ({ ...one, ageSeconds: secondsSince(at) })),
    refunds: openRefundStates.map((state) => refunds.find((one) => one.state === state) ?? { state, count: 0 }),
    oldestPaymentSeconds: secondsSince(oldestPayment),
    failedBookings: [...new Set([...deps.chains.keys(), ...failures.map(({ chain }) => chain)])].map((chain) => ({
      chain,
      count: failures.find((one) => one.chain === chain)?.count ?? 0,
    })),
    blocked: [
      ...[...obstacles, ...refusalReasons].map((obstacle) => ({ kind: "settlement" as const, obstacle, count: 0 })),
      ...["balance_short", ...refusalReasons].map((obstacle) => ({ kind: "refund" as const, obstacle, count: 0 })),
      ...blocked,
    ],
    destinationChanges: changes,
    history: listChainsWithHistory(deps).map(
      (chain) => entries.find((one) => one.chain === chain) ?? { chain, unread: 0, unreadable: 0 },
    ),
    oldestEventSeconds: secondsSince(oldestEvent),
    auditHeadSeconds: secondsSince(auditHead),
    auditEntrySeconds: secondsSince(auditEntry),
    retention: ages.map(({ relation, days, next_at, failing }) => ({
      relation,
      behindSeconds: days === null ? 0 : Math.max(0, secondsSince(next_at) - days * 86_400),
      failing,
    })),
    isSignerLogContradicted: await isSignerLogContradicted(deps),
  };
}
