import { verifyWebhook, WebhookVerificationError } from "payment-service-client";
import { endOrder } from "../orders.js";

const MAX_BYTES = 1_000_000; // a webhook has a few kilobytes

export async function POST(request) {
  const body = await readBody(request);
  if (!body) return new Response(null, { status: 413 });
  try {
    const event = await verifyWebhook(body, request.headers, process.env.PAY_WEBHOOK_SECRET);
    // After 503 the service sends the event again.
    return new Response(null, { status: processEvent(event) ? 204 : 503 });
  } catch (error) {
    if (!(error instanceof WebhookVerificationError)) throw error;
    return new Response(null, { status: 400 });
  }
}

/**
 * Returns the body as it was sent, because the signature is about these bytes and not about the JSON that they contain.
 * Returns undefined for a body that is too long: anyone can send one.
 */
async function readBody(request) {
  const chunks = [];
  let length = 0;
  for await (const chunk of request.body ?? []) {
    length += chunk.length;
    if (length > MAX_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** Returns false for an event that comes too early. All of these are final, so it does not matter which one comes first. */
function processEvent({ type, data }) {
  if (type === "payment.succeeded") return endOrder(data, "paid");
  const hasFailed = ["payment.failed", "payment.expired", "payment.cancelled"].includes(type);
  return hasFailed ? endOrder(data, "unpaid") : true;
}
