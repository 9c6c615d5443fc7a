import { z } from "zod";

/** What a queue's jobs look like and how they are run. Payloads hold ids only: Postgres is the truth. */
export type JobSpec = {
  data: z.ZodType;
  /** Tries on passing trouble before the job is let go; its row's due time brings a new one. */
  attempts: number;
  /** First wait between tries, milliseconds; doubles each time. */
  backoffMs: number;
  /** Jobs one process runs side by side. */
  concurrency: number;
};

const id = (prefix: string) => z.string().regex(new RegExp(`^${prefix}_[0-9a-f]{32}$`));
const chain = z.string().regex(/^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$/);

/** Every job this service runs. A line added here does not compile until workers/handlers.ts handles it. */
export const catalog = {
  "verify-signature": { data: z.strictObject({ attemptId: id("att") }), attempts: 8, backoffMs: 500, concurrency: 64 },
  "relay-permit": { data: z.strictObject({ transferId: id("trf") }), attempts: 8, backoffMs: 500, concurrency: 64 },
  "submit-solana": { data: z.strictObject({ transferId: id("trf") }), attempts: 8, backoffMs: 500, concurrency: 16 },
  "watch-chain": { data: z.strictObject({ chain }), attempts: 8, backoffMs: 250, concurrency: 16 },
  "expire-payment": { data: z.strictObject({ paymentId: id("pay") }), attempts: 8, backoffMs: 1_000, concurrency: 16 },
  settle: { data: z.strictObject({ settlementId: id("stl") }), attempts: 8, backoffMs: 1_000, concurrency: 32 },
  sweep: { data: z.strictObject({}), attempts: 1, backoffMs: 1_000, concurrency: 1 },
} as const satisfies Record<string, JobSpec>;

export type QueueName = keyof typeof catalog;
export type JobData<N extends QueueName> = z.infer<(typeof catalog)[N]["data"]>;
export const queueNames = Object.keys(catalog) as QueueName[];

/** True for the name of a queue; for parsing WORKER_QUEUES. */
export function isQueueName(name: string): name is QueueName {
  return Object.hasOwn(catalog, name);
}
