import type { PaymentDeps } from "../payments/deps.ts";
import type { PayoutDeps } from "../payments/payout.ts";
import { takeReconciliations } from "../payments/reconcile.ts";
import { queueOf, ringRelays } from "../payments/relay.ts";
import { takeOwed } from "../payments/sweep.ts";
import { verifyQueueOf } from "../payments/verify-queue.ts";
import type { QueueName } from "../queues/catalog.ts";

/** Enqueues a job for every row that is due. Idempotent: any process can run it at any time. */
export async function sweep(deps: PaymentDeps & PayoutDeps): Promise<void> {
  const began = deps.now();
  const { payments, attempts, transfers, settlements, refunds, chains, endpoints } = await takeOwed(deps);

  await deps.ring(
    "expire-payment",
    payments.map(({ id, again }) => ({ data: { paymentId: id }, again })),
  );
  for (const [queue, due] of Map.groupBy(attempts, verifyQueueOf))
    await deps.ring(
      queue,
      due.map(({ id, again }) => ({ data: { attemptIds: [id] as [string] }, again })),
    );
  const ready = transfers.map(({ id, ...transfer }) => ({ transferId: id, ...transfer }));
  await ringRelays(deps, ready);
  await deps.ring(
    "settle",
    settlements.map(({ ids, again }) => ({ data: { settlementIds: ids }, again })),
  );
  await deps.ring(
    "refund",
    refunds.map(({ ids, again }) => ({ data: { refundIds: ids }, again })),
  );
  await deps.ring(
    "watch-chain",
    chains.map(({ chain, block, again }) => ({ data: { chain, block }, again })),
  );
  // New events enqueue no job themselves. The sweep enqueues their endpoints, so a find here is normal.
  await deps.ring(
    "deliver-webhook",
    endpoints.map(({ id, again }) => ({ data: { endpointId: id }, again })),
  );

  const found: [QueueName, number][] = [
    ["expire-payment", payments.length],
    ...(["verify-signature", "verify-wallet"] as const).map((queue): [QueueName, number] => {
      return [queue, attempts.filter((attempt) => verifyQueueOf(attempt) === queue).length];
    }),
    ...(["relay-permit", "relay-wallet", "submit-solana"] as const).map((queue): [QueueName, number] => {
      return [queue, ready.filter((transfer) => queueOf(transfer) === queue).length];
    }),
    ["settle", settlements.length],
    ["refund", refunds.length],
    ["watch-chain", chains.length],
    ["deliver-webhook", endpoints.filter(({ lost }) => lost).length],
  ];
  for (const [queue, count] of found) deps.metrics.sweepFinds.inc({ queue }, count);
  deps.metrics.sweepLastRun.set(began.getTime() / 1000);
}

/** Enqueues the reconciliation of every chain for which it is due. One process claims each chain. */
export async function ringReconciliations(deps: PaymentDeps): Promise<void> {
  const at = Math.floor(deps.now().getTime() / 1000);
  const chains = await takeReconciliations(deps);
  await deps.ring(
    "reconcile",
    chains.map((chain) => ({ data: { chain, at } })),
  );
}

/** Enqueues a read of the treasury's history for each Solana cluster. A lost job delays the read until the next one. */
export async function ringHistories(deps: PaymentDeps, at: number): Promise<void> {
  const chains = [...deps.chains.values()].filter(({ family }) => family === "solana");
  await deps.ring(
    "read-history",
    chains.map(({ chain }) => ({ data: { chain, at } })),
  );
}
