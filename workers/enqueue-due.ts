import { takeReconciliations } from "../payments/accounting/reconcile-chain.ts";
import { enqueueRelays, relayQueueOf } from "../payments/lifecycle/relay-transfers.ts";
import { verifyQueueOf } from "../payments/lifecycle/verify-queue.ts";
import { listChainsWithHistory } from "../payments/lifecycle/watch-chain.ts";
import { takeDueWork } from "../payments/maintenance/take-due-rows.ts";
import type { PaymentDeps } from "../payments/payment-deps.ts";
import type { CatchUpDeps } from "../payments/payouts/sign-payout.ts";
import { writeSettledEventParts } from "../payments/webhooks/settled-events.ts";
import type { QueueName } from "../queues/catalog.ts";
import type { JobRequest } from "../queues/enqueue.ts";
import { chunk } from "../runtime/chunk.ts";
import { runEach } from "../runtime/run-each.ts";

type SweepDeps = PaymentDeps & CatchUpDeps & { isTransient: (error: unknown) => boolean };

/** The parts of a sweep. Each enqueues what it has taken before the next one runs a statement. */
const parts: readonly ((deps: SweepDeps) => Promise<void>)[] = [
  async (deps) => {
    const payments = await takeDueWork(deps, "payments");
    // A waiting payment has no job. The sweep enqueues its expiry, so a find here is normal.
    await deps.enqueue(
      "expire-payment",
      payments.map(({ id, retry }) => ({ data: { paymentId: id }, retry })),
    );
  },
  enqueueAttempts,
  enqueueTransfers,
  async (deps) => {
    const due = await takeDueWork(deps, "settlements");
    await enqueueFound(
      deps,
      "settle",
      due.map(({ ids, retry }) => ({ data: { settlementIds: ids }, retry })),
    );
  },
  async (deps) => {
    const due = await takeDueWork(deps, "refunds");
    await enqueueFound(
      deps,
      "refund",
      due.map(({ ids, retry }) => ({ data: { refundIds: ids }, retry })),
    );
  },
  async (deps) => {
    const due = await takeDueWork(deps, "chains");
    await enqueueFound(
      deps,
      "watch-chain",
      due.map(({ chain, block, retry }) => ({ data: { chain, block }, retry })),
    );
  },
  async (deps) => {
    const endpoints = await takeDueWork(deps, "endpoints");
    // New events enqueue no job themselves. The sweep enqueues their endpoints, so a find here is normal.
    for (const queue of ["deliver-webhook", "deliver-slow-webhook"] as const) {
      const due = endpoints.filter(({ slow }) => slow === (queue === "deliver-slow-webhook"));
      await deps.enqueue(
        queue,
        due.map(({ id, retry }) => ({ data: { endpointId: id }, retry })),
      );
      countFound(deps, queue, due.filter(({ lost }) => lost).length);
    }
  },
  // After the jobs, which must not wait for a payout of thousands of payments.
  writeSettledEventParts,
];

/**
 * Enqueues a job for every row that is due. Idempotent: any process can run it at any time. A kind whose statement fails, for
 * example on a locked table, does not keep the others from being enqueued: the first error is thrown after them.
 */
export async function sweep(deps: SweepDeps): Promise<void> {
  const began = deps.now();
  await runEach(parts, (part) => part(deps), deps);
  deps.metrics.sweepLastRun.set(began.getTime() / 1000);
}

/** Attempts in one job. They are verified in batches of this size. */
const ATTEMPTS_OF_JOB = 100;

/** Enqueues due attempts, as few jobs as possible: while a chain hangs, each of its jobs waits for many seconds. */
async function enqueueAttempts(deps: SweepDeps): Promise<void> {
  const due = Map.groupBy(await takeDueWork(deps, "attempts"), verifyQueueOf);
  for (const queue of ["verify-signature", "verify-contract-wallet"] as const) {
    const attempts = due.get(queue) ?? [];
    const jobs = [...Map.groupBy(attempts, ({ chain }) => chain)].flatMap(([chain, waiting]) =>
      chunk(waiting, ATTEMPTS_OF_JOB).flatMap(([first, ...others]): JobRequest<typeof queue>[] =>
        first ? [{ data: { chain, attemptIds: [first.id, ...others.map(({ id }) => id)] }, retry: first.retry }] : [],
      ),
    );
    await deps.enqueue(queue, jobs);
    countFound(deps, queue, attempts.length);
  }
}

async function enqueueTransfers(deps: SweepDeps): Promise<void> {
  const due = await takeDueWork(deps, "transfers");
  const ready = due.map(({ id, smart_wallet: isWallet, ...transfer }) => ({ transferId: id, isWallet, ...transfer }));
  await enqueueRelays(deps, ready);
  for (const queue of ["relay-transfers", "relay-contract-wallet", "submit-solana"] as const)
    countFound(deps, queue, ready.filter((transfer) => relayQueueOf(transfer) === queue).length);
}

/** Enqueues jobs that should have been enqueued before, and counts them. */
async function enqueueFound<N extends QueueName>(
  deps: SweepDeps,
  queue: N,
  jobs: readonly JobRequest<N>[],
): Promise<void> {
  await deps.enqueue(queue, jobs);
  countFound(deps, queue, jobs.length);
}

function countFound(deps: SweepDeps, queue: QueueName, count: number): void {
  deps.metrics.sweepReenqueued.inc({ queue }, count);
}

/** Enqueues the reconciliation of every chain for which it is due. One process claims each chain. */
export async function enqueueReconciliations(deps: PaymentDeps): Promise<void> {
  const at = Math.floor(deps.now().getTime() / 1000);
  const chains = await takeReconciliations(deps);
  await deps.enqueue(
    "reconcile",
    chains.map((chain) => ({ data: { chain, at } })),
  );
}

/** Enqueues a read of the treasury's history on each chain where it is read separately. A lost job delays the read until the next one. */
export async function enqueueHistoryReads(deps: PaymentDeps, at: number): Promise<void> {
  await deps.enqueue(
    "read-history",
    listChainsWithHistory(deps).map((chain) => ({ data: { chain, at } })),
  );
}

/** Enqueues a look at the treasury's excess on each chain. A lost job delays it until the next one. */
export async function enqueueMovesOfExcess(deps: Pick<PaymentDeps, "chains" | "enqueue">, at: number): Promise<void> {
  await deps.enqueue(
    "move-excess",
    [...deps.chains.keys()].map((chain) => ({ data: { chain, at } })),
  );
}
