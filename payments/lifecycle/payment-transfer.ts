import type { AttemptWithContext } from "../../db/queries/attempts.ts";
import type { OptionRow } from "../../db/queries/payment-options.ts";
import type { NewTransfer } from "../../db/queries/transfers.ts";
import { getResultReader } from "../../transfers/find-transfer-driver.ts";
import type { VerificationResult } from "../../transfers/verification.ts";
import { newId } from "../ids.ts";
import { type PaymentDeps, REENQUEUE_AFTER_MS } from "../payment-deps.ts";
import { readResults } from "./wallet-results.ts";

type PaymentTransfer = NewTransfer & { payment_id: string };

/** Returns the unsigned transfer that pays a payment by an option, with an id of the time `at`. */
export function toTransfer(option: OptionRow, at: Date): PaymentTransfer {
  const { payment_id, kind, chain, asset, token, payer, receiver, amount, authorization_nonce, valid_before } = option;
  return {
    id: newId("trf", at),
    purpose: "payment",
    payment_id,
    settlement_id: null,
    kind,
    chain,
    asset,
    token,
    payer,
    receiver,
    amount,
    authorization_nonce,
    valid_before,
    signature: null,
    permit: null,
    lane_id: null,
    lane_nonce: null,
    hold_until: null,
    last_error: null,
    due_at: null,
  };
}

/** Returns the transfer of a verified attempt, with the authorization that the wallet has signed. */
export function toSignedTransfer(
  deps: Pick<PaymentDeps, "now">,
  { attempt, option }: AttemptWithContext,
  outcome: VerificationResult | undefined,
): PaymentTransfer {
  const now = deps.now();
  const transfer = toTransfer(option, now);
  // The buyer's wallet has sent a push itself, so the transfer only has to be watched.
  if (option.kind === "push") return { ...transfer, state: "awaited" };
  const verified = outcome?.ok ? outcome : undefined;
  const signed = getResultReader(option.chain).toSignedMembers(readResults(attempt.results), verified);
  const due_at = new Date(now.getTime() + REENQUEUE_AFTER_MS);
  return { ...transfer, ...signed, due_at };
}
