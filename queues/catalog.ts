import { z } from "zod";
import { memberNames } from "../runtime/member-names.ts";

/**
 * The payload of a queue's jobs, and how workers run them. Payloads hold ids only: Postgres is the source of truth. During a
 * rollout a worker also gets the jobs of the next release and of the former one. So a schema ignores members that it does
 * not know, and a member that a release adds is optional (docs/operations/upgrades.md).
 */
type JobSpec<D> = {
  data: z.ZodType<D>;
  /**
   * Returns the part of the job id that names the unit of work. BullMQ rejects ids with a single colon, so CAIP ids are
   * written with dashes.
   */
  subject: (data: D) => string;
  /** Attempts after transient errors before the job is dropped. The sweep enqueues a new one when its row is due. */
  attempts: number;
  /** Delay before the first retry, milliseconds. It doubles with each retry. */
  backoffMs: number;
  /** Jobs that one process runs concurrently. */
  concurrency: number;
  /**
   * How long an id stays taken after its job was added, milliseconds, for jobs that several processes enqueue at times of their
   * own. Without it, an id is free again as soon as its job has succeeded.
   */
  onceInMs?: number;
  /** Merges jobs that are enqueued at the same moment into one for each key, for handlers that take several units of work. */
  merge?: { keyOf: (data: D) => string; all: (all: readonly [D, ...D[]]) => D };
};

const trace = z.string().max(64);
/** The API request that caused the job, if any, which log lines use, and the trace, if it is sampled. */
const withRequest = { requestId: z.string().max(128).optional(), trace: trace.optional() };
const chainId = z.string().regex(/^[-a-z0-9]{3,8}:[-_a-zA-Z0-9]{1,32}$/);
const id = (prefix: string) => z.string().regex(new RegExp(`^${prefix}_[0-9a-f]{32}$`));
/**
 * Attempts on one chain that were confirmed at the same moment, their requests and their sampled traces. The first attempt gives
 * the job its id.
 */
const attemptRefs = z.object({
  chain: chainId,
  attemptIds: z.tuple([id("att")], id("att")),
  requestIds: z.array(withRequest.requestId.unwrap()).optional(),
  traces: z.array(trace).optional(),
  ...withRequest,
});
/** `transferId` is the transfer that caused the job. The worker that runs the job relays every ready transfer of the chain. */
const transferRef = z.object({ chain: chainId, transferId: id("trf"), ...withRequest });
const paymentRef = z.object({ paymentId: id("pay"), ...withRequest });
/** Payouts that became due together. The first one gives the job its id. */
const settlementRefs = z.object({ settlementIds: z.tuple([id("stl")], id("stl")), ...withRequest });
/** Refunds that can start. The first one gives the job its id. */
const refundRefs = z.object({ refundIds: z.tuple([id("rfnd")], id("rfnd")), ...withRequest });
/** `block` is the block that the watcher waits for. */
const blockRef = z.object({ chain: chainId, block: z.number().int().min(0), ...withRequest });
/** The worker that runs the job sends every due event of the endpoint. */
const endpointRef = z.object({ endpointId: id("whe"), ...withRequest });
/** One reconciliation of the ledger with a chain, or one check of the treasury's excess there. `at` is the Unix time in seconds at which it was enqueued. */
const reconcileRef = z.object({ chain: chainId, at: z.number().int().min(0), ...withRequest });
/** One read of the treasury's history on a Solana cluster. `at` is the Unix time in seconds at which it was enqueued. */
const historyRef = reconcileRef;
/** `at` is a Unix time in seconds. All worker processes use the same value, so together they enqueue one job per second. */
const tick = z.object({ at: z.number().int().min(0), ...withRequest });

const job = <D>(spec: JobSpec<D>): JobSpec<D> => spec;

type AttemptRefs = z.infer<typeof attemptRefs>;

/** A job has attempts of one chain, so that attempts on other chains do not wait for its endpoints. */
const mergeAttempts = {
  keyOf: ({ chain }: AttemptRefs) => chain,
  all: (all: readonly [AttemptRefs, ...AttemptRefs[]]): AttemptRefs => {
    const [first, ...others] = all;
    const traces = all.flatMap((one) => one.trace ?? []);
    return {
      chain: first.chain,
      attemptIds: [...first.attemptIds, ...others.flatMap(({ attemptIds }) => attemptIds)],
      requestIds: all.flatMap(({ requestId }) => requestId ?? []),
      ...(traces.length > 0 ? { traces } : {}),
    };
  },
};

const jobs = {
  "verify-signature": job({
    data: attemptRefs,
    subject: (d) => d.attemptIds[0],
    attempts: 8,
    backoffMs: 500,
    concurrency: 64,
    merge: mergeAttempts,
  }),
  // Attempts that only the payer's contract code or own transaction can prove. They must not delay attempts of plain keys.
  "verify-contract-wallet": job({
    data: attemptRefs,
    subject: (d) => d.attemptIds[0],
    attempts: 8,
    backoffMs: 500,
    concurrency: 64,
    merge: mergeAttempts,
  }),
  "relay-transfers": job({
    data: transferRef,
    subject: (d) => d.transferId,
    attempts: 8,
    backoffMs: 500,
    concurrency: 64,
  }),
  // Transfers of contract wallets.
  "relay-contract-wallet": job({
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
    // Counts endpoints, not events: each job mostly waits for the merchant's server.
    concurrency: 64,
  }),
  // Endpoints that take seconds or hang, which the others must not wait for.
  "deliver-slow-webhook": job({
    data: endpointRef,
    subject: (d) => d.endpointId,
    attempts: 8,
    backoffMs: 1_000,
    concurrency: 64,
  }),
  "move-excess": job({
    data: reconcileRef,
    subject: (d) => `${d.chain.replaceAll(":", "-")}-${d.at}`,
    attempts: 1,
    backoffMs: 1_000,
    concurrency: 1,
  }),
  "sum-payments": job({ data: tick, subject: (d) => String(d.at), attempts: 1, backoffMs: 1_000, concurrency: 1 }),
  "check-pages": job({ data: tick, subject: (d) => String(d.at), attempts: 1, backoffMs: 1_000, concurrency: 1 }),
  "report-destinations": job({
    data: tick,
    subject: (d) => String(d.at),
    attempts: 1,
    backoffMs: 1_000,
    concurrency: 1,
  }),
  sweep: job({
    data: tick,
    subject: (d) => String(d.at),
    attempts: 1,
    backoffMs: 1_000,
    concurrency: 1,
    // The timers of workers fire up to a second apart, and a sweep usually ends sooner.
    onceInMs: 10_000,
  }),
} as const;

export type QueueName = keyof typeof jobs;
type Payloads = { [N in QueueName]: z.infer<(typeof jobs)[N]["data"]> };
export type JobData<N extends QueueName> = Payloads[N];

/** Every job that this service runs. A new entry does not compile until workers/handlers.ts handles it. */
export const catalog: { readonly [N in QueueName]: JobSpec<Payloads[N]> } = jobs;
export const queueNames = memberNames(jobs);

/** Returns true for the name of a queue. */
export function isQueueName(name: string): name is QueueName {
  return Object.hasOwn(jobs, name);
}

/**
 * Returns the deterministic id of one unit of work, `queue-subject-retry`: a job that is added twice runs once. The sweep
 * raises `retry`, so that a failed job that is kept for inspection never blocks its row.
 */
export function jobId<N extends QueueName>(queue: N, data: JobData<N>, retry: number): string {
  return `${queue}-${catalog[queue].subject(data)}-${retry}`;
}
