import type { AttemptWithContext } from "../../db/queries/attempts.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import type { Accepted, Outcomes } from "./accept-attempts.ts";
import { type ReadyTransfer, wakeRelays } from "./relay-transfers.ts";

/** Counts accepted attempts, announces their payments and has their transfers relayed. Call it after the commit. */
export async function reportAccepted(
  deps: PaymentDeps,
  attempts: readonly AttemptWithContext[],
  { transfers, outcomes }: { transfers: Accepted["transfers"]; outcomes: Outcomes },
): Promise<void> {
  const accepted = attempts.filter(({ attempt }) => transfers.has(attempt.id));
  if (accepted.length === 0) return;
  for (const whole of accepted) count(deps, whole);
  const ready = accepted.flatMap((whole) => toReady(whole, { transfers, outcomes }) ?? []);
  await Promise.all([deps.publishPaymentChanges(accepted.map(({ payment }) => payment.id)), wakeRelays(deps, ready)]);
}

function count({ metrics }: PaymentDeps, { payment: { mode }, option }: AttemptWithContext): void {
  metrics.attempts.inc({ outcome: "verified", kind: option.kind });
  metrics.paymentTransitions.inc({ mode, from: "requires_action", to: "processing" });
  if (mode === "test") metrics.paymentTransitions.inc({ mode, from: "processing", to: "succeeded" });
}

/** Returns the transfer to relay. Undefined for a push, which the buyer's wallet has sent, and in test mode. */
function toReady(
  whole: AttemptWithContext,
  { transfers, outcomes }: { transfers: Accepted["transfers"]; outcomes: Outcomes },
): ReadyTransfer | undefined {
  const { chain, kind } = whole.option;
  const transferId = transfers.get(whole.attempt.id);
  if (!transferId || kind === "push") return undefined;
  const outcome = outcomes.get(whole);
  return { chain, transferId, isWallet: outcome?.ok === true && outcome.smartWallet };
}
