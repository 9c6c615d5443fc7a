// A shop with one product. It needs PAY_URL, PAY_API_KEY, PAY_MERCHANT_ID and PAY_WEBHOOK_SECRET.

import { randomUUID } from "node:crypto";
import express from "express";
import { PaymentClient, verifyWebhook, WebhookVerificationError } from "payment-service-client";

const { PAY_URL, PAY_API_KEY, PAY_MERCHANT_ID, PAY_WEBHOOK_SECRET, PORT = "3001" } = process.env;
if (!PAY_API_KEY || !PAY_WEBHOOK_SECRET) throw new Error("set PAY_API_KEY and PAY_WEBHOOK_SECRET");
const shopUrl = process.env.SHOP_URL ?? `http://127.0.0.1:${PORT}`;
const client = new PaymentClient({ baseUrl: PAY_URL, apiKey: PAY_API_KEY, merchantId: PAY_MERCHANT_ID });
const isLive = !PAY_API_KEY.startsWith("svc_test_");

/** Each order by its id: { state: "open" | "paid" | "unpaid", paymentId, link }. A real shop keeps its orders in a database. */
const orders = new Map();

const app = express();

app.get("/", (_request, response) => {
  // The form carries the id of the order, so that a double click makes one order and one payment.
  const form = `<form method="post" action="/buy"><input type="hidden" name="order" value="${randomUUID()}">`;
  response.send(page("One kilogram of coffee", `${form}<button>Buy for $12.50</button></form>`));
});

app.post("/buy", express.urlencoded(), async (request, response) => {
  const id = String(request.body?.order);
  if (!/^[0-9a-f-]{36}$/.test(id)) return response.sendStatus(400);
  const order = orders.get(id) ?? { state: "open" };
  orders.set(id, order);
  // An order that has ended is not paid again. Its page says how it ended, and how to order anew.
  if (order.state !== "open") return response.redirect(303, `/orders/${id}`);
  if (!order.link) {
    const returnUrl = `${shopUrl}/orders/${id}`;
    const wanted = {
      referenceId: id,
      amount: { unit: "iso4217/USD", value: "1250" }, // cents, decided by the server and never by the form
      description: "One kilogram of coffee",
      metadata: { product: "coffee" },
      checkout: { successUrl: returnUrl, errorUrl: returnUrl },
    };
    // With the same key a repeated call returns the first payment, also after a crash before the next line.
    const payment = await client.payments.create(wanted, { idempotencyKey: id });
    Object.assign(order, { paymentId: payment.id, link: payment.gatewayUrl });
  }
  response.redirect(303, order.link);
});

// `express.raw` keeps the body as it was sent. The signature is about these bytes, not about the JSON that they contain.
app.post("/hooks", express.raw({ type: () => true, limit: "1mb" }), async (request, response) => {
  try {
    const event = await verifyWebhook(request.body ?? "", request.headers, PAY_WEBHOOK_SECRET);
    response.sendStatus(processEvent(event) ? 204 : 503); // after 503 the service sends the event again
  } catch (error) {
    if (!(error instanceof WebhookVerificationError)) throw error;
    response.sendStatus(400);
  }
});

/** Returns false for an event that comes too early. All of these are final, so it does not matter which one comes first. */
function processEvent({ type, data }) {
  if (type === "payment.succeeded") return endOrder(data, "paid");
  const hasFailed = ["payment.failed", "payment.expired", "payment.cancelled"].includes(type);
  return hasFailed ? endOrder(data, "unpaid") : true;
}

/** Only an open order ends, and only by its own payment: nothing is shipped twice, or for another payment. */
function endOrder({ reference_id: id, payment_id: paymentId, live }, state) {
  const order = orders.get(id);
  if (order && !order.paymentId) return false; // `create` has not returned
  const isOwn = order?.paymentId === paymentId && live === isLive;
  if (isOwn && order.state === "open") {
    order.state = state;
    console.log(`order ${id} is ${state}`); // a real shop ships here
  } else if (state === "paid" && !(isOwn && order.state === "paid")) {
    console.error(`ATTENTION: payment ${paymentId} succeeded, and order ${id} does not wait for it`);
  }
  return true;
}

// Buyers return here, often before the webhook. Only the webhook says that an order is paid: anyone can open this page.
app.get("/orders/:id", (request, response) => {
  const { state } = orders.get(request.params.id) ?? {};
  if (!state) return response.sendStatus(404);
  const reload = '<p>Waiting for the payment…</p><meta http-equiv="refresh" content="1">';
  response.send(page(`Your order is ${state}`, state === "open" ? reload : '<a href="/">Buy another one</a>'));
});

const page = (title, content) =>
  `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title><h1>${title}</h1>${content}</html>`;

app.listen(Number(PORT), "127.0.0.1", () => console.log(`the shop is at ${shopUrl}`));
