import { z } from "zod";
import { done, refuse } from "../../payments/error-codes.ts";
import { toHeaders } from "../../payments/webhooks/deliver-events.ts";
import { type DeliveryView, findDelivery, listDeliveries } from "../../payments/webhooks/list-deliveries.ts";
import { replayEvent, replayEvents } from "../../payments/webhooks/replay-events.ts";
import { defineOperation } from "../contract/operation.ts";
import { instant, listQuery, noBody, optional, paymentId, text } from "../contract/request-schemas.ts";
import { nextCursor } from "./merchant-response-schemas.ts";
import { toQuery } from "./webhook-endpoint-operations.ts";
import { deliveryListResponse, deliveryStatus, endpointId, eventId, webhookDeliveryDetail } from "./webhook-schemas.ts";

const ofEndpoint = {
  access: "account",
  scope: "webhooks",
  wholeAccount: true,
  params: z.object({ endpointId }),
  paramsCode: "webhook_endpoint_not_found",
  success: 200,
} as const;
/** A text that is no id is read as one that no event has, so that the refusal names the event and not the endpoint. */
const givenEventId = z
  .string()
  .transform((given) => eventId.safeParse(given).data ?? "")
  .meta({ ...eventId.meta(), describedAs: { type: "string", maxLength: 64 } });
const ofDelivery = { ...ofEndpoint, params: z.object({ endpointId, eventId: givenEventId }) } as const;

function toDelivery({ at, state: status, deliveredAt, dueAt, ...rest }: DeliveryView) {
  return {
    ...rest,
    status,
    createdAt: at.toISOString(),
    deliveredAt: deliveredAt?.toISOString() ?? null,
    nextAttemptAt: dueAt?.toISOString() ?? null,
  };
}

const list = defineOperation({
  ...ofEndpoint,
  method: "GET",
  path: "/v1/webhook-endpoints/:endpointId/deliveries",
  name: "listWebhookDeliveries",
  summary: "Lists the events of a webhook endpoint with the state of their delivery, the newest first.",
  query: listQuery({ maxLimit: 200, defaultLimit: 50 }).extend({
    paymentId: paymentId.optional().meta({ description: "Only the events of this payment." }),
    status: deliveryStatus.optional(),
  }),
  response: deliveryListResponse,
  refusals: ["webhook_endpoint_not_found"],
  async handle(deps, { caller, params, query: { status: state, ...query } }) {
    const listed = await listDeliveries(deps, { ...toQuery(caller, params), ...query, state });
    return listed.ok ? done({ data: listed.value.items.map(toDelivery), nextCursor: listed.value.nextCursor }) : listed;
  },
});

const get = defineOperation({
  ...ofDelivery,
  method: "GET",
  path: "/v1/webhook-endpoints/:endpointId/deliveries/:eventId",
  name: "getWebhookDelivery",
  summary: "Returns a delivery with its request and the beginning of each response.",
  response: z.object({ delivery: webhookDeliveryDetail }),
  refusals: ["webhook_endpoint_not_found", "event_not_found"],
  async handle(deps, { caller, params }) {
    const found = await findDelivery(deps, { ...toQuery(caller, params), eventId: params.eventId });
    if (!found.ok) return found;
    const { payload, attempts, ...delivery } = found.value;
    const newest = attempts[0]?.at ?? delivery.at;
    return done({
      delivery: {
        ...toDelivery(delivery),
        request: { headers: toHeaders(delivery.eventId, newest), body: JSON.stringify(payload) },
        attempts: attempts.map(({ at, responseType, responseBody, ...rest }) => ({
          ...rest,
          sentAt: at.toISOString(),
          response: responseBody === null ? null : { contentType: responseType, body: responseBody },
        })),
      },
    });
  },
});

const replayOne = defineOperation({
  ...ofDelivery,
  method: "POST",
  path: "/v1/webhook-endpoints/:endpointId/deliveries/:eventId/replay",
  name: "replayWebhookEvent",
  summary: "Sends an event again at once, under the same event id.",
  body: noBody,
  response: z.object({ eventId: z.string() }),
  refusals: ["webhook_endpoint_not_found", "event_not_found", "invalid_state"],
  async handle(deps, { caller, params }) {
    return replayEvent(deps, { ...toQuery(caller, params), eventId: params.eventId });
  },
});

const replayMany = defineOperation({
  ...ofEndpoint,
  method: "POST",
  path: "/v1/webhook-endpoints/:endpointId/replay",
  name: "replayWebhookEvents",
  summary:
    "Sends the events of a period again, also those that a disabled endpoint has missed, or those that were given up: 5,000 in one call, the oldest first. The period is at most 31 days. Refuses with rate_limited while more than 5,000 events are pending, or events of this moment are still being written.",
  body: z.strictObject({
    from: optional(instant.meta({ description: "Events from this time on.", example: "2026-03-01T12:00:00Z" })),
    until: optional(
      instant.meta({ description: "Events before this time; now when left out.", example: "2026-03-01T13:00:00Z" }),
    ),
    status: optional(
      z
        .literal("given_up", "expected given_up")
        .meta({ description: "Instead of a period: the events that were given up." }),
    ),
    cursor: optional(text(1_024).meta({ description: "The nextCursor of the call before, with the same period." })),
  }),
  response: z.object({ count: z.int().min(0).meta({ description: "Events of this call." }), nextCursor }),
  refusals: ["webhook_endpoint_not_found", "invalid_state"],
  async handle(deps, { caller, params, body: { from, until, status, cursor } }) {
    if ((from === undefined) === (status === undefined))
      return refuse("params_validation", "from: expected either from or status");
    const which = from ? { since: from, until: until ?? deps.now() } : { state: "given_up" as const };
    return replayEvents(deps, { ...toQuery(caller, params), which, cursor });
  },
});

/** Operations on the deliveries of a webhook endpoint; additions to the specification. */
export const webhookDeliveryOperations = [list, get, replayOne, replayMany];
