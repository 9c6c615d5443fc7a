import type { CreateRefundRequest, ListRefundsQuery, ListRefundsResponse, Refund } from "../api-types.ts";
import { listPages, type Pages } from "../http/pages.ts";
import { path } from "../http/transport.ts";
import type { MerchantCalls, MerchantCreateOptions, MerchantOptions } from "./merchant-calls.ts";

/** Options of a refund of a part: without a key of the caller's own, a job that runs again refunds another part. */
type PartOptions = MerchantCreateOptions & { idempotencyKey: string };

/** Refunds what is left of a payment, or a part of it, to its payer. */
type CreateRefund = {
  (refund: CreateRefundRequest & { readonly amount?: undefined }, options?: MerchantCreateOptions): Promise<Refund>;
  /** A part needs a key of your own, such as the id of your refund. */
  (refund: CreateRefundRequest, options: PartOptions): Promise<Refund>;
};

export function createRefunds({ get, change, create, merchantId: ownMerchant }: MerchantCalls) {
  const createRefund: CreateRefund = (refund: CreateRefundRequest, options?: MerchantCreateOptions) => {
    if (refund.amount && options?.idempotencyKey === undefined)
      throw new TypeError("idempotencyKey: a refund of a part needs a key of your own, such as the id of your refund");
    return create<Refund>("/v1/refunds", refund, options);
  };
  return {
    create: createRefund,
    get: (refundId: string, options?: MerchantOptions) =>
      get<Refund>(path`/v1/refunds/${refundId}`, undefined, options),
    /** Lists the refunds of the client's merchant; those of the whole account when the client and the query name none. */
    list(query: ListRefundsQuery = {}, options?: MerchantOptions): Pages<Refund, ListRefundsResponse> {
      const merchantId = query.merchantId ?? [options?.merchantId ?? ownMerchant ?? []].flat();
      return listPages(
        (cursor) => get("/v1/refunds", { ...query, merchantId, cursor }, options),
        ({ data }) => data,
        query.cursor,
      );
    },
    /** Withdraws a refund that is not being sent yet. */
    withdraw: (refundId: string, options?: MerchantOptions) =>
      change<Refund>("POST", path`/v1/refunds/${refundId}/withdraw`, undefined, options),
  };
}
