import type { GatewayConfirmPaymentRequest } from "../api-types.ts";

/** The payment, as given, is a link of another service than the client's, or no payment. Nothing was requested. */
export class ForeignLinkError extends Error {
  override readonly name = "ForeignLinkError";
}

/** No account of the signers can pay: each lacks the funds, or is on a network that the merchant does not take. */
export class NoPaymentOptionError extends Error {
  override readonly name = "NoPaymentOptionError";
}

/** `choose` returned no option. Nothing was signed. */
export class PaymentDeclinedError extends Error {
  override readonly name = "PaymentDeclinedError";
}

/** What the service asks the wallet to sign does not pay the option, or is not readable. Nothing was signed. */
export class UnsafeActionError extends Error {
  override readonly name = "UnsafeActionError";
}

/**
 * The wallet failed while it sent the transaction that pays, and may have sent it: never pay again before its account shows
 * that it has not. If it has, confirm `optionId` with the transaction's hash.
 */
export class UnknownSendError extends Error {
  override readonly name = "UnknownSendError";
  readonly optionId: string;

  constructor(optionId: string, cause: unknown) {
    super("the wallet failed while it sent the transaction, which may pay", { cause });
    this.optionId = optionId;
  }
}

/**
 * The wallet has signed or sent, and `pay` ended before the payment did: `cause` is the error of the service, of `onSigned`,
 * a `WaitTimeoutError`, or the signal's reason. The payment may still succeed: `request` is what to confirm again.
 */
export class ConfirmError extends Error {
  override readonly name = "ConfirmError";
  readonly request: GatewayConfirmPaymentRequest;

  constructor(request: GatewayConfirmPaymentRequest, cause: unknown) {
    super("the payment is signed, and its end is not known", { cause });
    this.request = request;
  }
}

/** Throws an `UnsafeActionError` unless the condition holds. */
export function requireSafe(condition: boolean, message: string): asserts condition {
  if (!condition) throw new UnsafeActionError(message);
}
