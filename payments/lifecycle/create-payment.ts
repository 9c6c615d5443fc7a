import { findPayableMerchant } from "../../db/queries/merchants.ts";
import { insertPayment } from "../../db/queries/payments.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import { type KeyClaim, toClaimedKey } from "../idempotency-keys.ts";
import { newId } from "../ids.ts";
import type { Caller } from "../merchants/callers.ts";
import { validateUnit } from "../money.ts";
import { explainUnpayable, findPayable } from "../options/payable-assets.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import type { PaymentView } from "../views.ts";
import { toNewPaymentView } from "./read-payment.ts";

/** Default lifetime of a payment, milliseconds. */
const LIFETIME_MS = 5 * 60_000;
/** Default lifetime when the merchant has a policy that asks for buyer data, milliseconds. */
const ASKING_LIFETIME_MS = 20 * 60_000;
/** Maximum lifetime, milliseconds. A later `expiresAt` is reduced to it. */
const LONGEST_LIFETIME_MS = 24 * 60 * 60_000;

export type NewPayment = {
  caller: Pick<Caller, "accountId" | "mode"> & Partial<Pick<Caller, "onlyMerchants">>;
  merchantId: string;
  referenceId?: string | undefined;
  description?: string | undefined;
  /** The merchant's own values by their own names. */
  metadata?: Readonly<Record<string, string>> | undefined;
  amount: { unit: string; value: bigint };
  expiresAt?: Date | undefined;
  checkout?: { successUrl: string; errorUrl: string } | undefined;
};

/** A validated payment: its merchant and its default lifetime, milliseconds. */
export type CheckedPayment = { merchant: { id: string; name: string; logo_id: string | null }; usualMs: number };

/**
 * Validates a payment before it is written. Reads prices on chain, so it must not run inside a database transaction.
 * Refuses with `merchant_not_found` (also for a merchant of another account or mode), with `forbidden` for a merchant
 * that is not active, and with `params_validation` for invalid parameters or when no asset can pay the amount. Throws the
 * error of a price that cannot be read at the moment when no asset can pay without it.
 */
export async function checkPayment(deps: PaymentDeps, args: NewPayment): Promise<Result<CheckedPayment>> {
  const { accountId, mode, onlyMerchants = null } = args.caller;
  const error = validateUnit(args.amount.unit);
  if (error) return refuse("params_validation", `amount.unit: ${error}`);
  if (args.expiresAt && args.expiresAt <= deps.now())
    return refuse("params_validation", "expiresAt: is not in the future");

  const merchant = await findPayableMerchant(deps.db, { merchantId: args.merchantId, accountId, mode, onlyMerchants });
  if (!merchant) return refuse("merchant_not_found", "no such merchant");
  if (merchant.status !== "active") return refuse("forbidden", `the merchant is ${merchant.status}`);
  const terms = { settled: new Set(merchant.settled), takers: new Set(merchant.takers) };
  // A push asset counts in test mode as well. No wallet is offered it, but the payment can be simulated to its end.
  const { payable, outage } = await findPayable(deps, args.amount, terms);
  if (payable.length === 0 && outage) throw outage;
  if (payable.length === 0) return refuse("params_validation", explainUnpayable(deps, args.amount, terms));
  // A buyer who has to enter data needs more time.
  return done({ merchant, usualMs: merchant.has_collection_policy ? ASKING_LIFETIME_MS : LIFETIME_MS });
}

/** How a payment's creation stores its response under an idempotency key. */
type PaymentClaim = KeyClaim & { toText: (payment: PaymentView) => string };

/**
 * Writes a validated payment and starts its lifetime, in one statement, which also stores the response of `claim`. Returns
 * undefined and writes nothing when its key is taken.
 */
export async function writePayment(
  deps: PaymentDeps,
  args: NewPayment,
  { merchant, usualMs }: CheckedPayment,
  claim?: PaymentClaim,
): Promise<PaymentView | undefined> {
  const now = deps.now();
  const { accountId, mode } = args.caller;
  const latest = new Date(now.getTime() + LONGEST_LIFETIME_MS);
  const wanted = args.expiresAt ?? new Date(now.getTime() + usualMs);
  const expiresAt = wanted < latest ? wanted : latest;
  const id = newId("pay", now);
  const row = {
    id,
    account_id: accountId,
    merchant_id: merchant.id,
    mode,
    reference_id: args.referenceId ?? null,
    description: args.description ?? null,
    metadata: args.metadata && Object.keys(args.metadata).length > 0 ? JSON.stringify(args.metadata) : null,
    unit: args.amount.unit,
    value: args.amount.value,
    checkout: args.checkout ? JSON.stringify(args.checkout) : null,
    created_at: now,
    expires_at: expiresAt,
    // The sweep then enqueues the expiry, so a waiting payment has no job.
    due_at: expiresAt,
  };
  const shownMerchant = { id: merchant.id, name: merchant.name, logoId: merchant.logo_id };
  const view = await toNewPaymentView(deps, row, shownMerchant);
  const isInserted = await insertPayment(deps.db, row, claim && toClaimedKey(claim, claim.toText(view)));
  if (!isInserted) return undefined;
  deps.metrics.paymentTransitions.inc({ mode, from: "new", to: "requires_action" });
  return view;
}
