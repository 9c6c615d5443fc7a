import { listPaymentTraces } from "../db/queries/payment-traces.ts";
import { addSpan, inSharedSpan, isTracing, type SpanDescription } from "../runtime/tracing/spans.ts";
import type { TransferDeps } from "./transfer-deps.ts";

type Traced = { id: string; payment_id: string | null };

/** Runs a step of several transfers in the traces of their payments (runtime/tracing/spans.ts, `inSharedSpan`). */
export async function traceTransfers<T>(
  deps: Pick<TransferDeps, "db">,
  name: string,
  { chain, transfers }: { chain: string; transfers: readonly Traced[] },
  work: () => Promise<T>,
): Promise<T> {
  if (!isTracing()) return work();
  return inSharedSpan(await listMembers(deps, transfers), () => describeStep(name, chain, transfers.length), work);
}

/**
 * Adds a step of several transfers, which has ended, to the traces of their payments. Never throws, and no caller waits.
 * @param of.since when the step of a transfer began
 */
export function addTransferSpans<R extends Traced>(
  deps: Pick<TransferDeps, "db" | "log">,
  name: string,
  of: { chain: string; transfers: readonly R[]; since: (transfer: R) => Date | null | undefined },
): void {
  if (!isTracing() || of.transfers.length === 0) return;
  const add = async () => {
    const members = await listMembers(deps, of.transfers);
    for (const [index, member] of members.entries()) {
      const transfer = of.transfers[index];
      const startedAt = transfer && of.since(transfer);
      if (startedAt) addSpan(member, { ...describeStep(name, of.chain, 1), startedAt });
    }
  };
  add().catch((err: unknown) => deps.log.debug({ err }, "step not added to its traces"));
}

async function listMembers({ db }: Pick<TransferDeps, "db">, transfers: readonly Traced[]) {
  const traces = await listPaymentTraces(
    db,
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
