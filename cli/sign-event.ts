import { createHmac } from "node:crypto";

/**
 * Returns the headers of a webhook request as the service sends it (payments/webhooks/deliver-events.ts): signed by
 * Standard Webhooks, and under the names of Svix too.
 * @param body the exact text of the request
 */
export function signEvent(
  secret: string,
  { id, body, at }: { id: string; body: string; at: Date },
): Record<string, string> {
  const timestamp = String(Math.floor(at.getTime() / 1_000));
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const signature = `v1,${createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64")}`;
  return {
    "content-type": "application/json",
    "user-agent": "payment-service-webhooks",
    "svix-id": id,
    "svix-timestamp": timestamp,
    "svix-signature": signature,
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": signature,
  };
}
