import { z } from "zod";
import type { AuditActor } from "../../db/queries/audit-entries.ts";
import { findPaymentRow, lockPayments } from "../../db/queries/payments.ts";
import { listRefunds } from "../../db/queries/refunds.ts";
import type { Db } from "../../db/tables.ts";
import { isStorable } from "../../runtime/clean-text.ts";
import {
  assignException,
  bookException,
  type Resolved,
  returnException,
  wakeCovered,
} from "../accounting/resolve-exceptions.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import { findMerchantOwner, retryFailedBookings, retryPayment } from "../maintenance/operator-actions.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { holdPayouts } from "../payouts/payout-policies.ts";
import { computeLeft, refundPayment } from "../payouts/refund-payment.ts";
import type { RefundView } from "../payouts/refund-views.ts";
import { withdrawRefund } from "../payouts/withdraw-refunds.ts";
import { findUnitIn, toText } from "../readable-amounts.ts";

/** Work that follows a request. It takes locks that the transaction of the request must not wait for. */
export type AfterCommit = (db: Db) => Promise<void>;

/** `db` is the transaction that also stores how the request has ended; `afterCommit` adds work for when it has committed. */
export type ActionDeps = Pick<PaymentDeps, "now" | "enqueue" | "networks"> & {
  db: Db;
  afterCommit: (work: AfterCommit) => void;
};
type Requested<A> = { actor: AuditActor; subject: string; args: A };

/**
 * An action that operators request on a page. `args` are texts of the form; some describe what the page showed, so that the
 * action is refused when it has changed since. `run` returns one sentence about what was done.
 */
type Action<A> = {
  subject: z.ZodType<string>;
  args: z.ZodType<A>;
  run: (deps: ActionDeps, requested: Requested<A>) => Promise<Result<string>>;
};

const define = <A>(action: Action<A>) => ({
  /** Returns what is wrong with a request, or undefined. */
  validate: ({ subject, args }: { subject: string; args: unknown }): string | undefined => {
    const parsed = z.object({ subject: action.subject, args: action.args }).safeParse({ subject, args });
    return parsed.success
      ? undefined
      : parsed.error.issues.map(({ path, message }) => `${String(path.at(-1))}: ${message}`).join("; ");
  },
  run: (deps: ActionDeps, { actor, subject, args }: Requested<unknown>): Promise<Result<string>> =>
    action.run(deps, { actor, subject: action.subject.parse(subject), args: action.args.parse(args) }),
});

const id = (prefix: string) => z.string().regex(new RegExp(`^${prefix}_[0-9a-f]{32}$`), `expected an id ${prefix}_…`);
const number = z.string().regex(/^[1-9]\d{0,14}$/, "expected a number");
const minorUnits = z.string().regex(/^([1-9]\d{0,77})?$/, "expected an amount in minor units, or nothing");
const note = z
  .string()
  .trim()
  .min(1, "is required")
  .max(500, "is longer than 500 characters")
  .refine(isStorable, "holds characters that are not valid text");
const none = z.strictObject({});

