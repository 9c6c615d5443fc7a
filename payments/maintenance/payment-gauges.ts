import { countWaitingChanges } from "../../db/queries/destination-changes.ts";
import {
  findOldestPendingEvent,
  findOldestUncoveredRefund,
  listOldestOverdue,
  type Overdue,
} from "../../db/queries/gauges.ts";
import {
  countOpenRefunds,
  countUnfinishedPayments,
  findOldestUnfinishedPayment,
  openRefundStates,
} from "../../db/queries/money-gauges.ts";
import { countBlockedQueues, obstacles } from "../../db/queries/payout-queue.ts";
import type { QueueName } from "../../queues/catalog.ts";
import { refusalReasons } from "../../signer/refusals.ts";
import { GONE_TARGET_MS, targetMs } from "../lifecycle/payment-target.ts";
import { relayQueueOf } from "../lifecycle/relay-transfers.ts";
import { verifyQueueOf } from "../lifecycle/verify-queue.ts";
import { findOldestUnreportedDestination } from "../merchants/report-destinations.ts";
import { type GaugeDeps, measureAge } from "./gauge-deps.ts";

/** The queues whose jobs serve due rows. Each is reported, also without a row that waits. */
const servingQueues = [
  "expire-payment",
  "verify-signature",
  "verify-contract-wallet",
  "relay-transfers",
  "relay-contract-wallet",
  "submit-solana",
  "settle",
  "refund",
  "watch-chain",
  "deliver-webhook",
  "deliver-slow-webhook",
] as const satisfies readonly QueueName[];

/** Returns the queue that serves a row. */
function queueOf(row: Overdue): (typeof servingQueues)[number] {
  switch (row.table) {
    case "payment":
      return "expire-payment";
    case "attempt":
      return verifyQueueOf(row);
    case "transfer":
      return relayQueueOf({ chain: row.chain, isWallet: row.smart_wallet });
    case "settlement":
      return "settle";
    case "refund":
      return "refund";
    case "chain_cursor":
      return "watch-chain";
    case "webhook_delivery":
      return row.slow ? "deliver-slow-webhook" : "deliver-webhook";
  }
}

/** Returns the reads of the gauges of payments, refunds, payouts and what merchants are told. */
export function createPaymentReads(deps: GaugeDeps) {
  const { db } = deps;
  const now = deps.now();
  const chains = [...deps.chains.keys()];
  return {
    /** For how many seconds the oldest due row waits that each queue serves. */
    overdue: async () => {
      const rows = Map.groupBy(await listOldestOverdue(db, { chains, now }), queueOf);
      return {
        overdue: servingQueues.map((queue) => ({
          queue,
          seconds: Math.max(0, ...(rows.get(queue) ?? []).map(({ since }) => measureAge(now, since))),
        })),
      };
    },
    /**
     * The age in seconds of the oldest accepted payment that has not ended, and the number of accepted payments that have not
     * ended within the target of their chain, also on chains that have left the networks file.
     */
    payments: async () => {
      const acceptedBefore = [...deps.chains.values()].map((chain) => ({
        chain: chain.chain,
        at: new Date(now.getTime() - targetMs(chain)),
      }));
      const others = new Date(now.getTime() - GONE_TARGET_MS);
      const overdue = await countUnfinishedPayments(db, { acceptedBefore, others });
      return {
        oldestPaymentSeconds: measureAge(now, await findOldestUnfinishedPayment(db)),
        overduePayments: [...new Set([...chains, ...overdue.map(({ chain }) => chain)])].map((chain) => ({
          chain,
          count: overdue.find((one) => one.chain === chain)?.count ?? 0,
        })),
      };
    },
    /** Unfinished refunds by state, also with a count of 0, and the age in seconds of the oldest that no balance covers. */
    refunds: async () => {
      const refunds = await countOpenRefunds(db);
      return {
        uncoveredRefundSeconds: measureAge(now, await findOldestUncoveredRefund(db)),
        refunds: openRefundStates.map((state) => refunds.find((one) => one.state === state) ?? { state, count: 0 }),
      };
    },
    /** Number of payout queues (merchant and asset) that each obstacle blocks. */
    payouts: async () => ({
      blocked: [
        ...[...obstacles, ...refusalReasons].map((obstacle) => ({ kind: "settlement" as const, obstacle, count: 0 })),
        ...["balance_short", "unrecorded_payout", ...refusalReasons].map((obstacle) => ({
          kind: "refund" as const,
          obstacle,
          count: 0,
        })),
        ...(await countBlockedQueues(db, { chains, now })),
      ],
    }),
    /**
     * Changes of merchants' destinations that wait for their time or a decision, and the age in seconds of the oldest row that the
     * signer has not been told of.
     */
    destinations: async () => ({
      destinationChanges: await countWaitingChanges(db),
      unreportedSeconds: measureAge(now, await findOldestUnreportedDestination(deps)),
    }),
    /** Age in seconds of the oldest undelivered webhook event. */
    webhooks: async () => ({ oldestEventSeconds: measureAge(now, await findOldestPendingEvent(db)) }),
  };
}
