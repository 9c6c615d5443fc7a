import type {
  CreateWebhookEndpointRequest,
  CreateWebhookEndpointResponse,
  DeleteMerchantResponse,
  GetWebhookDeliveryResponse,
  GetWebhookEndpointResponse,
  ListWebhookDeliveriesQuery,
  ListWebhookDeliveriesResponse,
  ListWebhookEndpointsResponse,
  ReplayWebhookEventResponse,
  ReplayWebhookEventsRequest,
  ReplayWebhookEventsResponse,
  RotateWebhookSecretRequest,
  TestWebhookEndpointResponse,
  UpdateWebhookEndpointRequest,
  WebhookDelivery,
} from "../api-types.ts";
import { listPages, type Pages } from "../http/pages.ts";
import { type CallOptions, path } from "../http/transport.ts";
import type { MerchantCalls } from "./merchant-calls.ts";

/** The URLs that receive the events of the account. A secret is in the response that creates or rotates it only. */
export function createWebhookEndpoints({ get, change }: MerchantCalls) {
  return {
    create: (endpoint: CreateWebhookEndpointRequest, options?: CallOptions) =>
      change<CreateWebhookEndpointResponse>("POST", "/v1/webhook-endpoints", endpoint, options),
    get: (endpointId: string, options?: CallOptions) =>
      get<GetWebhookEndpointResponse>(path`/v1/webhook-endpoints/${endpointId}`, undefined, options),
    list: (options?: CallOptions) => get<ListWebhookEndpointsResponse>("/v1/webhook-endpoints", undefined, options),
    update: (endpointId: string, changes: UpdateWebhookEndpointRequest, options?: CallOptions) =>
      change<GetWebhookEndpointResponse>("PATCH", path`/v1/webhook-endpoints/${endpointId}`, changes, options),
    delete: (endpointId: string, options?: CallOptions) =>
      change<DeleteMerchantResponse>("DELETE", path`/v1/webhook-endpoints/${endpointId}`, undefined, options),
    /** Returns a new secret. Both sign for 24 hours; with `now`, the former one ends at once. */
    rotateSecret: (endpointId: string, request: RotateWebhookSecretRequest = {}, options?: CallOptions) =>
      change<CreateWebhookEndpointResponse>("POST", path`/v1/webhook-endpoints/${endpointId}/rotate`, request, options),
    /** Sends a test event. */
    test: (endpointId: string, options?: CallOptions) =>
      change<TestWebhookEndpointResponse>("POST", path`/v1/webhook-endpoints/${endpointId}/test`, undefined, options),
    /** Sends the events of a period, or those that were given up, again: up to 5,000 for each call. */
    replay: (endpointId: string, request: ReplayWebhookEventsRequest, options?: CallOptions) =>
      change<ReplayWebhookEventsResponse>("POST", path`/v1/webhook-endpoints/${endpointId}/replay`, request, options),
  };
}

/** What was sent to an endpoint, and what it answered. */
export function createWebhookDeliveries({ get, change }: MerchantCalls) {
  return {
    list: (
      endpointId: string,
      query: ListWebhookDeliveriesQuery = {},
      options?: CallOptions,
    ): Pages<WebhookDelivery, ListWebhookDeliveriesResponse> =>
      listPages(
        (cursor) => get(path`/v1/webhook-endpoints/${endpointId}/deliveries`, { ...query, cursor }, options),
        ({ data }) => data,
        query.cursor,
      ),
    get: (endpointId: string, eventId: string, options?: CallOptions) => {
      const at = path`/v1/webhook-endpoints/${endpointId}/deliveries/${eventId}`;
      return get<GetWebhookDeliveryResponse>(at, undefined, options);
    },
    /** Sends one event again. */
    replay: (endpointId: string, eventId: string, options?: CallOptions) => {
      const at = path`/v1/webhook-endpoints/${endpointId}/deliveries/${eventId}/replay`;
      return change<ReplayWebhookEventResponse>("POST", at, undefined, options);
    },
  };
}
