import { z } from "zod";
import { done } from "../../payments/error-codes.ts";
import { listDeliveries, replayEvents } from "../../payments/webhooks/replay-events.ts";
import { findEndpoint } from "../../payments/webhooks/webhook-endpoints.ts";
import { defineOperation } from "../contract/operation.ts";
import { listQuery, paymentId, text } from "../contract/request-schemas.ts";
import { instant } from "../contract/response-schemas.ts";

/** An account and mode have one endpoint, which gets the events of all of its merchants. */
const ofAccount = { access: "account", scope: "webhooks", wholeAccount: true } as const;

const deliveryState = z.enum(["pending", "delivered", "given_up"], "expected pending, delivered or given_up");

const endpoint = z
  .object({
    id: z.string(),
    url: z.string(),
    createdAt: instant,
    previousUntil: instant
      .nullable()
      .meta({ description: "Until when the secret before the last rotation signs too." }),
  })
  .meta({ id: "WebhookEndpoint" });

const delivery = z
  .object({
    eventId: z.string(),
    paymentId: z.string().nullable().meta({ description: "Null for an event about a settlement destination." }),
    changeId: z.string().nullable().meta({ description: "The change of a settlement destination." }),
    type: z.string(),
    createdAt: instant,
    status: deliveryState,
    attemptsMade: z.int().min(0),
    lastOutcome: z.string().nullable().meta({ description: "An HTTP status, or the reason why there was none." }),
    deliveredAt: instant.nullable(),
    nextAttemptAt: instant.nullable(),
  })
  .meta({ id: "WebhookDelivery" });

const get = defineOperation({
  ...ofAccount,
  method: "GET",
  path: "/v1/webhook-endpoint",
  name: "getWebhookEndpoint",
  summary: "Returns the account's webhook endpoint, which the operator registers.",
  success: 200,
  response: z.object({ webhookEndpoint: endpoint }),
  async handle(deps, { caller }) {
    const found = await findEndpoint(deps, caller);
    if (!found.ok) return found;
    const { id, url, createdAt, previousUntil } = found.value;
    const times = { createdAt: createdAt.toISOString(), previousUntil: previousUntil?.toISOString() ?? null };
    return done({ webhookEndpoint: { id, url, ...times } });
  },
});

const list = defineOperation({
  ...ofAccount,
  method: "GET",
  path: "/v1/webhook-deliveries",
  name: "listWebhookDeliveries",
  summary: "Lists the newest events of the webhook endpoint with the state of their delivery.",
  success: 200,
  query: listQuery({ maxLimit: 200, defaultLimit: 50 })
    .omit({ cursor: true })
    .extend({ paymentId: paymentId.optional(), status: deliveryState.optional() }),
  response: z.object({ data: z.array(delivery) }),
  async handle(deps, { caller, query: { status: state, ...query } }) {
    const listed = await listDeliveries(deps, { ...caller, ...query, state });
    if (!listed.ok) return listed;
    return done({
      data: listed.value.map(({ at, state: status, deliveredAt, dueAt, ...rest }) => ({
        ...rest,
        status,
        createdAt: at.toISOString(),
        deliveredAt: deliveredAt?.toISOString() ?? null,
        nextAttemptAt: dueAt?.toISOString() ?? null,
      })),
    });
  },
});

const replay = defineOperation({
  ...ofAccount,
  method: "POST",
  path: "/v1/webhook-deliveries/replay",
  name: "replayWebhookEvent",
  summary: "Sends an event again, under the same event id.",
  success: 200,
  body: z.object({ eventId: text(64).min(1, "expected an event's id") }),
  response: z.object({ eventId: z.string() }),
  async handle(deps, { caller, body: { eventId } }) {
    const { accountId, mode, actor } = caller;
    const replayed = await replayEvents(deps, { accountId, mode, actor, eventId });
    return replayed.ok ? done({ eventId }) : replayed;
  },
});

/**
 * Operations on the webhook endpoint of an account; additions to the specification. Only operators set or delete the
 * endpoint: a stolen key must not be able to silence the events that report what it does.
 */
export const webhookOperations = [get, list, replay];