/** Every action of the console, by name. Each calls the same function as the command line. */
export const requestedActions = {
  "retry-payment": define({
    subject: id("pay"),
    args: none,
    run: async (deps, { actor, subject: paymentId }) => {
      const retried = await retryPayment(deps, { actor, paymentId });
      if (!retried) return refuse("payment_not_found", `there is no payment ${paymentId}`);
      const due = Object.entries(retried.due).flatMap(([kind, count]) =>
        count > 0 ? [`${count} ${kind} due now`] : [],
      );
      const held = retried.payoutsHeldSince ? ["payouts to the merchant are held, so nothing is paid out"] : [];
      return done([...(due.length > 0 ? due : ["nothing is due"]), ...held].join(", "));
    },
  }),
  "refund-payment": define({
    subject: id("pay"),
    // `left` is what the page has shown as left to refund. The refund is refused when that has changed since.
    args: z.strictObject({ amount: minorUnits, left: z.string().regex(/^\d{1,78}$/) }),
    run: async (deps, { actor, subject: paymentId, args }) => {
      const payment = await findPaymentRow(deps.db, paymentId);
      if (!payment) return refuse("payment_not_found", `there is no payment ${paymentId}`);
      await lockPayments(deps.db, [paymentId]);
      const left = computeLeft(payment.paid_amount, await listRefunds(deps.db, paymentId));
      if (left !== BigInt(args.left))
        return refuse(
          "invalid_state",
          `what is left to refund has changed since the page was shown: it is ${left} now`,
        );
      const value = args.amount === "" ? left : BigInt(args.amount);
      const amount = { unit: `caip19/${payment.paid_asset}`, value };
      const made = await refundPayment(deps, { actor, paymentId, mode: payment.mode, amount });
      return made.ok ? done(describeRefund(deps, made.value)) : made;
    },
  }),
  "withdraw-refund": define({
    subject: id("rfnd"),
    args: none,
    run: async (deps, { actor, subject: refundId }) => {
      const withdrawn = await withdrawRefund(deps, { actor, refundId });
      return withdrawn.ok ? done("the refund is withdrawn: nothing is sent") : withdrawn;
    },
  }),
  "assign-exception": define({
    subject: number,
    args: z.strictObject({ payment: id("pay") }),
    run: async (deps, { actor, subject, args }) => {
      const assigned = await assignException(deps, { actor, id: Number(subject), paymentId: args.payment });
      return endResolution(deps, assigned, `the merchant of ${args.payment} is credited`);
    },
  }),
  "return-exception": define({
    subject: number,
    args: none,
    run: async (deps, { actor, subject }) => {
      const returned = await returnException(deps, { actor, id: Number(subject) });
      return endResolution(deps, returned, "a refund to the sender is created, and waits for two operators' approvals");
    },
  }),
  "book-exception": define({
    subject: number,
    args: z.strictObject({ as: z.enum(["capital", "cold", "losses"]), note }),
    run: async (deps, { actor, subject, args }) => {
      const booked = await bookException(deps, { actor, id: Number(subject), ...args });
      return endResolution(deps, booked, `the money is booked as ${args.as}`);
    },
  }),
  "retry-booking": define({
    subject: number,
    args: none,
    run: async (deps, { actor, subject }) => {
      const due = await retryFailedBookings(deps, { actor, id: Number(subject) });
      return due === 0 ? refuse("invalid_state", `there is no failed booking ${subject}`) : done("it is retried now");
    },
  }),
  "hold-payouts": define({
    subject: id("mrch"),
    args: none,
    run: (deps, { actor, subject }) => setHold(deps, { actor, merchantId: subject, hold: true }),
  }),
  "release-payouts": define({
    subject: id("mrch"),
    args: none,
    run: (deps, { actor, subject }) => setHold(deps, { actor, merchantId: subject, hold: false }),
  }),
} as const;

export type ActionName = keyof typeof requestedActions;

/** Returns true for the name of an action. */
export const isActionName = (name: string): name is ActionName => Object.hasOwn(requestedActions, name);

/** Returns the end of an exception's action. The payouts that it covers are woken once it has committed. */
function endResolution(deps: ActionDeps, resolved: Result<Resolved>, outcome: string): Result<string> {
  if (!resolved.ok) return resolved;
  deps.afterCommit((db) => wakeCovered(db, resolved.value));
  return done(outcome);
}

function describeRefund(
  { networks }: Pick<ActionDeps, "networks">,
  { refundId, amount, asset, isRecordOnly }: RefundView,
): string {
  const unit = findUnitIn(networks.chains.flatMap(({ assets }) => [...assets]))(asset);
  const made = `refund ${refundId} of ${unit ? toText(amount, unit) : `${amount} minor units`} is created`;
  return isRecordOnly ? `${made}, only as a record: the service sends nothing` : `${made}, and is sent in its turn`;
}

async function setHold(
  deps: ActionDeps,
  { actor, merchantId, hold }: { actor: AuditActor; merchantId: string; hold: boolean },
): Promise<Result<string>> {
  const owner = await findMerchantOwner(deps, merchantId);
  if (!owner) return refuse("merchant_not_found", `there is no merchant ${merchantId}`);
  const held = await holdPayouts(deps, { ...owner, actor, merchantId, hold });
  return held.ok ? done(hold ? "the payouts are held" : "the payouts continue") : held;
}
