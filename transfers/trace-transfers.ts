import { listPaymentTraces } from "../db/queries/payment-traces.ts";
import { addSpan, inSharedSpan, isTracing, type SpanDescription } from "../runtime/tracing/spans.ts";
import type { TransferDeps } from "./transfer-deps.ts";

type Traced = { id: string; payment_id: string | null };
type Assigned = Traced & { lane_id: string | null; lane_nonce: number | null };
/** A transaction of a lane, with the time of its broadcast. */
type Sent = { lane_id: string; nonce: number; broadcast_at: Date | null };

/** Runs a step of several transfers in the traces of their payments (runtime/tracing/spans.ts, `inSharedSpan`). */
export async function traceTransfers<T>(
  deps: Pick<TransferDeps, "db" | "log">,
  name: string,
  { chain, transfers }: { chain: string; transfers: readonly Traced[] },
  work: () => Promise<T>,
): Promise<T> {
  if (!isTracing()) return work();
  return inSharedSpan(await listMembers(deps, transfers), () => describeStep(name, chain, transfers.length), work);
}

/** Adds the time from their broadcast until now to the traces of transfers that were found in a block. Returns at once. */
export function traceInclusion(
  deps: Pick<TransferDeps, "db" | "log">,
  { chain, transfers, sent }: { chain: string; transfers: readonly Assigned[]; sent: readonly Sent[] },
): void {
  const sentAt = (of: Assigned) =>
    sent.find((row) => row.lane_id === of.lane_id && row.nonce === of.lane_nonce)?.broadcast_at;
  addTransferSpans(deps, "include", { chain, transfers, since: sentAt });
}

/** Adds the recording of transfers, which began at a time and has ended, to the traces of their payments. Returns at once. */
export function traceObservation(
  deps: Pick<TransferDeps, "db" | "log">,
  { chain, transfers, began }: { chain: string; transfers: readonly Traced[]; began: Date },
): void {
  addTransferSpans(deps, "observe", { chain, transfers, since: () => began });
}

/** Never throws, and no caller waits for the statement. */
function addTransferSpans<R extends Traced>(
  deps: Pick<TransferDeps, "db" | "log">,
  name: string,
  { chain, transfers, since }: { chain: string; transfers: readonly R[]; since: (of: R) => Date | null | undefined },
): void {
  const timed = transfers.flatMap((transfer) => {
    const startedAt = since(transfer);
    return startedAt ? [{ transfer, startedAt }] : [];
  });
  if (!isTracing() || timed.length === 0) return;
  const add = async () => {
    const members = await listMembers(
      deps,
      timed.map(({ transfer }) => transfer),
    );
    for (const [index, { startedAt }] of timed.entries()) {
      const member = members[index];
      if (member) addSpan(member, { ...describeStep(name, chain, 1), startedAt });
    }
  };
  add().catch((err: unknown) => deps.log.debug({ err, step: name }, "step not added to its traces"));
}

/**
 * Returns the traces of payments by payment. A failure is logged and finds none: no step that moves money or sends a webhook may
 * fail because of its trace. Call it outside of transactions, which a failed statement would end.
 */
export async function readPaymentTraces(
  { db, log }: Pick<TransferDeps, "db" | "log">,
  paymentIds: readonly (string | null)[],
): Promise<ReadonlyMap<string, string>> {
  try {
    return await listPaymentTraces(db, paymentIds);
  } catch (err) {
    log.warn({ err }, "traces of payments cannot be read");
    return new Map();
  }
}

async function listMembers(deps: Pick<TransferDeps, "db" | "log">, transfers: readonly Traced[]) {
  const traces = await readPaymentTraces(
    deps,
    transfers.map((one) => one.payment_id),
  );
  return transfers.map(({ id, payment_id }) => ({
    trace: traces.get(payment_id ?? ""),
    attributes: { "pay.transfer.id": id, ...(payment_id === null ? {} : { "pay.payment.id": payment_id }) },
  }));
}

const describeStep = (name: string, chain: string, transfers: number): SpanDescription => ({
  name,
  attributes: { "pay.chain": chain, "pay.batch.size": transfers },
});
