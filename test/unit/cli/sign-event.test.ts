import { randomUUID } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { expect, test } from "vitest";
import { signEvent } from "../../../cli/sign-event.ts";
import { findWebhookSecret } from "../../../cli/webhook-secret.ts";
import { toHeaders } from "../../../payments/webhooks/deliver-events.ts";

const event = { id: "evt_1", body: '{"type":"payment.succeeded"}', at: new Date() };

test("a forwarded event has the headers of the service's own requests, and a Standard Webhooks library verifies it", () => {
  const secret = findWebhookSecret({}, "svc_test_1");
  const { "svix-signature": svix, "webhook-signature": own, ...rest } = signEvent(secret, event);
  expect(rest).toEqual(toHeaders(event.id, event.at));
  expect(svix).toBe(own);
  expect(new Webhook(secret).verify(event.body, signEvent(secret, event))).toEqual({ type: "payment.succeeded" });
});

test("the secret of a key stays the same, differs between keys, and may come from the environment", () => {
  const key = `svc_test_${randomUUID()}`;
  expect(findWebhookSecret({}, key)).toBe(findWebhookSecret({}, key));
  expect(findWebhookSecret({}, key)).not.toBe(findWebhookSecret({}, `${key}2`));
  expect(findWebhookSecret({ PAY_WEBHOOK_SECRET: "whsec_bWluZQ==" }, key)).toBe("whsec_bWluZQ==");
});
