import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Webhook } from "standardwebhooks";
import { expect, test } from "vitest";
import { ask } from "../../local/buyer-client.ts";
import { freePort } from "../../local/free-ports.ts";
import { addCleanup } from "../support/cleanups.ts";
import { startChain } from "../support/evm-chain.ts";
import { startFleet } from "../support/fleet.ts";
import { readManifest, readProgram, reservePort, startExample } from "../support/run-example.ts";
import { waitFor } from "../support/wait-for.ts";

const fleet = await startFleet({ chain: await startChain(), workers: 1 });
const { apiKey, merchantId } = fleet.testShop.caller;
const call = (method: string, path: string, body?: object) => ask(fleet.testShop, method, path, body);

const { port, hooks } = await reservePort();
type Registered = { webhookEndpoint: { id: string }; secret: string };
const { webhookEndpoint, secret } = (await call("POST", "/v1/webhook-endpoints", { url: hooks })) as Registered;
const env = {
  PAY_URL: fleet.baseUrl,
  PAY_API_KEY: apiKey,
  PAY_MERCHANT_ID: merchantId,
  PAY_WEBHOOK_SECRET: secret,
};
const shop = await startExample("express-shop", readProgram("express-shop"), { port, env });

/** Opens the product page and returns the order that its form would send. */
async function readOrder(from = shop): Promise<string> {
  const text = await (await fetch(from.url)).text();
  return /name="order" value="([^"]+)"/.exec(text)?.[1] ?? "";
}

/** Sends the form, and returns the address to which the shop sends the buyer. */
async function buy(order: string, from = shop): Promise<string> {
  const body = new URLSearchParams({ order });
  const response = await fetch(`${from.url}/buy`, { method: "POST", body, redirect: "manual" });
  expect(response.status).toBe(303);
  return response.headers.get("location") ?? "";
}

const paymentOf = (link: string) => new URL(link).searchParams.get("pid") ?? "";
const simulate = (id: string, status: string) => call("POST", `/v1/payments/${id}/simulate`, { status });

async function waitForOrder(order: string, state: string, from = shop): Promise<void> {
  const shows = async () => (await (await fetch(`${from.url}/orders/${order}`)).text()).includes(`is ${state}<`);
  await waitFor(shows, { within: 20_000, what: `the order is ${state}`, every: 100 });
}

/** Sends a webhook that is signed with the shop's secret, and returns the status of the response. */
async function sendSigned(type: string, data: object, to = hooks): Promise<number> {
  const body = JSON.stringify({ id: "evt_signed", type, data });
  const headers = {
    "webhook-id": "evt_signed",
    "webhook-timestamp": String(Math.floor(Date.now() / 1_000)),
    "webhook-signature": new Webhook(secret).sign("evt_signed", new Date(), body),
  };
  return (await fetch(to, { method: "POST", headers, body })).status;
}

test("a double click makes one payment, and the webhook marks its order paid once, however often it is delivered", async () => {
  const order = await readOrder();
  const [link, second] = await Promise.all([buy(order), buy(order)]);
  expect(second).toBe(link);
  await waitForOrder(order, "open");
  const made = (await call("GET", "/v1/payments?metadata=product:coffee")) as { data: { referenceId: string }[] };
  const returnUrl = `${shop.url}/orders/${order}`;
  // A repetition of this test finds the payments of the failed try too.
  const own = made.data.filter(({ referenceId }) => referenceId === order);
  expect(own).toEqual([expect.objectContaining({ paymentId: paymentOf(link) })]);
  expect(await call("GET", `/v1/payments/${paymentOf(link)}`)).toMatchObject({
    amount: { unit: "iso4217/USD", value: "1250" },
    checkout: { successUrl: returnUrl, errorUrl: returnUrl },
  });

  await simulate(paymentOf(link), "succeeded");
  await waitForOrder(order, "paid");
  const deliveries = `/v1/webhook-endpoints/${webhookEndpoint.id}/deliveries`;
  type Delivery = {
    eventId: string;
    paymentId: string;
    type: string;
    attemptsMade: number;
    deliveredAt: string | null;
  };
  const findDelivery = async () => {
    const { data } = (await call("GET", deliveries)) as { data: Delivery[] };
    return data.find(({ type, paymentId }) => type === "payment.succeeded" && paymentId === paymentOf(link));
  };
  const before = await waitFor(
    async () => {
      const first = await findDelivery();
      return first?.deliveredAt ? first : undefined;
    },
    { within: 20_000, what: "the first delivery is recorded" },
  );
  await call("POST", `${deliveries}/${before.eventId}/replay`);
  const isRedelivered = async () => {
    const now = await findDelivery();
    return now?.deliveredAt !== null && now?.deliveredAt !== before.deliveredAt;
  };
  await waitFor(isRedelivered, { within: 20_000, what: "the second delivery", every: 100 });
  const next = await readOrder();
  await simulate(paymentOf(await buy(next)), "expired");
  await waitForOrder(next, "unpaid");
  const isOwnReport = (line: string) => [order, next].some((one) => line.startsWith(`order ${one} `));
  const reports = () => shop.lines.filter(isOwnReport);
  // The output of the process may arrive after its page.
  await waitFor(() => reports().length > 1, { within: 20_000, what: "both reports" });
  expect(reports()).toEqual([`order ${order} is paid`, `order ${next} is unpaid`]);
});

