import { catalog, isQueueName, type JobData, type QueueName } from "./catalog.ts";

/** What the jobs of a queue work on. */
type Part<N extends QueueName> = {
  /** The part of the service that does the work, in the words of docs/operations.md. */
  component: string;
  /** The ids of the rows whose work the job does; none for work that is repeated within minutes whatever happens. */
  rows: (data: JobData<N>) => readonly string[];
  /** What the repeated work is about, such as a chain. */
  topic?: (data: JobData<N>) => string;
};

const ofChain = { rows: () => [], topic: ({ chain }: { chain: string }) => chain };
const ofTick = { rows: () => [] };
const ofTransfer = { rows: ({ transferId }: { transferId: string }) => [transferId] };
const ofEndpoint = { rows: () => [], topic: ({ endpointId }: { endpointId: string }) => endpointId };
const ofAttempts = { rows: ({ attemptIds }: { attemptIds: readonly string[] }) => attemptIds };

/** A new queue does not compile until it has an entry. */
const parts: { readonly [N in QueueName]: Part<N> } = {
  "verify-signature": { component: "verification of attempts", ...ofAttempts },
  "verify-contract-wallet": { component: "verification of attempts", ...ofAttempts },
  "relay-transfers": { component: "lanes", ...ofTransfer },
  "relay-contract-wallet": { component: "lanes", ...ofTransfer },
  "submit-solana": { component: "lanes", ...ofTransfer },
  "watch-chain": { component: "watcher", ...ofChain },
  "read-history": { component: "watcher", ...ofChain },
  "expire-payment": { component: "expiry of payments", rows: ({ paymentId }) => [paymentId] },
  settle: { component: "payouts", rows: ({ settlementIds }) => settlementIds },
  refund: { component: "refunds", rows: ({ refundIds }) => refundIds },
  reconcile: { component: "reconciliation", ...ofChain },
  "deliver-webhook": { component: "webhooks", ...ofEndpoint },
  "deliver-slow-webhook": { component: "webhooks", ...ofEndpoint },
  "move-excess": { component: "hot balance", ...ofChain },
  "sum-payments": { component: "sums of payments", ...ofTick },
  "check-pages": { component: "check of the buyers' pages", ...ofTick },
  "report-destinations": { component: "signer", ...ofTick },
  sweep: { component: "sweep", ...ofTick },
};

/** What a job works on: `topic` is set for repeated work, and `rows` are the ids of other work. */
export type JobDescription = { component: string; rows: readonly string[]; topic: string | undefined };

/** Describes a job of any queue. Data that no release has written has neither rows nor a topic. */
export function describeJob(queue: string, data: unknown): JobDescription {
  return isQueueName(queue) ? describeOf(queue, data) : { component: "unknown", rows: [], topic: undefined };
}

function describeOf<N extends QueueName>(queue: N, data: unknown): JobDescription {
  const { component, rows, topic } = parts[queue];
  const parsed = catalog[queue].data.safeParse(data);
  if (!parsed.success) return { component, rows: [], topic: undefined };
  const ids = rows(parsed.data);
  return { component, rows: ids, topic: ids.length > 0 ? undefined : (topic?.(parsed.data) ?? "") };
}
