import { type ColumnUpdates, moveRows } from "../../db/moves.ts";
import { findPayment, type PaymentWithMerchant, recordSimulatedPayment } from "../../db/queries/payments.ts";
import { machines, type NextOf, type PaymentState } from "../../db/states.ts";
import { type Result, refuse } from "../error-codes.ts";
import { findPayable } from "../options/payable-assets.ts";
import { readPaidAssets } from "../options/terms.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import type { PaymentStatus } from "../views.ts";
import { findStatus, type PaymentQuery } from "./read-payment.ts";

export type SimulatedState = Exclude<PaymentState, "requires_action">;

/**
 * Drives a payment of test mode to a state, by the same moves as live payments (specification, part 3). Integrators use
 * it to see each outcome. No money moves. Refuses with `not_sandbox_api_key` in live mode, with `payment_not_found`,
 * and with `invalid_state` when no moves lead to the state. Throws the error of a price that it needs and that cannot be
 * read at the moment.
 */
export async function simulatePayment(
  deps: PaymentDeps,
  query: PaymentQuery,
  to: SimulatedState,
): Promise<Result<PaymentStatus>> {
  if (query.mode !== "test") return refuse("not_sandbox_api_key", "only payments of test mode can be driven by hand");
  const payment = await findPayment(deps.db, query);
  if (!payment) return refuse("payment_not_found", "no such payment");
  const path = findPath(payment.state, to);
  if (!path) return refuse("invalid_state", `the payment is ${payment.state}, which is never followed by ${to}`);
  const paid = to === "succeeded" ? await pickPaid(deps, payment) : undefined;
  if (to === "succeeded" && !paid)
    return refuse("invalid_state", `no asset that the merchant is paid in can pay ${payment.unit}`);
  const moved = await walk(deps, { id: payment.id, path, last: settingsFor(to), paid });
  if (!moved) return refuse("invalid_state", "the payment changed its state concurrently");
  await deps.publishPaymentChanges([payment.id]);
  return findStatus(deps, query);
}

/** A move of a payment that is not final. */
type Step =
  | { from: "requires_action"; to: NextOf<"payment", "requires_action"> }
  | { from: "processing"; to: NextOf<"payment", "processing"> };

/** Returns the moves from one state to another: directly, or through `processing`. */
function findPath(from: PaymentState, to: SimulatedState): Step[] | undefined {
  const end = machines.payment.processing.find((state) => state === to);
  if (from === "processing") return end && [{ from, to: end }];
  if (from !== "requires_action") return undefined;
  const direct = machines.payment.requires_action.find((state) => state === to);
  if (direct) return [{ from, to: direct }];
  return (
    end && [
      { from, to: "processing" },
      { from: "processing", to: end },
    ]
  );
}

type Paid = { asset: string; amount: bigint };

/** Returns the asset that the simulated buyer pays with: the first one that can pay the payment. */
async function pickPaid(deps: PaymentDeps, payment: PaymentWithMerchant): Promise<Paid | undefined> {
  const { payable, outage } = await findPayable(deps, payment, await readPaidAssets(deps.db, payment.merchant_id));
  const [first] = payable;
  if (!first && outage) throw outage;
  return first && { asset: first.token.asset, amount: first.amount };
}

function settingsFor(to: SimulatedState): ColumnUpdates<"payment"> {
  if (to === "failed") return { failure_code: "declined_user" };
  return to === "cancelled" ? { cancelled_reason: "cancelled_by_merchant" } : {};
}

/** Moves a payment along a path, each step with a guarded move and an event as in live mode. False on a lost race. */
async function walk(
  deps: PaymentDeps,
  {
    id,
    path,
    last,
    paid,
  }: { id: string; path: readonly Step[]; last: ColumnUpdates<"payment">; paid: Paid | undefined },
): Promise<boolean> {
  const moved = await deps.db.transaction().execute(async (db) => {
    for (const [index, step] of path.entries()) {
      const isLast = index === path.length - 1;
      if (isLast && paid && !(await recordSimulatedPayment(db, { id, ...paid }))) return false;
      const set = { due_at: null, ...(isLast ? last : {}) };
      const move = { ids: [id], at: deps.now(), set, detail: { simulated: true } };
      const ids =
        step.from === "requires_action"
          ? await moveRows(db, "payment", { ...move, from: step.from, to: step.to })
          : await moveRows(db, "payment", { ...move, from: step.from, to: step.to });
      if (ids.length === 0) return false;
    }
    return true;
  });
  if (moved) for (const { from, to } of path) deps.metrics.paymentTransitions.inc({ mode: "test", from, to });
  return moved;
}
