import { z } from "zod";
import { type EventType, eventTypes } from "../../payments/webhooks/event-types.ts";
import { memberNames } from "../../runtime/member-names.ts";
import { text } from "../contract/request-schemas.ts";
import { instant } from "../contract/response-schemas.ts";
import { nextCursor } from "./merchant-response-schemas.ts";

/** Request and response schemas of webhook endpoints, deliveries and events. */
const endpointExample = "whe_0f8c5b1d2e3a4f5061728394a5b6c7d8";
const eventExample = "evt_5f3b0c3be1e84b6d9a4ad6d1f1f6b7f0";

export const endpointId = text(64).meta({ description: "The id of a webhook endpoint.", example: endpointExample });
export const eventId = text(64).meta({ description: "The id of an event.", example: eventExample });

const typeNames = memberNames(eventTypes) as [EventType, ...EventType[]];

export const eventType = z.enum(typeNames, `expected types of events: ${typeNames.join(", ")}`).meta({
  id: "EventType",
  description: Object.entries(eventTypes)
    .map(([type, when]) => `- \`${type}\`: ${when}`)
    .join("\n"),
  example: "payment.succeeded",
});

export const payload = z.enum(["full", "thin"], "expected full or thin").meta({
  description: "full: the whole object at the time of the event. thin: only its id, the merchant and the mode.",
  example: "full",
});

export const deliveryStatus = z
  .enum(["pending", "delivered", "given_up"], "expected pending, delivered or given_up")
  .meta({
    description: "given_up: eight attempts have failed, or the endpoint was disabled or deleted before.",
    example: "delivered",
  });

export const webhookEndpoint = z
  .object({
    id: z.string().meta({ example: endpointExample }),
    url: z.string().meta({ example: "https://shop.example.com/webhooks" }),
    status: z
      .enum(["enabled", "disabled"])
      .meta({ description: "A disabled endpoint receives nothing, except notices for 24 hours." }),
    disabledReason: z
      .enum(["failing", "requested"])
      .nullable()
      .meta({ description: "failing: it has accepted nothing for five days, and the service has disabled it." }),
    disabledAt: instant.nullable(),
    failingSince: instant
      .nullable()
      .meta({ description: "When the first failed request since the last success ended. Its event may be older." }),
    eventTypes: z.array(z.string()).nullable().meta({ description: "The types that it receives; null: all of them." }),
    merchantIds: z
      .array(z.string())
      .nullable()
      .meta({ description: "The merchants whose events it receives; null: all of the account, also later ones." }),
    payload,
    managedBy: z
      .enum(["account", "operator"])
      .meta({ description: "operator: an operator of the service has registered it, and no API key can change it." }),
    createdAt: instant,
    previousUntil: instant
      .nullable()
      .meta({ description: "Until when the secret before the last rotation signs too." }),
  })
  .meta({ id: "WebhookEndpoint", description: "A URL that receives the events of an account in one mode." });

export const secret = z.string().meta({
  description: "Verifies the signatures of this endpoint (Standard Webhooks). It is shown only now.",
  example: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw0f8K1cXbT0E=",
});

const delivery = z.object({
  eventId: z.string().meta({ example: eventExample }),
  paymentId: z.string().nullable().meta({ description: "The payment that the event is about." }),
  changeId: z.string().nullable().meta({ description: "The change of a destination that the event is about." }),
  refundId: z.string().nullable().meta({ description: "The refund that the event is about." }),
  approvalKey: z.string().nullable().meta({ description: "The approval key (public key) that the event is about." }),
  endpointId: z.string().nullable().meta({ description: "The webhook endpoint that the event is about." }),
  type: z.string().meta({ example: "payment.succeeded" }),
  createdAt: instant,
  status: deliveryStatus,
  attemptsMade: z.int().min(0),
  lastOutcome: z
    .string()
    .nullable()
    .meta({ description: "An HTTP status, or the reason why there was none.", example: "200" }),
  deliveredAt: instant.nullable(),
  nextAttemptAt: instant.nullable(),
});

const webhookDelivery = delivery.meta({
  id: "WebhookDelivery",
  description: "An event, and the state of its delivery to one endpoint.",
});

/** An event in the form of its webhook, the only one of the API that is not in camel case: handlers take both. */
export const event = z
  .object({
    id: z.string().meta({ example: eventExample }),
    type: z.string().meta({ example: "payment.succeeded" }),
    api_version: z.string().meta({ description: "The version of the format.", example: "2026-05-18" }),
    created_at: instant,
    data: z.record(z.string(), z.any()).meta({
      description: "The object at the time of the event; docs/webhooks.md describes the members of each type.",
      example: { payment_id: "pay_6c1f0e4b9a7d4c0f8e2a1b3c5d7e9f01", live: true, status: "succeeded" },
    }),
  })
  .meta({ id: "Event", description: "What happened to a payment or another object of the account." });

const attempt = z
  .object({
    sentAt: instant,
    durationMs: z.int().min(0),
    outcome: z.string().meta({ description: "An HTTP status, or the reason why there was none.", example: "500" }),
    response: z
      .object({
        contentType: z.string().nullable(),
        body: z.string().meta({ description: "The first 1,000 characters, without what looks like a secret." }),
      })
      .nullable()
      .meta({ description: "The beginning of the response; null when there was none." }),
  })
  .meta({ id: "WebhookAttempt", description: "A request to an endpoint, and the beginning of its response." });

export const webhookDeliveryDetail = delivery
  .extend({
    request: z.object({
      headers: z
        .record(z.string(), z.string())
        .meta({ description: "Those of the newest attempt; signatures are removed." }),
      body: z
        .string()
        .meta({ description: "The bytes that are signed and sent, by the present `payload` of the endpoint." }),
    }),
    attempts: z.array(attempt).meta({ description: "The newest 20 attempts of the last 30 days, the newest first." }),
  })
  .meta({ id: "WebhookDeliveryDetail", description: "A delivery with its request and the responses to it." });

export const eventListResponse = z.object({
  data: z.array(event),
  nextCursor: z
    .string()
    .nullable()
    .meta({ description: "Continues after these events, also once there are more. Null while there are none at all." }),
  hasMore: z.boolean().meta({ description: "Whether there are more events already." }),
});

export const deliveryListResponse = z.object({ data: z.array(webhookDelivery), nextCursor });
