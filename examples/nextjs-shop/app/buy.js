"use server";

import { redirect } from "next/navigation";
import { PaymentClient } from "payment-service-client";
import { openOrder } from "./orders.js";

/** Creates the payment of an open order, and sends the buyer to its checkout page. */
export async function buy(form) {
  const id = String(form.get("order"));
  if (!/^[0-9a-f-]{36}$/.test(id)) throw new Error("the form has no order");
  const order = openOrder(id);
  // An order that has ended is not paid again. Its page says how it ended, and how to order anew.
  if (order.state !== "open") redirect(`/orders/${id}`);
  if (!order.link) {
    // With the same key a repeated call returns the first payment, also after a crash before the next line.
    const payment = await createPayment(id);
    Object.assign(order, { paymentId: payment.id, link: payment.gatewayUrl });
  }
  redirect(order.link);
}

function createPayment(id) {
  const { PAY_URL, PAY_API_KEY, PAY_MERCHANT_ID, PORT = "3002" } = process.env;
  const returnUrl = `${process.env.SHOP_URL ?? `http://127.0.0.1:${PORT}`}/orders/${id}`;
  const wanted = {
    referenceId: id,
    amount: { unit: "iso4217/USD", value: "1250" }, // cents, decided by the server and never by the form
    description: "One kilogram of coffee",
    metadata: { product: "coffee" },
    checkout: { successUrl: returnUrl, errorUrl: returnUrl },
  };
  const client = new PaymentClient({ baseUrl: PAY_URL, apiKey: PAY_API_KEY, merchantId: PAY_MERCHANT_ID });
  return client.payments.create(wanted, { idempotencyKey: id });
}
