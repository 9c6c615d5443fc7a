import type {
  CreateMerchantRequest,
  CreateMerchantResponse,
  DeleteMerchantResponse,
  GetMerchantResponse,
  ListedPayment,
  ListMerchantPaymentsQuery,
  ListMerchantPaymentsResponse,
  ListMerchantsQuery,
  ListMerchantsResponse,
  Merchant,
  UpdateMerchantRequest,
} from "../api-types.ts";
import { listPages, type Pages } from "../http/pages.ts";
import { type CallOptions, type CreateOptions, path } from "../http/transport.ts";
import type { MerchantCalls } from "./merchant-calls.ts";

export function createMerchants({ get, change, create }: MerchantCalls) {
  return {
    create: (merchant: CreateMerchantRequest, options?: CreateOptions) =>
      create<CreateMerchantResponse>("/v1/merchants", merchant, options),
    get: (merchantId: string, options?: CallOptions) =>
      get<GetMerchantResponse>(path`/v1/merchants/${merchantId}`, undefined, options),
    list: (query: ListMerchantsQuery = {}, options?: CallOptions): Pages<Merchant, ListMerchantsResponse> =>
      listPages(
        (cursor) => get("/v1/merchants", { ...query, cursor }, options),
        ({ data }) => data,
        query.cursor,
      ),
    /** Lists the payments of one merchant, with sums over them in `stats` of each page. */
    listPayments: (
      merchantId: string,
      query: ListMerchantPaymentsQuery = {},
      options?: CallOptions,
    ): Pages<ListedPayment, ListMerchantPaymentsResponse> =>
      listPages(
        (cursor) => get("/v1/merchants/payments", { ...query, cursor }, { ...options, merchantId }),
        ({ data }) => data,
        query.cursor,
      ),
    update: (merchantId: string, changes: UpdateMerchantRequest, options?: CallOptions) =>
      change<CreateMerchantResponse>("PATCH", path`/v1/merchants/${merchantId}`, changes, options),
    delete: (merchantId: string, options?: CallOptions) =>
      change<DeleteMerchantResponse>("DELETE", path`/v1/merchants/${merchantId}`, undefined, options),
  };
}
