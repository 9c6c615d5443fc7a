import { moveRows, type Setting } from "../db/moves.ts";
import { findPayment, type PaymentWithMerchant } from "../db/payments.ts";
import { machines, type PaymentState } from "../db/states.ts";
import type { PaymentDeps } from "./deps.ts";
import { type Result, refuse } from "./errors.ts";
import { findPayable } from "./payable.ts";
import { findStatus, type PaymentQuery } from "./read.ts";
import { readTerms } from "./terms.ts";
import type { PaymentStatus } from "./views.ts";

export type SimulatedState = Exclude<PaymentState, "requires_action">;

/**
 * Drives a payment of test mode to a state, by the moves that live payments make (part 3): for integrators who want to
 * see each outcome. No money moves. Refuses with `not_sandbox_api_key` in live mode, `payment_not_found`, and
 * `invalid_state` where no such move leads.
 */
export async function simulatePayment(
  deps: PaymentDeps,
  query: PaymentQuery,
  to: SimulatedState,
): Promise<Result<PaymentStatus>> {
  if (query.mode !== "test") return refuse("not_sandbox_api_key", "only payments of test mode can be driven by hand");
  const payment = await findPayment(deps.db, { id: query.paymentId, mode: "test", merchant: query.merchant });
  if (!payment) return refuse("payment_not_found", "no such payment");
  const path = findPath(payment.state, to);
  if (!path) return refuse("invalid_state", `the payment is ${payment.state}, which is never followed by ${to}`);
  const paid = to === "succeeded" ? await pickPaid(deps, payment) : undefined;
  if (to === "succeeded" && !paid)
    return refuse("invalid_state", `no asset that the merchant is paid in can pay ${payment.unit}`);
  const moved = await walk(deps, payment.id, path, settingsFor(payment, to, paid));
  if (!moved) return refuse("invalid_state", "the payment has moved meanwhile");
  await deps.announce([payment.id]);
  return findStatus(deps, query);
}

/** The states from one to another, both included: straight, or by way of processing. */
function findPath(from: PaymentState, to: SimulatedState): PaymentState[] | undefined {
  const next = (state: PaymentState): readonly string[] => machines.payment[state];
  if (next(from).includes(to)) return [from, to];
  return next(from).includes("processing") && next("processing").includes(to) ? [from, "processing", to] : undefined;
}

type Paid = { asset: string; amount: bigint };

/** What the payment would have been paid with: the first asset that pays it. */
async function pickPaid(deps: PaymentDeps, payment: PaymentWithMerchant): Promise<Paid | undefined> {
  const [first] = await findPayable(deps, payment, await readTerms(deps.db, payment));
  return first && { asset: first.token.asset, amount: first.amount };
}

function settingsFor(payment: PaymentWithMerchant, to: SimulatedState, paid: Paid | undefined): Setting<"payment"> {
  if (paid) return { tx_id: `test:${payment.id}`, paid_asset: paid.asset, paid_amount: paid.amount };
  if (to === "failed") return { failure_code: "declined_user" };
  return to === "cancelled" ? { cancelled_reason: "cancelled_by_merchant" } : {};
}

/** Each step is a guarded move and an event of its own, as in live mode. False when somebody else was quicker. */
async function walk(
  deps: PaymentDeps,
  id: string,
  path: readonly PaymentState[],
  last: Setting<"payment">,
): Promise<boolean> {
  const steps = path.slice(1).map((to, index) => ({ from: path[index] as PaymentState, to }));
  const moved = await deps.db.transaction().execute(async (db) => {
    for (const [index, { from, to }] of steps.entries()) {
      const set = { due_at: null, ...(index === steps.length - 1 ? last : {}) };
      const move = { ids: [id], from, to, at: deps.now(), set, detail: { simulated: true } };
      if ((await moveRows(db, "payment", move as Parameters<typeof moveRows<"payment", PaymentState>>[2])).length === 0)
        return false;
    }
    return true;
  });
  if (moved) for (const { from, to } of steps) deps.metrics.paymentMoves.inc({ mode: "test", from, to });
  return moved;
}
