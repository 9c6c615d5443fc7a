import { done, type Result } from "../../payments/error-codes.ts";
import { checkPayment, type NewPayment, writePayment } from "../../payments/lifecycle/create-payment.ts";
import type { PaymentDeps } from "../../payments/payment-deps.ts";
import type { PaymentView } from "../../payments/views.ts";

/** Creates a payment as the API does: checks it, then writes it. */
export async function createPayment(deps: PaymentDeps, args: NewPayment): Promise<Result<PaymentView>> {
  const checked = await checkPayment(deps, args);
  if (!checked.ok) return checked;
  const made = await writePayment(deps, args, checked.value);
  if (!made) throw new Error("the payment was not written");
  return done(made);
}
