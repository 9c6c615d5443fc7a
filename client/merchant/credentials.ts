import type {
  ApiKey,
  AppId,
  CreateApiKeyRequest,
  CreateApiKeyResponse,
  CreateAppIdResponse,
  GetApiKeyResponse,
  ListApiKeysQuery,
  ListApiKeysResponse,
  ListAppIdsQuery,
  ListAppIdsResponse,
  RevokeApiKeyRequest,
  RevokeApiKeyResponse,
  RevokeAppIdResponse,
  RotateApiKeyRequest,
} from "../api-types.ts";
import { listPages, type Pages } from "../http/pages.ts";
import { type CallOptions, type CreateOptions, path } from "../http/transport.ts";
import type { MerchantCalls } from "./merchant-calls.ts";

/** API keys. The text of a key is in the response that creates or rotates it, and nowhere else. */
export function createApiKeys({ get, change }: MerchantCalls) {
  return {
    create: (key: CreateApiKeyRequest, options?: CallOptions) =>
      change<CreateApiKeyResponse>("POST", "/v1/api-keys", key, options),
    get: (keyId: string, options?: CallOptions) =>
      get<GetApiKeyResponse>(path`/v1/api-keys/${keyId}`, undefined, options),
    list: (query: ListApiKeysQuery = {}, options?: CallOptions): Pages<ApiKey, ListApiKeysResponse> =>
      listPages(
        (cursor) => get("/v1/api-keys", { ...query, cursor }, options),
        ({ data }) => data,
        query.cursor,
      ),
    rotate: (keyId: string, request: RotateApiKeyRequest = {}, options?: CallOptions) =>
      change<CreateApiKeyResponse>("POST", path`/v1/api-keys/${keyId}/rotate`, request, options),
    revoke: (keyId: string, request: RevokeApiKeyRequest = {}, options?: CallOptions) =>
      change<RevokeApiKeyResponse>("POST", path`/v1/api-keys/${keyId}/revoke`, request, options),
  };
}

/** App ids, which wallets call the gateway with. They are public. */
export function createAppIds({ get, change, create }: MerchantCalls) {
  return {
    create: (options?: CreateOptions) => create<CreateAppIdResponse>("/v1/app-ids", {}, options),
    list: (query: ListAppIdsQuery = {}, options?: CallOptions): Pages<AppId, ListAppIdsResponse> =>
      listPages(
        (cursor) => get("/v1/app-ids", { ...query, cursor }, options),
        ({ data }) => data,
        query.cursor,
      ),
    revoke: (appId: string, options?: CallOptions) =>
      change<RevokeAppIdResponse>("POST", path`/v1/app-ids/${appId}/revoke`, undefined, options),
  };
}
