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

/** Enqueues a job for every row that is due. Idempotent: any process can run it at any time. */
export async function sweep(deps: PaymentDeps & CatchUpDeps): Promise<void> {
  const began = deps.now();
  const { payments, attempts, transfers, settlements, refunds, chains, endpoints } = await takeDueWork(deps);

  // A waiting payment has no job. The sweep enqueues its expiry, so a find here is normal.
  await deps.enqueue(
    "expire-payment",
    payments.map(({ id, retry }) => ({ data: { paymentId: id }, retry })),
  );
  for (const [queue, due] of Map.groupBy(attempts, verifyQueueOf))
    await deps.enqueue(
      queue,
      due.map(({ id, retry }): JobRequest<"verify-signature"> => ({ data: { attemptIds: [id] }, retry })),
    );
  const ready = transfers.map(({ id, smart_wallet: isWallet, ...transfer }) => ({
    transferId: id,
    isWallet,
    ...transfer,
  }));
  await enqueueRelays(deps, ready);
  await deps.enqueue(
    "settle",
    settlements.map(({ ids, retry }) => ({ data: { settlementIds: ids }, retry })),
  );
  await deps.enqueue(
    "refund",
    refunds.map(({ ids, retry }) => ({ data: { refundIds: ids }, retry })),
  );
  await deps.enqueue(
    "watch-chain",
    chains.map(({ chain, block, retry }) => ({ data: { chain, block }, retry })),
  );
  // New events enqueue no job themselves. The sweep enqueues their endpoints, so a find here is normal.
  await deps.enqueue(
    "deliver-webhook",
    endpoints.map(({ id, retry }) => ({ data: { endpointId: id }, retry })),
  );

  const found: [QueueName, number][] = [
    ...(["verify-signature", "verify-contract-wallet"] as const).map((queue): [QueueName, number] => {
      return [queue, attempts.filter((attempt) => verifyQueueOf(attempt) === queue).length];
    }),
    ...(["relay-transfers", "relay-contract-wallet", "submit-solana"] as const).map((queue): [QueueName, number] => {
      return [queue, ready.filter((transfer) => relayQueueOf(transfer) === queue).length];
    }),
    ["settle", settlements.length],
    ["refund", refunds.length],
    ["watch-chain", chains.length],
    ["deliver-webhook", endpoints.filter(({ lost }) => lost).length],
  ];
  for (const [queue, count] of found) deps.metrics.sweepReenqueued.inc({ queue }, count);
  // After the jobs, which must not wait for a payout of thousands of payments.
  await writeSettledEventParts(deps);
  deps.metrics.sweepLastRun.set(began.getTime() / 1000);
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
