import type { Sender } from "../chains/chain-driver.ts";
import { checkLedgerIfDue } from "../payments/accounting/check-ledger.ts";
import { reconcileChain } from "../payments/accounting/reconcile-chain.ts";
import { expirePayment } from "../payments/lifecycle/expire-payment.ts";
import { isGone } from "../payments/lifecycle/gone-chains.ts";
import { createSend } from "../payments/lifecycle/relay-transfers.ts";
import { createVerify } from "../payments/lifecycle/verify-batches.ts";
import { createHistoryReader, createWatch } from "../payments/lifecycle/watch-chain.ts";
import { cleanUp, deleteLateQuotes } from "../payments/maintenance/clean-up.ts";
import { recordSignerHead } from "../payments/maintenance/signer-log.ts";
import { sumEndedPayments } from "../payments/maintenance/sum-payments.ts";
import { applyDueChanges } from "../payments/merchants/decide-changes.ts";
import { hasUnreportedDestinations, reportDestinations } from "../payments/merchants/report-destinations.ts";
import { runOperatorRequests } from "../payments/operators/run-requests.ts";
import { dispatchRefunds, dispatchSettlements } from "../payments/payouts/dispatch-payouts.ts";
import { moveExcess } from "../payments/payouts/move-excess.ts";
import { type DeliveryDeps, deliverDue, initializeDeliveries } from "../payments/webhooks/deliver-events.ts";
import type { JobData } from "../queues/catalog.ts";
import type { Handlers, JobResult } from "../queues/consume.ts";
import { runEach } from "../runtime/run-each.ts";
import type { TransferDeps } from "../transfers/transfer-deps.ts";
import type { Verifier } from "../transfers/verifier.ts";
import { createChainShares } from "./chain-shares.ts";
import { enqueueHistoryReads, enqueueMovesOfExcess, enqueueReconciliations, sweep } from "./enqueue-due.ts";

/** What the handlers pass to the modules that they call. */
export type WorkerDeps = DeliveryDeps &
  TransferDeps & {
    verifier: Verifier;
    isTransient: (cause: unknown) => boolean;
    /** Runs work that serves several jobs: its log lines and jobs belong to no single request. */
    withoutRequestContext: <T>(work: () => T) => T;
    /** Chains that match the networks file; the set grows. Nothing is sent to or read from other chains. */
    startedChains: ReadonlySet<string>;
    /** Compares the buyers' pages as they are served with the release. */
    checkPages: () => Promise<void>;
  };

/** Interval between deletions of rows past their retention, seconds. */
const CLEAN_EVERY_S = 5;

/** Interval between deletions of quotes that ended long after they were renewed, seconds. Each reads one of the days before. */
const LATE_QUOTES_EVERY_S = 3_600;
const LATE_QUOTES_DAYS = 30;

/** Interval between checks for chains whose reconciliation is due, seconds. */
const RECONCILE_EVERY_S = 5;

/** Interval between reads of the treasury's history on Solana, seconds. */
const HISTORY_EVERY_S = 2;

/** Interval between checks of what the treasury holds above its ceilings, seconds. */
const EXCESS_EVERY_S = 60;

/** Interval at which payments that have ended are added to the sums of lists, seconds. */
const SUM_EVERY_S = 10;

/** Interval between checks of the buyers' pages, seconds. */
const PAGES_EVERY_S = 120;

/** Interval at which the signer's audit log is compared with what it was, seconds. */
const SIGNER_HEAD_EVERY_S = 60;

/** Time after which another worker can take the job of a watcher whose chain this worker does not have, milliseconds. */
const OTHERS_AFTER_MS = 1_000;

const done: JobResult = { done: true };
/** The handler stopped early although there is more to do, so that the worker can run other jobs in between. */
const rerun: JobResult = { rerunInMs: 0 };

