import type {
  ApproveSettlementChangeRequest,
  CreateCryptoSettlementsRequest,
  CreateCryptoSettlementsResponse,
  CryptoSettlement,
  DeleteMerchantResponse,
  ListApprovalKeysResponse,
  ListSettlementChangesQuery,
  ListSettlementChangesResponse,
  RegisterApprovalKeyResponse,
  RejectSettlementChangeRequest,
  SettlementChange,
  Settlements,
} from "../api-types.ts";
import { listPages, type Pages } from "../http/pages.ts";
import { type CallOptions, type CreateOptions, path } from "../http/transport.ts";
import type { MerchantCalls } from "./merchant-calls.ts";

/** Where merchants are paid. A change applies after the account's waiting period. */
export function createSettlements({ get, change, create }: MerchantCalls) {
  return {
    list: (merchantId: string, options?: CallOptions) =>
      get<Settlements>(path`/v1/merchants/${merchantId}/settlements`, undefined, options),
    create: (merchantId: string, request: CreateCryptoSettlementsRequest, options?: CreateOptions) =>
      create<CreateCryptoSettlementsResponse>(path`/v1/merchants/${merchantId}/settlements/crypto`, request, options),
    update: (merchantId: string, settlementId: string, destination: string, options?: CallOptions) => {
      const at = path`/v1/merchants/${merchantId}/settlements/crypto/${settlementId}`;
      return change<CryptoSettlement>("PUT", at, { destination }, options);
    },
    delete: (merchantId: string, settlementId: string, options?: CallOptions) => {
      const at = path`/v1/merchants/${merchantId}/settlements/crypto/${settlementId}`;
      return change<DeleteMerchantResponse>("DELETE", at, undefined, options);
    },
    listChanges: (
      merchantId: string,
      query: ListSettlementChangesQuery = {},
      options?: CallOptions,
    ): Pages<SettlementChange, ListSettlementChangesResponse> =>
      listPages(
        (cursor) => get(path`/v1/merchants/${merchantId}/settlements/changes`, { ...query, cursor }, options),
        ({ data }) => data,
        query.cursor,
      ),
    /** Applies a change at once. The statement is signed by an approval key of the merchant. */
    approveChange: (
      merchantId: string,
      changeId: string,
      request: ApproveSettlementChangeRequest,
      options?: CallOptions,
    ) => {
      const at = path`/v1/merchants/${merchantId}/settlements/changes/${changeId}/approve`;
      return change<SettlementChange>("POST", at, request, options);
    },
    rejectChange: (
      merchantId: string,
      changeId: string,
      request: RejectSettlementChangeRequest = {},
      options?: CallOptions,
    ) => {
      const at = path`/v1/merchants/${merchantId}/settlements/changes/${changeId}/reject`;
      return change<SettlementChange>("POST", at, request, options);
    },
  };
}

/** The keys that may approve changes of where a merchant is paid. */
export function createApprovalKeys({ get, change }: MerchantCalls) {
  return {
    list: (merchantId: string, options?: CallOptions) =>
      get<ListApprovalKeysResponse>(path`/v1/merchants/${merchantId}/approval-keys`, undefined, options),
    register: (merchantId: string, publicKey: string, options?: CallOptions) => {
      const at = path`/v1/merchants/${merchantId}/approval-keys`;
      return change<RegisterApprovalKeyResponse>("POST", at, { publicKey }, options);
    },
    revoke: (merchantId: string, publicKey: string, options?: CallOptions) => {
      const at = path`/v1/merchants/${merchantId}/approval-keys/${publicKey}/revoke`;
      return change<RegisterApprovalKeyResponse>("POST", at, undefined, options);
    },
  };
}
