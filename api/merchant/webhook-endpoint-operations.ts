import { z } from "zod";
import { done } from "../../payments/error-codes.ts";
import {
  changeEndpoint,
  createEndpoint,
  deleteEndpoint,
  MAX_ENDPOINTS,
} from "../../payments/webhooks/change-endpoints.ts";
import { rotateSecret } from "../../payments/webhooks/endpoint-secrets.ts";
import { type EndpointView, findEndpoint, listEndpoints } from "../../payments/webhooks/endpoint-views.ts";
import { sendTestEvent } from "../../payments/webhooks/replay-events.ts";
import { defineOperation } from "../contract/operation.ts";
import { merchantId, noBody, optional, text } from "../contract/request-schemas.ts";
import type { ActingCaller } from "../http/auth.ts";
import { deletedResponse } from "./merchant-response-schemas.ts";
import { endpointId, eventType, payload, secret, webhookEndpoint } from "./webhook-schemas.ts";

const ofAccount = { access: "account", scope: "webhooks", wholeAccount: true } as const;
const params = z.object({ endpointId });
const ofEndpoint = { ...ofAccount, params, paramsCode: "webhook_endpoint_not_found" } as const;
const response = z.object({ webhookEndpoint });
const withSecret = z.object({ webhookEndpoint, secret });

/** Names an endpoint of a caller's account and mode, and who acts. */
export function toQuery({ accountId, mode, actor }: ActingCaller, { endpointId }: z.output<typeof params>) {
  return { endpointId, owner: { accountId, mode }, actor };
}

function toEndpoint(view: EndpointView): z.output<typeof webhookEndpoint> {
  const { accountId: _, mode: __, byOperator, eventTypes, merchantIds, ...rest } = view;
  return {
    ...rest,
    eventTypes: eventTypes && [...eventTypes],
    merchantIds: merchantIds && [...merchantIds],
    managedBy: byOperator ? "operator" : "account",
    createdAt: view.createdAt.toISOString(),
    disabledAt: view.disabledAt?.toISOString() ?? null,
    failingSince: view.failingSince?.toISOString() ?? null,
    previousUntil: view.previousUntil?.toISOString() ?? null,
  };
}

const url = text(2_048).min(1, "expected a URL").meta({
  description: "An https URL on the public internet. Each of the account's endpoints in a mode has another one.",
  example: "https://shop.example.com/webhooks",
});
/** Postgres keeps no empty filter: an endpoint that receives nothing is a disabled one. */
const filter = <S extends z.ZodType>(schema: S, what: string) =>
  z
    .array(schema)
    .min(1, `expected 1 to 50 ${what}`)
    .max(50, `expected 1 to 50 ${what}`)
    .nullable()
    .meta({ description: `The only ${what} that the endpoint receives; null: all of them, also later ones.` });
const filters = { eventTypes: filter(eventType, "types"), merchantIds: filter(merchantId, "merchants") };

/** POST /v1/webhook-endpoints: takes no Idempotency-Key, because the stored response would contain the secret. */
const create = defineOperation({
  ...ofAccount,
  method: "POST",
  path: "/v1/webhook-endpoints",
  name: "createWebhookEndpoint",
  summary: `Registers a URL for the events of the key's mode; at most ${MAX_ENDPOINTS}. Its secret is shown only now.`,
  success: 201,
  body: z.strictObject({
    url,
    eventTypes: filters.eventTypes.optional(),
    merchantIds: filters.merchantIds.optional(),
    payload: optional(payload),
  }),
  response: withSecret,
  refusals: ["merchant_not_found", "invalid_state"],
  async handle(deps, { caller, body }) {
    const { accountId, mode, actor } = caller;
    const created = await createEndpoint(deps, { accountId, mode, actor, ...body });
    if (!created.ok) return created;
    return done({ webhookEndpoint: toEndpoint(created.value.endpoint), secret: created.value.secret });
  },
});

const list = defineOperation({
  ...ofAccount,
  method: "GET",
  path: "/v1/webhook-endpoints",
  name: "listWebhookEndpoints",
  summary: "Lists the webhook endpoints of the key's mode, the oldest first.",
  success: 200,
  response: z.object({ data: z.array(webhookEndpoint) }),
  async handle(deps, { caller }) {
    return done({ data: (await listEndpoints(deps, caller)).map(toEndpoint) });
  },
});