/** Creates one handler for each queue of the catalog. Each handler calls one step of another module. */
export function createHandlers(deps: WorkerDeps): Handlers {
  initializeDeliveries(deps);
  const watch = createWatch(deps);
  const history = createHistoryReader(deps);
  const verify = createVerify(deps);
  const runInShare = createChainShares([...deps.chains.keys()]);
  /**
   * True while a chain has not started, or only other workers have it. The sweep enqueues its jobs again. Jobs of a chain that
   * has been removed for a day run, and fail.
   */
  const mustWait = async (chain: string): Promise<boolean> =>
    deps.chains.has(chain) ? !deps.startedChains.has(chain) : !(await isGone(deps, chain));

  /** Verifies attempts. An attempt whose payer is a contract goes to a queue of its own, so that plain keys do not wait. */
  const verifyAll = async (
    queue: "verify-signature" | "verify-contract-wallet",
    { chain, attemptIds }: JobData<typeof queue>,
  ): Promise<JobResult> => {
    await runInShare({ queue, chain }, async () => {
      const ends = await Promise.allSettled(
        attemptIds.map(async (id) => {
          if ((await verify(id)) === "by code")
            await deps.enqueue("verify-contract-wallet", [{ data: { chain, attemptIds: [id] } }]);
        }),
      );
      for (const end of ends) if (end.status === "rejected") throw end.reason;
    });
    return done;
  };

  /** Returns the handler that sends every ready transfer of a sender. */
  const send = (sender: Sender) => {
    const run = createSend(deps, sender);
    return async ({ chain }: { chain: string }): Promise<JobResult> => {
      if (await mustWait(chain)) return done;
      return (await deps.withoutRequestContext(() => run(chain))) === "more" ? rerun : done;
    };
  };

  /** Returns the handler that sends an endpoint its events. An endpoint that is slow leaves the queue of the others (`onlyFast`). */
  const deliver =
    (onlyFast: boolean) =>
    async ({ endpointId }: { endpointId: string }, signal: AbortSignal): Promise<JobResult> =>
      (await deliverDue(deps, { endpointId, signal, onlyFast })) === "more" ? rerun : done;

  const reportWhenDue = async (at: number): Promise<void> => {
    if (at % SIGNER_HEAD_EVERY_S === 0 || (await hasUnreportedDestinations(deps)))
      await deps.enqueue("report-destinations", [{ data: { at } }]);
  };

  /** The parts of the sweep, and every how many seconds each of them runs. */
  const sweepParts: readonly [everyS: number, run: (at: number) => Promise<unknown>][] = [
    [HISTORY_EVERY_S, (at) => enqueueHistoryReads(deps, at)],
    [1, () => sweep(deps)],
    [1, () => applyDueChanges(deps)],
    [1, reportWhenDue],
    [CLEAN_EVERY_S, () => cleanUp(deps)],
    [LATE_QUOTES_EVERY_S, (at) => deleteLateQuotes(deps, (at / LATE_QUOTES_EVERY_S) % LATE_QUOTES_DAYS)],
    [RECONCILE_EVERY_S, () => enqueueReconciliations(deps)],
    [EXCESS_EVERY_S, (at) => enqueueMovesOfExcess(deps, at)],
    [SUM_EVERY_S, (at) => deps.enqueue("sum-payments", [{ data: { at } }])],
    [PAGES_EVERY_S, (at) => deps.enqueue("check-pages", [{ data: { at } }])],
  ];

  /** Finds work that no job does, and enqueues what is due at this second. A part that fails does not keep the others from running. */
  const runSweep = (at: number): Promise<void> =>
    runEach(
      sweepParts.filter(([everyS]) => at % everyS === 0),
      ([, run]) => run(at),
      deps,
    );

  return {
    "verify-signature": (data) => verifyAll("verify-signature", data),
    "verify-contract-wallet": (data) => verifyAll("verify-contract-wallet", data),
    "relay-transfers": send("lanes"),
    "relay-contract-wallet": send("wallet lane"),
    "submit-solana": send("relayers"),
    "watch-chain": async ({ chain, block }, signal) => {
      // The sweep would find a chain of another worker only when its watcher's lease has ended.
      if (await mustWait(chain)) return deps.chains.has(chain) ? done : { rerunInMs: OTHERS_AFTER_MS };
      const pass = await watch({ chain, signal });
      if (!pass.mine) return done;
      if (pass.next === block) return signal.aborted ? done : rerun;
      await deps.enqueue("watch-chain", [{ data: { chain, block: pass.next } }]);
      return done;
    },
    "read-history": async ({ chain }) => {
      if (await mustWait(chain)) return done;
      return (await deps.withoutRequestContext(() => history(chain))) === "more" ? rerun : done;
    },
    "expire-payment": async ({ paymentId }) => {
      const expiry = await expirePayment(deps, paymentId);
      return expiry.decided || expiry.waitMs === undefined ? done : { rerunInMs: expiry.waitMs };
    },
    settle: async ({ settlementIds }) => {
      await dispatchSettlements(deps, settlementIds);
      return done;
    },
    refund: async ({ refundIds }) => {
      await dispatchRefunds(deps, refundIds);
      return done;
    },
    reconcile: async ({ chain }) => {
      try {
        await checkLedgerIfDue(deps);
      } finally {
        if (!(await mustWait(chain))) {
          const reconciled = await reconcileChain(deps, { chain });
          if (!reconciled.ok)
            deps.log.warn({ chain, reason: reconciled.message }, "the ledger was not compared with the chain");
        }
      }
      return done;
    },
    "deliver-webhook": deliver(true),
    "deliver-slow-webhook": deliver(false),
    sweep: async ({ at }) => {
      try {
        await runSweep(at);
      } finally {
        // What operators do at night must not depend on the rest of the sweep.
        await runOperatorRequests(deps);
      }
      return done;
    },
    "report-destinations": async () => {
      await reportDestinations(deps);
      await recordSignerHead(deps);
      return done;
    },
    "move-excess": async ({ chain }) => {
      if (!(await mustWait(chain))) await deps.withoutRequestContext(() => moveExcess(deps, chain));
      return done;
    },
    "sum-payments": async () => ((await sumEndedPayments(deps)) === "more" ? rerun : done),
    "check-pages": async () => {
      await deps.checkPages();
      return done;
    },
  };
}
