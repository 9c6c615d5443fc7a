import { collectedFields, collectedSchema } from "../../payments/buyer-data/collected-schema.ts";
import { done, type Result } from "../../payments/error-codes.ts";
import type { Cancelled } from "../../payments/lifecycle/cancel-payment.ts";
import type { PaymentListView } from "../../payments/lifecycle/list-payments.ts";
import type { Requester } from "../../payments/requester.ts";
import type {
  BuildAction,
  Money,
  OptionView,
  PaymentDetail,
  PaymentStatus,
  PaymentView,
} from "../../payments/views.ts";
import type { WalletAction } from "../../transfers/wallet-driver.ts";

/** Delay that clients wait before they poll a payment that is not final again, milliseconds. */
const POLL_INTERVAL_MS = 1_000;

/**
 * Returns the status response (specification, 2.1). Clients stop polling when `pollInMs` is null, so it is null only at
 * the end.
 */
function toStatusResponse(status: PaymentStatus) {
  return {
    status: status.state,
    ...toPollingHint(status),
    info: status.info && { txId: status.info.txId, optionAmount: toAmount(status.info.optionAmount) },
    ...(status.state === "failed" ? { failureCode: status.failureCode } : {}),
  };
}

/** Returns the response to a call that returns a status or a refusal. */
export function toStatusResult(status: Result<PaymentStatus>): Result<object> {
  return status.ok ? done(toStatusResponse(status.value)) : status;
}

/** Returns the response to a created payment (specification, 4.2), with both of its sets of member names. */
export function toCreatedResponse(payment: PaymentView, publicUrl: string) {
  return {
    id: payment.paymentId,
    paymentId: payment.paymentId,
    gatewayUrl: toPaymentLink(publicUrl, payment.paymentId),
    status: payment.state,
    expiresAt: toSeconds(payment.expiresAt),
    ...toPollingHint(payment),
  };
}

/** Returns the response to a cancellation. */
export function toCancelledResponse({ paymentId, cancelledAt, cancelledReason }: Cancelled) {
  return { paymentId, status: "cancelled", cancelledAt: cancelledAt.toISOString(), cancelledReason };
}

/** Returns one payment as its merchant reads it. */
export function toPaymentResponse(payment: PaymentDetail, publicUrl: string) {
  const { txId, amount } = payment.settlement ?? {};
  return {
    id: payment.paymentId,
    paymentId: payment.paymentId,
    merchantId: payment.merchant.id,
    referenceId: payment.referenceId,
    description: payment.description,
    metadata: payment.metadata,
    amount: toAmount(payment.amount),
    createdAt: payment.createdAt.toISOString(),
    expiresAt: toSeconds(payment.expiresAt),
    gatewayUrl: toPaymentLink(publicUrl, payment.paymentId),
    checkout: payment.checkout,
    ...toStatusResponse(payment),
    settlement: txId && amount ? { successful: { txId, amount: toAmount(amount) } } : null,
    refundedAmount: payment.refundedAmount && toAmount(payment.refundedAmount),
  };
}

/** Returns one entry of a merchant's list of payments. */
export function toListedPaymentResponse(payment: PaymentListView, publicUrl: string) {
  const { id, name, logoId } = payment.merchant;
  const { transaction, settlement, fees } = payment;
  return {
    paymentId: payment.paymentId,
    merchantId: id,
    merchant: { id, name, ...(logoId === null ? {} : { iconUrl: toLogoUrl(publicUrl, logoId) }) },
    referenceId: payment.referenceId,
    description: payment.description,
    metadata: payment.metadata,
    status: payment.state,
    isTerminal: payment.isFinal,
    fiatAmount: toAmount(payment.amount),
    tokenAmount: payment.tokenAmount && toAmount(payment.tokenAmount),
    buyer: payment.buyer === null ? null : { accountCaip10: payment.buyer },
    transaction: transaction && { networkId: transaction.chain, hash: transaction.hash },
    fees: fees && { total: toAmount(fees.total), fixed: toAmount(fees.fixed), percentage: fees.basisPoints / 100 },
    settlement: settlement && { ...settlement, amount: settlement.amount && toAmount(settlement.amount) },
    createdAt: payment.createdAt.toISOString(),
    lastUpdatedAt: payment.updatedAt.toISOString(),
    settledAt: payment.settledAt?.toISOString() ?? null,
  };
}

/** Returns the address of the checkout page. Wallets recognise it as a payment link by `pay_` and read `pid`. */
export function toPaymentLink(publicUrl: string, paymentId: string): string {
  return `${publicUrl}/?pid=${paymentId}`;
}

/** Returns the address of a merchant's logo: the service serves its own copy. */
export function toLogoUrl(publicUrl: string, logoId: string): string {
  return `${publicUrl}/logos/${logoId}`;
}

/** Returns what a buyer sees of a payment: the `info` of the options response. */
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

/** Returns an option. The specification names its id `optionId`, deployed wallets read `id`. */
export function toOptionResponse(
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
    actions: option.actions.map(toActionResponse),
    collectData: option.needsData ? toCollectData(collectUrl) : null,
  };
}

/** Returns the page where the buyer of an option gives their data. Only the option's requester gets this address. */
export function toCollectUrl(
  publicUrl: string,
  { paymentId, optionId, requester }: { paymentId: string; optionId: string; requester: Requester },
) {
  return `${publicUrl}/collect/${paymentId}/${optionId}/${requester.name}`;
}

/** Returns the data that the buyer has to give; the page at `url` collects it. */
function toCollectData(url: string) {
  return { url, schema: collectedSchema, fields: collectedFields };
}

/**
 * Returns an action that a wallet executes or fetches first. `chain_id` is the only member of the API that is not in
 * camel case.
 */
export function toActionResponse(action: WalletAction | BuildAction) {
  if ("build" in action) return { type: "build" as const, data: { data: action.build } };
  const { chain, method, params } = action;
  return { type: "walletRpc" as const, data: { chain_id: chain, method, params } };
}

function toPollingHint(status: PaymentStatus) {
  return { isFinal: status.isFinal, pollInMs: status.isFinal ? null : POLL_INTERVAL_MS };
}

/** Returns an amount with its value as a string, as in every response. */
export function toAmount({ unit, value, display }: Money) {
  return { unit, value: value.toString(), display };
}

/** Returns a Unix time in seconds, rounded down, so that a deadline is never stated too late. */
function toSeconds(at: Date): number {
  return Math.floor(at.getTime() / 1000);
}
