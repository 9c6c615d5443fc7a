import type {
  CancelPaymentResponse,
  CreatePaymentRequest,
  CreatePaymentResponse,
  GetPaymentStatusQuery,
  GetPaymentStatusResponse,
  ListedPayment,
  ListMerchantPaymentsResponse,
  ListPaymentsQuery,
  Payment,
  SimulatePaymentRequest,
} from "../api-types.ts";
import { listPages, type Pages } from "../http/pages.ts";
import { path } from "../http/transport.ts";
import { type WaitOptions, waitUntilFinal } from "../wait-until-final.ts";
import type { MerchantCalls, MerchantCreateOptions, MerchantOptions } from "./merchant-calls.ts";

export function createPayments({ get, change, repeat, create, merchantId: ownMerchant }: MerchantCalls) {
  /** Returns the status of a payment; with `maxPollMs`, at its next change or when that time has passed. */
  const status = (paymentId: string, query: GetPaymentStatusQuery = {}, options: MerchantOptions = {}) =>
    get<GetPaymentStatusResponse>(path`/v1/payments/${paymentId}/status`, query, options);
  return {
    /** Creates a payment. Send the buyer to its `gatewayUrl`. */
    create: (payment: CreatePaymentRequest, options?: MerchantCreateOptions) =>
      create<CreatePaymentResponse>("/v1/payments", payment, options),
    get: (paymentId: string, options?: MerchantOptions) =>
      get<Payment>(path`/v1/payments/${paymentId}`, undefined, options),
    status,
    /** Cancels a payment that no buyer has begun to pay; any other is refused with a `ConflictError`. */
    cancel: (paymentId: string, options?: MerchantOptions) =>
      repeat<CancelPaymentResponse>(path`/v1/payments/${paymentId}/cancel`, options),
    /** Moves a payment of test mode to a status. */
    simulate: (paymentId: string, status: SimulatePaymentRequest["status"], options?: MerchantOptions) =>
      change<GetPaymentStatusResponse>("POST", path`/v1/payments/${paymentId}/simulate`, { status }, options),
    /** Lists the payments of the client's merchant; those of the whole account when the client and the query name none. */
    list: (
      query: ListPaymentsQuery = {},
      options?: MerchantOptions,
    ): Pages<ListedPayment, ListMerchantPaymentsResponse> => {
      const merchantId = query.merchantId ?? [options?.merchantId ?? ownMerchant ?? []].flat();
      return listPages(
        (cursor) => get("/v1/payments", { ...query, merchantId, cursor }, options),
        ({ data }) => data,
        query.cursor,
      );
    },
    /** Polls a payment until it is final and returns its last status, also across outages of the service. */
    waitUntilFinal: (paymentId: string, { merchantId, ...options }: WaitOptions & { merchantId?: string } = {}) =>
      waitUntilFinal(
        (maxPollMs, call) => status(paymentId, { maxPollMs }, { ...call, ...(merchantId ? { merchantId } : {}) }),
        options,
      ),
  };
}
