import type { AttemptWithContext } from "../../db/queries/attempts.ts";
import type { VerificationResult } from "../../transfers/verification.ts";
import type { Verifier } from "../../transfers/verifier.ts";
import { findContradictions, refreshRates, reportContradictions } from "../options/quote-contradictions.ts";
import { hasStaleReceiver, OPTION_WITHDRAWN } from "../options/quotes.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { readSigned } from "./wallet-results.ts";

/**
 * Verifies attempts that share one kind of verification. Attempts of test mode are checked by their signature alone,
 * because test mode never reads a chain. Refuses attempts whose receiver is no longer valid or whose chain has left the
 * networks file, and those whose quote contradicts the payment. Throws the chain's error when the chain cannot be read.
 */
export async function checkAttempts(
  deps: Pick<PaymentDeps, "db" | "chains" | "networks" | "now" | "log" | "metrics"> & { verifier: Verifier },
  group: readonly AttemptWithContext[],
): Promise<Map<AttemptWithContext, VerificationResult>> {
  const { verifier } = deps;
  // The earlier attempts of a payer have priority on its balance.
  const waiting = group.toSorted((a, b) => a.attempt.created_at.getTime() - b.attempt.created_at.getTime());
  const by = waiting[0]?.attempt.verification === "wallet" ? "wallet" : "key";
  const signed = ({ option, attempt }: AttemptWithContext) => readSigned(option, attempt.results);
  const current = waiting.filter(
    ({ payment, option }) =>
      payment.state === "requires_action" && deps.chains.has(option.chain) && !hasStaleReceiver(deps, option),
  );
  const quoted = current
    .filter(({ payment }) => payment.mode === "live")
    .map((whole) => ({ whole, quote: whole.option, payment: whole.payment }));
  await refreshRates(deps, quoted);
  const contradictions = await findContradictions(deps, deps.db, quoted);
  reportContradictions(deps, contradictions);
  const contradicting = new Set([...contradictions.keys()].map(({ whole }) => whole));
  const open = current.filter((whole) => !contradicting.has(whole));
  const live = open.filter(({ payment }) => payment.mode === "live");
  const results = await verifier.verify(live.map(signed), by);
  const checked = new Map(
    live.map((whole, index): [AttemptWithContext, VerificationResult] => [
      whole,
      results[index] ?? { ok: false, reason: "not verified" },
    ]),
  );
  for (const whole of waiting) {
    if (checked.has(whole)) continue;
    const { state } = whole.payment;
    const reason = state === "requires_action" ? OPTION_WITHDRAWN : `the payment is ${state}`;
    checked.set(whole, open.includes(whole) ? verifier.checkSignature(signed(whole)) : { ok: false, reason });
  }
  return checked;
}