const get = defineOperation({
  ...ofEndpoint,
  method: "GET",
  path: "/v1/webhook-endpoints/:endpointId",
  name: "getWebhookEndpoint",
  summary: "Returns a webhook endpoint.",
  success: 200,
  response,
  refusals: ["webhook_endpoint_not_found"],
  async handle(deps, { caller, params }) {
    const found = await findEndpoint(deps, toQuery(caller, params));
    return found.ok ? done({ webhookEndpoint: toEndpoint(found.value) }) : found;
  },
});

const update = defineOperation({
  ...ofEndpoint,
  method: "PATCH",
  path: "/v1/webhook-endpoints/:endpointId",
  name: "updateWebhookEndpoint",
  summary:
    "Changes a webhook endpoint, or disables or enables it. Filters count for later events; notices of destinations and approval keys also go by those of the last 24 hours.",
  success: 200,
  body: z.strictObject({
    url: optional(url),
    eventTypes: filters.eventTypes.optional(),
    merchantIds: filters.merchantIds.optional(),
    payload: optional(payload),
    status: optional(
      z.enum(["enabled", "disabled"], "expected enabled or disabled").meta({
        description:
          "disabled: nothing is sent, except notices of destinations and approval keys for 24 hours, and other pending events are dropped. enabled: later events are sent again.",
        example: "enabled",
      }),
    ),
  }),
  response,
  refusals: ["webhook_endpoint_not_found", "merchant_not_found", "invalid_state"],
  async handle(deps, { caller, params, body }) {
    const changed = await changeEndpoint(deps, { ...toQuery(caller, params), ...body });
    return changed.ok ? done({ webhookEndpoint: toEndpoint(changed.value) }) : changed;
  },
});

const remove = defineOperation({
  ...ofEndpoint,
  method: "DELETE",
  path: "/v1/webhook-endpoints/:endpointId",
  name: "deleteWebhookEndpoint",
  summary: "Deletes a webhook endpoint. Nothing more is sent to it.",
  success: 200,
  response: deletedResponse,
  refusals: ["webhook_endpoint_not_found"],
  async handle(deps, { caller, params }) {
    const deleted = await deleteEndpoint(deps, toQuery(caller, params));
    return deleted.ok ? done({ id: deleted.value.id, deleted: true }) : deleted;
  },
});

const rotate = defineOperation({
  ...ofEndpoint,
  method: "POST",
  path: "/v1/webhook-endpoints/:endpointId/rotate",
  name: "rotateWebhookSecret",
  summary: "Replaces the secret, which is shown only now. Both secrets sign for 24 hours.",
  success: 200,
  body: optional(
    z.strictObject({
      now: optional(
        z
          .boolean()
          .meta({ description: "For a secret that has leaked: the former one stops signing at once.", example: false }),
      ),
    }),
  ),
  response: withSecret,
  refusals: ["webhook_endpoint_not_found"],
  async handle(deps, { caller, params, body }) {
    const query = toQuery(caller, params);
    const rotated = await rotateSecret(deps, { ...query, now: body?.now });
    if (!rotated.ok) return rotated;
    const found = await findEndpoint(deps, query);
    return found.ok ? done({ webhookEndpoint: toEndpoint(found.value), ...rotated.value }) : found;
  },
});

const test = defineOperation({
  ...ofEndpoint,
  method: "POST",
  path: "/v1/webhook-endpoints/:endpointId/test",
  name: "testWebhookEndpoint",
  summary: "Sends a test event, whatever the filters are. Its delivery shows the response.",
  success: 200,
  body: noBody,
  response: z.object({ eventId: z.string() }),
  refusals: ["webhook_endpoint_not_found", "invalid_state"],
  async handle(deps, { caller, params }) {
    return sendTestEvent(deps, toQuery(caller, params));
  },
});

/**
 * Operations on the webhook endpoints of an account; additions to the specification. An endpoint that an operator has
 * registered is only read and tested: a stolen key must not be able to silence the events that report what it does.
 */
export const webhookEndpointOperations = [create, list, get, update, remove, rotate, test];
