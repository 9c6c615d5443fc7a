import type { NetworkDetails } from "../../chains/chain-driver.ts";
import { getChainDriver } from "../../chains/find-chain-driver.ts";
import { hasPushOption } from "../../db/queries/payment-options.ts";
import { findPaymentWithPaidAssets, type PaymentWithPaidAssets } from "../../db/queries/payment-terms.ts";
import { findAnyPaymentId, findPaymentOfAnyMode, type PaymentWithMerchant } from "../../db/queries/payments.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import { findPayable, isOffered } from "../options/payable-assets.ts";
import { toPaidAssets } from "../options/terms.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import type { PaymentView } from "../views.ts";
import { toPaymentView } from "./read-payment.ts";
import { parseReturnUrl } from "./return-url.ts";

/**
 * The status of the buyer's money. `none`: nothing was taken. `underway`: it may move at any moment. `moved`: it has
 * arrived. `unclear`: the payment ended without it, but the buyer may have sent a transaction that we have not
 * observed.
 */
type BuyersMoney = "none" | "underway" | "moved" | "unclear";

/** A payment as the checkout page shows it. */
export type CheckoutView = PaymentView & {
  money: BuyersMoney;
  /** Time until the deadline, milliseconds; 0 without one. A duration, because the buyer's clock may be wrong. */
  leftMs: number;
  /** Time in the current state, milliseconds. */
  sinceMs: number;
  /** True when the page redirects to the shop at the end. */
  returns: boolean;
  /** The redirect target, once the payment is final: the merchant's URL with `payment_id` added. */
  returnUrl: string | null;
  /**
   * The block explorer's page of the paying transaction; null without one, or when the networks file names no explorer.
   */
  txUrl: string | null;
};

/** One asset that can pay a payment. */
export type Way = {
  chain: string;
  network: string;
  symbol: string;
  /** For a wallet that does not know the network. */
  networkDetails: NetworkDetails | undefined;
};

type Deps = Pick<PaymentDeps, "db" | "chains" | "networks" | "assetUnits" | "metrics" | "now" | "log">;

/**
 * Returns a payment to a holder of its link. The id's 96 random bits, which only the merchant and the buyer know, act
 * as the credential and determine the mode. Refuses with `payment_not_found`.
 */
export async function findCheckout(deps: Deps, paymentId: string): Promise<Result<CheckoutView>> {
  const row = await findPaymentOfAnyMode(deps.db, paymentId);
  return row ? done(await toCheckoutView(deps, row)) : refuse("payment_not_found", "no such payment");
}

/**
 * Returns a payment as `findCheckout` does, and every asset that can pay it, whatever the buyer holds. The page needs
 * both when it opens. Refuses with `payment_not_found`.
 */
export async function openCheckout(
  deps: Deps,
  paymentId: string,
): Promise<Result<{ view: CheckoutView; ways: Way[] }>> {
  const row = await findPaymentWithPaidAssets(deps.db, paymentId);
  if (!row) return refuse("payment_not_found", "no such payment");
  const [view, ways] = await Promise.all([toCheckoutView(deps, row), listWays(deps, row)]);
  // A buyer for whom no asset is left may have paid before.
  const isStuck = row.state === "requires_action" && row.mode === "live" && ways.length === 0;
  return done({ view: isStuck && (await hasPush(deps, row)) ? { ...view, money: "unclear" } : view, ways });
}

async function toCheckoutView(deps: Deps, row: PaymentWithMerchant): Promise<CheckoutView> {
  const view = await toPaymentView(deps, row);
  const now = deps.now().getTime();
  return {
    ...view,
    money: await findMoney(deps, row),
    leftMs: row.state === "requires_action" ? Math.max(0, row.expires_at.getTime() - now) : 0,
    sinceMs: Math.max(0, now - row.updated_at.getTime()),
    returns: row.checkout !== null,
    returnUrl: view.isFinal ? toReturnUrl(row) : null,
    txUrl: toTxUrl(deps, row),
  };
}

/** Returns the explorer's page of a transaction (EIP-3091). A test payment's transaction is not on a chain. */
function toTxUrl({ chains }: Deps, { mode, tx_id: txId, paid_asset: asset }: PaymentWithMerchant): string | null {
  const chain = chains.get(asset?.split("/")[0] ?? "");
  const explorer = chain && getChainDriver(chain.chain).detailsOf(chain.network)?.explorer;
  return mode === "live" && txId && explorer ? `${explorer.replace(/\/$/, "")}/tx/${txId}` : null;
}

/** Returns the id of any payment, in either mode, to check the checkout page with. Undefined while there is none. */
export async function findAnyPayment({ db }: Pick<Deps, "db">): Promise<string | undefined> {
  return findAnyPaymentId(db);
}

async function findMoney(deps: Deps, row: PaymentWithMerchant): Promise<BuyersMoney> {
  if (row.state === "succeeded") return "moved";
  if (row.state === "processing") return "underway";
  if (row.state === "requires_action" || row.mode === "test") return "none";
  return (await hasPush(deps, row)) ? "unclear" : "none";
}

/**
 * Returns true when an option of the payment is a push. A signature that we relay cannot move money once the payment
 * has ended, but a transaction that the buyer's own wallet sends can.
 */
function hasPush({ db }: Deps, row: PaymentWithMerchant): Promise<boolean> {
  return hasPushOption(db, row.id);
}

/** Returns the merchant's success or error URL with `payment_id`. Keeps the URL's own query. */
function toReturnUrl({ checkout, state, id }: PaymentWithMerchant): string | null {
  const url = checkout && parseReturnUrl(state === "succeeded" ? checkout.successUrl : checkout.errorUrl);
  if (!url) return null;
  url.searchParams.set("payment_id", id);
  return url.href;
}

/**
 * Lists the assets that can pay, by the same rule as the options of a wallet but without reading balances. Includes those
 * whose price cannot be read at the moment: an outage ends, and until then the options say that it is one.
 */
async function listWays(deps: Deps, payment: PaymentWithPaidAssets): Promise<Way[]> {
  if (payment.state !== "requires_action") return [];
  const { payable, unpriced } = await findPayable(deps, payment, toPaidAssets(payment.destinations));
  return [...payable, ...unpriced]
    .filter(({ token }) => isOffered(payment.mode, token))
    .map(({ chain: { chain, network }, token: { symbol } }) => {
      const networkDetails = getChainDriver(chain).detailsOf(network);
      return { chain, network: network.name, symbol, networkDetails };
    });
}
