import type {
  CancelPaymentResponse,
  FetchActionsResponse,
  GatewayConfirmPaymentQuery,
  GatewayConfirmPaymentRequest,
  GatewayFetchActionsRequest,
  GatewayGetPaymentOptionsQuery,
  GetPaymentOptionsResponse,
  GetPaymentStatusQuery,
  GetPaymentStatusResponse,
  PaymentInfo,
} from "./api-types.ts";
import { randomId } from "./http/random-id.ts";
import type { Call } from "./http/send-once.ts";
import { type CallOptions, createTransport, path, type Send, type TransportSettings } from "./http/transport.ts";
import { type WaitOptions, waitUntilFinal } from "./wait-until-final.ts";
import { type PayOptions, pay } from "./wallet/pay.ts";
import { requireOwnLink } from "./wallet/payment-link.ts";
import type { WalletSigner } from "./wallet/wallet-signer.ts";

export type GatewayClientSettings = TransportSettings &
  (
    | {
        /** The public id of the wallet's app. */
        appId: string;
        /** Identifies this instance of the app; a random one when left out. */
        clientId?: string;
      }
    | {
        /** A key with the scope `gateway`, for wallets that run on a server. */
        apiKey: string;
      }
  );

/**
 * The client of a wallet. A payment is named by its id or by its link; a link of another host than that of `baseUrl` and its
 * subdomains is a `ForeignLinkError`. All calls are retried: the service acts once, however often it gets one.
 */
export class GatewayClient {
  readonly #send: Send;
  readonly #host: string;

  constructor(settings: GatewayClientSettings) {
    const credentials =
      "appId" in settings
        ? { "app-id": settings.appId, "client-id": settings.clientId ?? randomId() }
        : { "api-key": settings.apiKey };
    this.#send = createTransport(settings, credentials);
    this.#host = new URL(settings.baseUrl).hostname;
  }

  /** Returns what a buyer sees of a payment. */
  get(payment: string, options?: CallOptions): Promise<PaymentInfo> {
    return this.#call(payment, "", { method: "GET" }, options);
  }

  /** Returns the ways in which accounts (CAIP-10) can pay. */
  options(
    payment: string,
    accounts: readonly string[],
    { includePaymentInfo, ...options }: CallOptions & GatewayGetPaymentOptionsQuery = {},
  ): Promise<GetPaymentOptionsResponse> {
    return this.#call(
      payment,
      "/options",
      { method: "POST", body: { accounts }, query: { includePaymentInfo } },
      options,
    );
  }

  /** Returns the actions that a `build` action stands for; with empty `data`, all actions of the option. */
  fetch(payment: string, request: GatewayFetchActionsRequest, options?: CallOptions): Promise<FetchActionsResponse> {
    return this.#call(payment, "/fetch", { method: "POST", body: request }, options);
  }

  /**
   * Hands in the results of an option's actions, and returns the status once they are verified; with `maxPollMs`, when the payment
   * is final or that time has passed. A repetition returns the current status.
   */
  confirm(
    payment: string,
    request: GatewayConfirmPaymentRequest,
    { maxPollMs, ...options }: CallOptions & GatewayConfirmPaymentQuery = {},
  ): Promise<GetPaymentStatusResponse> {
    return this.#call(payment, "/confirm", { method: "POST", body: request, query: { maxPollMs } }, options);
  }

  /** Returns the status of a payment; with `maxPollMs`, at its next change or when that time has passed. */
  status(
    payment: string,
    { maxPollMs, ...options }: CallOptions & GetPaymentStatusQuery = {},
  ): Promise<GetPaymentStatusResponse> {
    return this.#call(payment, "/status", { method: "GET", query: { maxPollMs } }, options);
  }

  /** Cancels a payment for its buyer, who has not begun to pay it. */
  cancel(payment: string, options?: CallOptions): Promise<CancelPaymentResponse> {
    return this.#call(payment, "/cancel", { method: "POST" }, options);
  }

  /** Polls a payment until it is final and returns its last status, also across outages of the service. */
  waitUntilFinal(payment: string, options: WaitOptions = {}): Promise<GetPaymentStatusResponse> {
    return waitUntilFinal((maxPollMs, call) => this.status(payment, { ...call, maxPollMs }), options);
  }

  /**
   * Pays a payment with the option that `choose` returns, and returns its last status. Outages of the service only delay it.
   *
   * Rejects with a `ConfirmError` when the wallet has signed or sent, and with an `UnknownSendError` when it may have sent.
   * After any other error nothing is paid: a `ForeignLinkError`, a `NoPaymentOptionError`, a `PaymentDeclinedError`, an
   * `UnsafeActionError`, the signal's reason, or the error of a call or of the wallet.
   */
  pay(
    payment: string,
    signer: WalletSigner | readonly WalletSigner[],
    options: PayOptions,
  ): Promise<GetPaymentStatusResponse> {
    return pay(this, payment, [signer].flat(), options);
  }

  async #call<T>(
    payment: string,
    step: "" | `/${string}`,
    call: Pick<Call, "method" | "body" | "query">,
    options?: CallOptions,
  ): Promise<T> {
    const of = path`/v1/gateway/payment/${payment}`;
    requireOwnLink(payment, this.#host);
    return this.#send({ ...call, path: `${of}${step}`, repeatable: true }, options);
  }
}