test.each([
  ["succeeded", "paid"],
  ["expired", "unpaid"],
])("the form of an order whose payment has %s leads to the order and not to another payment", async (status, state) => {
  const order = await readOrder();
  await simulate(paymentOf(await buy(order)), status);
  await waitForOrder(order, state);
  expect(await buy(order)).toBe(`/orders/${order}`);
  expect(await (await fetch(`${shop.url}/orders/${order}`)).text()).toContain('<a href="/">');
  const next = await readOrder();
  expect(paymentOf(await buy(next))).toMatch(/^pay_/);
});

test("a payment of another id or mode ships nothing, and the shop's log asks for attention", async () => {
  const order = await readOrder();
  const own = paymentOf(await buy(order));
  const cheap = { referenceId: order, amount: { unit: "iso4217/USD", value: "100" } };
  const { id } = (await call("POST", "/v1/payments", cheap)) as { id: string };
  const complains = (paymentId: string) => () =>
    shop.lines.some((line) => line.startsWith("ATTENTION") && line.includes(paymentId));
  await simulate(id, "succeeded");
  await waitFor(complains(id), { within: 20_000, what: "the shop complains of the other payment" });
  await waitForOrder(order, "open");
  const data = { reference_id: order, payment_id: own };
  expect(await sendSigned("payment.succeeded", { ...data, live: true })).toBe(204);
  await waitForOrder(order, "open");
  await waitFor(complains(own), { within: 20_000, what: "the shop complains of the other mode" });

  await simulate(own, "expired");
  await waitForOrder(order, "unpaid");
  expect(await sendSigned("payment.succeeded", { ...data, live: false })).toBe(204);
  await waitForOrder(order, "unpaid");
});

test("the shop asks for an event again until it knows which payment its order has", async () => {
  const silent = createServer(() => {});
  addCleanup(async () => void silent.close().closeAllConnections());
  await new Promise<void>((done) => silent.listen(0, "127.0.0.1", done));
  const PAY_URL = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const place = await reservePort();
  const early = await startExample("express-shop", readProgram("express-shop"), {
    port: place.port,
    env: { ...env, PAY_URL },
  });
  const order = await readOrder(early);
  const isAsked = new Promise((done) => silent.once("request", done));
  const click = buy(order, early).catch(() => undefined);
  await isAsked;
  const data = { reference_id: order, payment_id: "pay_1", live: false };
  expect(await sendSigned("payment.succeeded", data, place.hooks)).toBe(503);
  await waitForOrder(order, "open", early);
  await early.child.end("SIGTERM");
  await click;
});

test("the shop does not start without a webhook secret", async () => {
  const options = { port: await freePort(), env: { ...env, PAY_WEBHOOK_SECRET: "" } };
  await expect(startExample("express-shop", readProgram("express-shop"), options)).rejects.toThrow(
    /PAY_WEBHOOK_SECRET/,
  );
});

test("the shop refuses webhooks that are not signed, and logs no secret", async () => {
  const order = await readOrder();
  await buy(order);
  const body = JSON.stringify({ id: "evt_1", type: "payment.succeeded", data: { reference_id: order } });
  for (const headers of [{}, { "content-type": "application/json" }])
    expect((await fetch(hooks, { method: "POST", headers, body })).status).toBe(400);
  expect((await fetch(hooks, { method: "POST" })).status).toBe(400);
  await waitForOrder(order, "open");
  const log = shop.lines.join("\n");
  for (const hidden of [apiKey, secret]) expect(log).not.toContain(hidden);
});

test("npm start alone connects the shop to a running service, and ends with its signal", async () => {
  const { PAY_WEBHOOK_SECRET: _unset, ...account } = env;
  const { start } = readManifest("express-shop").scripts;
  const local = await startExample("express-shop", start, { port: await freePort(), env: account });
  await waitFor(() => local.lines.some((line) => line.includes("forwarding to")), {
    within: 20_000,
    what: "pay listens",
  });
  const order = await readOrder(local);
  await simulate(paymentOf(await buy(order, local)), "succeeded");
  await waitForOrder(order, "paid", local);
  await local.child.end("SIGTERM");
  await expect(fetch(local.url)).rejects.toThrow();
});
