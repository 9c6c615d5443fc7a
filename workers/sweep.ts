import { takeDue, takeDueChains } from "../db/due.ts";
import type { PaymentDeps } from "../payments/deps.ts";
import type { QueueName } from "../queues/catalog.ts";

/** Rows of a table rung in one statement; more are found by the next sweep, a second later. */
const LIMIT = 500;

/**
 * Rings again for every row whose due time has passed: after a lost job, a flushed Redis, a crash between a commit and
 * its ring. Safe to run anywhere and any number of times.
 */
export async function sweep(deps: PaymentDeps): Promise<void> {
  const now = deps.now();
  const due = async (table: "payment" | "attempt" | "transfer" | "settlement") =>
    takeDue(deps.db, { table, now, limit: LIMIT });
  const [payments, attempts, transfers, settlements] = [
    await due("payment"),
    await due("attempt"),
    await due("transfer"),
    await due("settlement"),
  ];
  const chains = await takeDueChains(deps.db, { now });

  await deps.ring(
    "expire-payment",
    payments.map(({ id, again }) => ({ data: { paymentId: id }, again })),
  );
  await deps.ring(
    "verify-signature",
    attempts.map(({ id, again }) => ({ data: { attemptId: id }, again })),
  );
  await deps.ring(
    "relay-permit",
    transfers.map(({ id, again }) => ({ data: { transferId: id }, again })),
  );
  await deps.ring(
    "settle",
    settlements.map(({ id, again }) => ({ data: { settlementId: id }, again })),
  );
  await deps.ring(
    "watch-chain",
    chains.map(({ chain, block, again }) => ({ data: { chain, block }, again })),
  );

  const found: [QueueName, number][] = [
    ["expire-payment", payments.length],
    ["verify-signature", attempts.length],
    ["relay-permit", transfers.length],
    ["settle", settlements.length],
    ["watch-chain", chains.length],
  ];
  for (const [queue, count] of found) deps.metrics.sweepFinds.inc({ queue }, count);
  deps.metrics.sweepLastRun.set(now.getTime() / 1000);
}
