import type { Cancelled } from "../payments/cancel.ts";
import { collectedFields, collectedSchema } from "../payments/collected-schema.ts";
import type { PaymentListView } from "../payments/list.ts";
import type { Requester } from "../payments/requester.ts";
import type {
  BuildAction,
  Money,
  OptionView,
  PaymentDetail,
  PaymentStatus,
  PaymentView,
  WalletAction,
} from "../payments/views.ts";

/** Wait before the next question about a payment that is not final, milliseconds. */
const POLL_AGAIN_MS = 1_000;

/** Payment status response (specification, 2.1). Terminals stop when `pollInMs` is null, so it never is before the end. */
export function toStatusAnswer(status: PaymentStatus) {
  return {
    status: status.state,
    ...toPollingHint(status),
    info: status.info && { txId: status.info.txId, optionAmount: toAmount(status.info.optionAmount) },
    ...(status.state === "failed" ? { failureCode: status.failureCode } : {}),
  };
}

/** A payment just made, for its merchant (specification, 4.2; both families of names). */
export function toCreatedAnswer(payment: PaymentView, publicUrl: string) {
  return {
    id: payment.paymentId,
    paymentId: payment.paymentId,
    gatewayUrl: toPaymentLink(publicUrl, payment.paymentId),
    status: payment.state,
    expiresAt: toSeconds(payment.expiresAt),
    ...toPollingHint(payment),
  };
}

/** A cancelled payment. */
export function toCancelledAnswer({ paymentId, cancelledAt, cancelledReason }: Cancelled) {
  return { paymentId, status: "cancelled", cancelledAt: cancelledAt.toISOString(), cancelledReason };
}

/** One payment, for its merchant. */
export function toDetailAnswer(payment: PaymentDetail) {
  const { txId, amount } = payment.settlement ?? {};
  return {
    id: payment.paymentId,
    paymentId: payment.paymentId,
    merchantId: payment.merchant.id,
    referenceId: payment.referenceId,
    amount: toAmount(payment.amount),
    createdAt: payment.createdAt.toISOString(),
    expiresAt: toSeconds(payment.expiresAt),
    checkout: payment.checkout,
    ...toStatusAnswer(payment),
    settlement: txId && amount ? { successful: { txId, amount: toAmount(amount) } } : null,
  };
}

/** One payment in a list, for its merchant. */
export function toListedAnswer(payment: PaymentListView, publicUrl: string) {
  const { id, name, logoId } = payment.merchant;
  const { transaction, settlement, fees } = payment;
  return {
    paymentId: payment.paymentId,
    merchantId: id,
    merchant: { id, name, ...(logoId === null ? {} : { iconUrl: toLogoUrl(publicUrl, logoId) }) },
    referenceId: payment.referenceId,
    status: payment.state,
    isTerminal: payment.isFinal,
    fiatAmount: toAmount(payment.amount),
    tokenAmount: payment.tokenAmount && toAmount(payment.tokenAmount),
    buyer: payment.buyer === null ? null : { accountCaip10: payment.buyer },
    transaction: transaction && { networkId: transaction.chain, hash: transaction.hash },
    fees: fees && { total: toAmount(fees.total), fixed: toAmount(fees.fixed), percentage: fees.points / 100 },
    settlement: settlement && { ...settlement, amount: settlement.amount && toAmount(settlement.amount) },
    createdAt: payment.createdAt.toISOString(),
    lastUpdatedAt: payment.updatedAt.toISOString(),
    settledAt: payment.settledAt?.toISOString() ?? null,
  };
}

/** Where the buyer goes. Wallets take it for a payment link because `pay_` stands in it, and read `pid`. */
export function toPaymentLink(publicUrl: string, paymentId: string): string {
  return `${publicUrl}/?pid=${paymentId}`;
}

/** Where our copy of a logo is served. */
export function toLogoUrl(publicUrl: string, logoId: string): string {
  return `${publicUrl}/logos/${logoId}`;
}

/** What a buyer is shown of a payment: the `info` of the options answer. */
export function toPaymentInfo(payment: PaymentView, publicUrl: string) {
  const { name, logoId } = payment.merchant;
  return {
    paymentId: payment.paymentId,
    status: payment.state,
    amount: toAmount(payment.amount),
    expiresAt: toSeconds(payment.expiresAt),
    merchant: { name, ...(logoId === null ? {} : { iconUrl: toLogoUrl(publicUrl, logoId) }) },
    buyer: null,
  };
}

/** One way to pay. The specification says `optionId`, deployed wallets read `id`. */
export function toOptionAnswer(
  option: OptionView,
  { paymentId, publicUrl, requester }: { paymentId: string; publicUrl: string; requester: Requester },
) {
  const collectUrl = toCollectUrl(publicUrl, { paymentId, optionId: option.id, requester });
  return {
    id: option.id,
    optionId: option.id,
    account: option.account,
    amount: toAmount(option.amount),
    etaS: Math.ceil(option.etaSeconds),
    expiresAt: option.expiresAt && toSeconds(option.expiresAt),
    actions: option.actions.map(toActionAnswer),
    collectData: option.needsData ? toCollectData(collectUrl) : null,
  };
}

/** Where the buyer of an option gives their data, for the requester of the option alone. */
export function toCollectUrl(
  publicUrl: string,
  { paymentId, optionId, requester }: { paymentId: string; optionId: string; requester: Requester },
) {
  return `${publicUrl}/collect/${paymentId}/${optionId}/${requester.name}`;
}

/** What has to be known of the buyer; the page at `url` asks for it. */
function toCollectData(url: string) {
  return { url, schema: collectedSchema, fields: collectedFields };
}

/** Something a wallet executes, or fetches first. `chain_id` is the one name on the wire that is not in camel case. */
export function toActionAnswer(action: WalletAction | BuildAction) {
  if ("build" in action) return { type: "build" as const, data: { data: action.build } };
  const { chain, method, params } = action;
  return { type: "walletRpc" as const, data: { chain_id: chain, method, params } };
}

function toPollingHint(status: PaymentStatus) {
  return { isFinal: status.isFinal, pollInMs: status.isFinal ? null : POLL_AGAIN_MS };
}

/** An amount on the wire: its value as a text. */
export function toAmount({ unit, value, display }: Money) {
  return { unit, value: value.toString(), display };
}

/** Rounded down: nobody is promised a second that is not there. */
function toSeconds(at: Date): number {
  return Math.floor(at.getTime() / 1000);
}
