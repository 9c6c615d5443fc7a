import { z } from "zod";

/** What a queue's jobs look like and how they are run. Payloads hold ids only: Postgres is the truth. */
type JobSpec<D> = {
  data: z.ZodType<D>;
  /**
   * The piece of work in the job's deterministic id, `step-id`. BullMQ refuses ids with one colon, so CAIP ids are
   * written with dashes.
   */
  subject: (data: D) => string;
  /** Tries on passing trouble before the job is let go; its row's due time brings a new one. */
  attempts: number;
  /** First wait between tries, milliseconds; doubles each time. */
  backoffMs: number;
  /** Jobs one process runs side by side. */
  concurrency: number;
  /** Makes one job of several that are rung for at the same moment, where a handler takes several at once. */
  merge?: (all: readonly D[]) => D;
};

/** The request that caused the job, where one did; for log lines alone. */
const caused = { requestId: z.string().max(128).optional() };
const id = (prefix: string) => z.string().regex(new RegExp(`^${prefix}_[0-9a-f]{32}$`));
/** Confirms taken at the same moment, and the requests that they came with; the job's id is the first one's. */
const attemptRefs = z.strictObject({
  attemptIds: z.tuple([id("att")], id("att")),
  requestIds: z.array(caused.requestId.unwrap()).optional(),
  ...caused,
});
const chainId = z.string().regex(/^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$/);
/** `transferId` is the one that the ring was for; whoever answers carries everything that is ready on the chain. */
const transferRef = z.strictObject({ chain: chainId, transferId: id("trf"), ...caused });
const paymentRef = z.strictObject({ paymentId: id("pay"), ...caused });
/** Payouts that became due together; the job's id is the first one's. */
const settlementRefs = z.strictObject({ settlementIds: z.tuple([id("stl")], id("stl")), ...caused });
/** Refunds that may be begun; the job's id is the first one's. */
const refundRefs = z.strictObject({ refundIds: z.tuple([id("rfnd")], id("rfnd")), ...caused });
/** `block` is the one that the watcher waits for. */
const blockRef = z.strictObject({ chain: chainId, block: z.number().int().min(0), ...caused });
/** Whoever answers sends the endpoint everything that is due for it. */
const endpointRef = z.strictObject({ endpointId: id("whe"), ...caused });
/** One comparison of the books with a chain; `at` is the second of Unix time it was rung for. */
const reconcileRef = z.strictObject({ chain: chainId, at: z.number().int().min(0), ...caused });
/** The treasury's history on a Solana; `at` is the second of Unix time it was rung for. */
const historyRef = reconcileRef;
/** `at` is a second of Unix time, so that all worker processes together ring one sweep, or look, for it. */
const tick = z.strictObject({ at: z.number().int().min(0), ...caused });

const job = <D>(spec: JobSpec<D>): JobSpec<D> => spec;

const mergeAttempts = (all: readonly z.infer<typeof attemptRefs>[]) => ({
  attemptIds: all.flatMap(({ attemptIds }) => attemptIds) as [string, ...string[]],
  requestIds: all.flatMap(({ requestId }) => requestId ?? []),
});

/** Every job this service runs. A line added here does not compile until workers/handlers.ts handles it. */
export const catalog = {
  "verify-signature": job({
    data: attemptRefs,
    subject: (d) => d.attemptIds[0],
    attempts: 8,
    backoffMs: 500,
    concurrency: 64,
    merge: mergeAttempts,
  }),
  // What only a payer's code or its own transaction can prove: it must hold no place that a plain key needs.
  "verify-wallet": job({
    data: attemptRefs,
    subject: (d) => d.attemptIds[0],
    attempts: 8,
    backoffMs: 500,
    concurrency: 64,
    merge: mergeAttempts,
  }),
  "relay-permit": job({
    data: transferRef,
    subject: (d) => d.transferId,
    attempts: 8,
    backoffMs: 500,
    concurrency: 64,
  }),
  // The same for transfers of contract wallets.
  "relay-wallet": job({
    data: transferRef,
    subject: (d) => d.transferId,
    attempts: 8,
    backoffMs: 500,
    concurrency: 64,
  }),
  "submit-solana": job({
    data: transferRef,
    subject: (d) => d.transferId,
    attempts: 8,
    backoffMs: 500,
    concurrency: 16,
  }),
  "watch-chain": job({
    data: blockRef,
    subject: (d) => `${d.chain.replaceAll(":", "-")}-${d.block}`,
    attempts: 8,
    backoffMs: 250,
    concurrency: 16,
  }),
  "read-history": job({
    data: historyRef,
    subject: (d) => `${d.chain.replaceAll(":", "-")}-${d.at}`,
    attempts: 3,
    backoffMs: 1_000,
    concurrency: 4,
  }),
  "expire-payment": job({
    data: paymentRef,
    subject: (d) => d.paymentId,
    attempts: 8,
    backoffMs: 1_000,
    concurrency: 16,
  }),
  settle: job({
    data: settlementRefs,
    subject: (d) => d.settlementIds[0],
    attempts: 8,
    backoffMs: 1_000,
    concurrency: 32,
  }),
  refund: job({
    data: refundRefs,
    subject: (d) => d.refundIds[0],
    attempts: 8,
    backoffMs: 1_000,
    concurrency: 8,
  }),
  reconcile: job({
    data: reconcileRef,
    subject: (d) => `${d.chain.replaceAll(":", "-")}-${d.at}`,
    attempts: 3,
    backoffMs: 2_000,
    concurrency: 2,
  }),
  "deliver-webhook": job({
    data: endpointRef,
    subject: (d) => d.endpointId,
    attempts: 8,
    backoffMs: 1_000,
    // Endpoints, not events: each waits for somebody else's server most of the time.
    concurrency: 64,
  }),
  "check-pages": job({ data: tick, subject: (d) => String(d.at), attempts: 1, backoffMs: 1_000, concurrency: 1 }),
  sweep: job({ data: tick, subject: (d) => String(d.at), attempts: 1, backoffMs: 1_000, concurrency: 1 }),
} as const;

export type QueueName = keyof typeof catalog;
export type JobData<N extends QueueName> = z.infer<(typeof catalog)[N]["data"]>;
export const queueNames = Object.keys(catalog) as QueueName[];

/** True for the name of a queue; for parsing WORKER_QUEUES. */
export function isQueueName(name: string): name is QueueName {
  return Object.hasOwn(catalog, name);
}

/**
 * The deterministic id of one piece of work, `queue-subject-try`: adding it twice runs it once. The sweep raises `try`,
 * so that a failed job kept for people to see never blocks its row.
 */
export function jobId<N extends QueueName>(queue: N, data: JobData<N>, again: number): string {
  const subject = catalog[queue].subject as (data: JobData<N>) => string;
  return `${queue}-${subject(data)}-${again}`;
}
