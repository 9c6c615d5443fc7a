import { sql } from "kysely";
import { parseAssetId } from "../chains/caip.ts";
import { insertPayment } from "../db/payments.ts";
import type { Caller } from "./accounts.ts";
import type { PaymentDeps } from "./deps.ts";
import { done, type Result, refuse } from "./errors.ts";
import { newId } from "./ids.ts";
import { currencyDecimals } from "./money.ts";
import { explainUnpayable, findPayable } from "./payable.ts";
import { toPaymentView } from "./read.ts";
import type { PaymentView } from "./views.ts";

/** Time a buyer has when the merchant says nothing, milliseconds. */
const LIFETIME_MS = 5 * 60_000;
/** The same where the merchant may ask for data of the buyer, milliseconds. */
const ASKING_LIFETIME_MS = 20 * 60_000;
/** Longest time a merchant may give, milliseconds. A longer wish is cut to it. */
const LONGEST_LIFETIME_MS = 24 * 60 * 60_000;

export type NewPayment = {
  caller: Pick<Caller, "accountId" | "mode">;
  merchantId: string;
  referenceId?: string | undefined;
  amount: { unit: string; value: bigint };
  expiresAt?: Date | undefined;
  checkout?: { successUrl: string; errorUrl: string } | undefined;
};

/** A payment that may be written: by whom it is asked for, and how long its buyer has, milliseconds. */
export type CheckedPayment = { merchant: { id: string; name: string; logo_id: string | null }; usualMs: number };

/** Writes what a merchant asks for and starts its clock; refuses like `checkPayment`. */
export async function createPayment(deps: PaymentDeps, args: NewPayment): Promise<Result<PaymentView>> {
  const checked = await checkPayment(deps, args);
  return checked.ok ? done(await writePayment(deps, args, checked.value)) : checked;
}

/**
 * Checks a payment before it is written; prices are read on chain, so no transaction may wait for it.
 * Refuses with `merchant_not_found` (also for another account's or mode's), `forbidden` for one that is not active, and
 * `params_validation`, also where nothing can pay it.
 */
export async function checkPayment(deps: PaymentDeps, args: NewPayment): Promise<Result<CheckedPayment>> {
  const { accountId, mode } = args.caller;
  const fault = findUnitFault(args.amount.unit);
  if (fault) return refuse("params_validation", `amount.unit: ${fault}`);
  if (args.expiresAt && args.expiresAt <= deps.now())
    return refuse("params_validation", "expiresAt: is not in the future");

  const paidIn = sql`from settlement_destination d where d.merchant_id = merchant.id`;
  const merchant = await deps.db
    .selectFrom("merchant")
    .select(["id", "name", "logo_id", "status"])
    .select(sql<string[]>`array(select asset ${paidIn})`.as("settled"))
    .select(sql<string[]>`array(select asset ${paidIn} and takes_others)`.as("takers"))
    // Who has to say who he is needs longer.
    .select(({ exists, selectFrom }) =>
      exists(selectFrom("collection_policy").select("id").whereRef("merchant_id", "=", "merchant.id")).as("asks"),
    )
    .where("id", "=", args.merchantId)
    .where("account_id", "=", accountId)
    .where("mode", "=", mode)
    .where("deleted_at", "is", null)
    .executeTakeFirst();
  if (!merchant) return refuse("merchant_not_found", "no such merchant");
  if (merchant.status !== "active") return refuse("forbidden", `the merchant is ${merchant.status}`);
  const terms = { settled: new Set(merchant.settled), takers: new Set(merchant.takers) };
  // A push counts in test mode too: no wallet is offered one there, but the payment can be driven to its end.
  if ((await findPayable(deps, args.amount, terms)).length === 0)
    return refuse("params_validation", explainUnpayable(deps, args.amount, terms));
  return done({ merchant, usualMs: merchant.asks ? ASKING_LIFETIME_MS : LIFETIME_MS });
}

/** Writes a payment that was checked, and starts its clock. */
export async function writePayment(
  deps: PaymentDeps,
  args: NewPayment,
  { merchant, usualMs }: CheckedPayment,
): Promise<PaymentView> {
  const now = deps.now();
  const { accountId, mode } = args.caller;
  const latest = new Date(now.getTime() + LONGEST_LIFETIME_MS);
  const wanted = args.expiresAt ?? new Date(now.getTime() + usualMs);
  const expiresAt = wanted < latest ? wanted : latest;
  const id = newId("pay");
  const row = await insertPayment(deps.db, {
    id,
    account_id: accountId,
    merchant_id: merchant.id,
    mode,
    reference_id: args.referenceId ?? null,
    unit: args.amount.unit,
    value: args.amount.value,
    state: "requires_action",
    failure_code: null,
    checkout: args.checkout ? (JSON.stringify(args.checkout) as never) : null,
    tx_id: null,
    paid_asset: null,
    paid_amount: null,
    settlement_id: null,
    created_at: now,
    updated_at: now,
    expires_at: expiresAt,
    due_at: expiresAt,
  });
  deps.metrics.paymentMoves.inc({ mode, from: "new", to: "requires_action" });
  await deps.ring("expire-payment", [{ data: { paymentId: id }, delayMs: expiresAt.getTime() - now.getTime() }]);
  return toPaymentView(deps, { ...row, merchant_name: merchant.name, merchant_logo_id: merchant.logo_id });
}

/** What is wrong with a unit; undefined when it is a currency or an asset. */
function findUnitFault(unit: string): string | undefined {
  if (unit.startsWith("caip19/"))
    return parseAssetId(unit.slice(7)) ? undefined : "is not a CAIP-19 asset behind caip19/";
  if (!unit.startsWith("iso4217/")) return "expected iso4217/ and a currency code, or caip19/ and an asset";
  return currencyDecimals(unit.slice(8)) === undefined ? "is not a currency of ISO 4217" : undefined;
}
