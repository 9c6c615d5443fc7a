import { findPaymentOfAnyMode, type PaymentWithMerchant } from "../db/payments.ts";
import type { EvmNetwork } from "../ops/networks.ts";
import type { PaymentDeps } from "./deps.ts";
import { done, type Result, refuse } from "./errors.ts";
import { findPayable, isOffered } from "./payable.ts";
import { toPaymentView } from "./read.ts";
import { readTerms } from "./terms.ts";
import type { PaymentView } from "./views.ts";

/**
 * What has become of the buyer's money. `none`: nothing was taken. `underway`: it may move at any moment. `moved`: it has
 * arrived. `unclear`: the payment ended without it, but the buyer may have sent a transaction that we have not seen.
 */
export type BuyersMoney = "none" | "underway" | "moved" | "unclear";

/** A payment as its buyer's page shows it. */
export type CheckoutView = PaymentView & {
  money: BuyersMoney;
  /** Until the deadline, milliseconds; a duration, because a buyer's clock may be wrong. 0 when there is none any more. */
  leftMs: number;
  /** Since it came to its present state, milliseconds. */
  sinceMs: number;
  /** True when the page leaves for the shop at the end. */
  returns: boolean;
  /** Where it leaves to, once the payment is final: what the merchant stored, with `payment_id`. */
  returnUrl: string | null;
  /** Where everybody can look at the transaction that paid, once there is one; null where the networks file names no place. */
  txUrl: string | null;
};

/** One asset that can pay a payment. */
export type Way = {
  chain: string;
  network: string;
  symbol: string;
  /** What a wallet is told that does not know the network; of the networks file, where it is said there. */
  forWallets: EvmNetwork["forWallets"];
};

type Deps = Pick<PaymentDeps, "db" | "chains" | "networks" | "now" | "log">;

/**
 * A payment for whoever has its link: 128 random bits that only merchant and buyer know stand for a key, and decide the
 * mode too. Refuses with `payment_not_found`.
 */
export async function findCheckout(deps: Deps, paymentId: string): Promise<Result<CheckoutView>> {
  const row = await findPaymentOfAnyMode(deps.db, paymentId);
  return row ? done(await toCheckoutView(deps, row)) : refuse("payment_not_found", "no such payment");
}

/**
 * The same, with what the payment can be paid with, whatever its buyer holds: a page that is opened waits for both.
 * Refuses with `payment_not_found`.
 */
export async function openCheckout(
  deps: Deps,
  paymentId: string,
): Promise<Result<{ view: CheckoutView; ways: Way[] }>> {
  const row = await findPaymentOfAnyMode(deps.db, paymentId);
  if (!row) return refuse("payment_not_found", "no such payment");
  const [view, ways] = await Promise.all([toCheckoutView(deps, row), listWays(deps, row)]);
  // Who reads that nothing can pay it any more may have paid it before.
  const isStuck = row.state === "requires_action" && row.mode === "live" && ways.length === 0;
  return done({ view: isStuck && (await hasPush(deps, row)) ? { ...view, money: "unclear" } : view, ways });
}

async function toCheckoutView(deps: Deps, row: PaymentWithMerchant): Promise<CheckoutView> {
  const view = toPaymentView(deps, row);
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

/** An explorer's page of a transaction (EIP-3091). A test payment's transaction is on no chain. */
function toTxUrl({ chains }: Deps, { mode, tx_id: txId, paid_asset: asset }: PaymentWithMerchant): string | null {
  const network = chains.get(asset?.split("/")[0] ?? "")?.network;
  const explorer = network && "forWallets" in network ? network.forWallets?.explorer : undefined;
  return mode === "live" && txId && explorer ? `${explorer.replace(/\/$/, "")}/tx/${txId}` : null;
}

/** Some payment, of whatever mode: its page is like any other to look at. Undefined as long as there is none. */
export async function findAnyPayment({ db }: Pick<Deps, "db">): Promise<string | undefined> {
  return (await db.selectFrom("payment").select("id").limit(1).executeTakeFirst())?.id;
}

async function findMoney(deps: Deps, row: PaymentWithMerchant): Promise<BuyersMoney> {
  if (row.state === "succeeded") return "moved";
  if (row.state === "processing") return "underway";
  if (row.state === "requires_action" || row.mode === "test") return "none";
  return (await hasPush(deps, row)) ? "unclear" : "none";
}

/** What a buyer signed for us cannot move once a payment has ended; what the buyer's own wallet sends can. */
async function hasPush({ db }: Deps, row: PaymentWithMerchant): Promise<boolean> {
  const push = await db
    .selectFrom("payment_option")
    .select("id")
    .where("payment_id", "=", row.id)
    .where("kind", "=", "push")
    .executeTakeFirst();
  return push !== undefined;
}

/** Never a success for one that failed, and a query that the merchant's URL has already survives. */
function toReturnUrl({ checkout, state, id }: PaymentWithMerchant): string | null {
  const url = checkout && URL.parse(state === "succeeded" ? checkout.successUrl : checkout.errorUrl);
  if (url?.protocol !== "https:") return null;
  url.searchParams.set("payment_id", id);
  return url.href;
}

/** By the same rule as the options of a wallet, whatever its accounts hold. */
async function listWays(deps: Deps, payment: PaymentWithMerchant): Promise<Way[]> {
  if (payment.state !== "requires_action") return [];
  const payable = await findPayable(deps, payment, await readTerms(deps.db, payment));
  return payable
    .filter(({ token }) => isOffered(payment.mode, token))
    .map(({ chain: { chain, network }, token: { symbol } }) => {
      const forWallets = "forWallets" in network ? network.forWallets : undefined;
      return { chain, network: network.name, symbol, forWallets };
    });
}
