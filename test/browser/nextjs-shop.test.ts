import { cp, rm } from "node:fs/promises";
import { expect, test } from "vitest";
import { ask } from "../../local/buyer-client.ts";
import { makeScratch } from "../../local/scratch-folder.ts";
import { addCleanup } from "../support/cleanups.ts";
import { startChain } from "../support/evm-chain.ts";
import { startFleet } from "../support/fleet.ts";
import { readProgram, reservePort, startExample } from "../support/run-example.ts";
import { waitFor } from "../support/wait-for.ts";
import { openPage } from "./open-browser.ts";

const fleet = await startFleet({ chain: await startChain(), workers: 1, ownUrl: true });
const { apiKey, merchantId } = fleet.testShop.caller;
const { port, hooks } = await reservePort();
const endpoint = (await ask(fleet.testShop, "POST", "/v1/webhook-endpoints", { url: hooks })) as { secret: string };
const env = {
  PAY_URL: fleet.baseUrl,
  PAY_API_KEY: apiKey,
  PAY_MERCHANT_ID: merchantId,
  PAY_WEBHOOK_SECRET: endpoint.secret,
};
// A copy, because Next.js refuses to run twice in a folder, and a developer may run the example.
const cwd = await makeScratch("nextjs-shop", { parent: ".local" });
addCleanup(() => rm(cwd, { recursive: true, force: true }));
await cp("examples/nextjs-shop", cwd, { recursive: true, filter: (file) => !file.endsWith(".next") });
const shop = await startExample("nextjs-shop", readProgram("nextjs-shop"), { port, env, cwd });

test("a buyer orders, pays on the checkout page with a test wallet, comes back, and sees the order paid", async () => {
  // Next.js compiles a route at its first request, which may take longer than the service waits for the answer to a webhook.
  await fetch(hooks, { method: "POST", body: "{}" });
  await fetch(`${shop.url}/orders/unknown`);
  const { page } = await openPage(shop.url);
  await page.goto(shop.url);
  await page.getByRole("button", { name: "Buy for $12.50" }).click();
  await page.waitForURL(`${fleet.baseUrl}/**`);
  await page.locator("#console summary").click();
  await page.getByRole("button", { name: "Pay with a test wallet" }).click();
  await page.waitForURL(`${shop.url}/orders/**`);
  await page.getByRole("heading", { name: "Your order is paid" }).waitFor();
  const { pathname, searchParams } = new URL(page.url());
  const order = pathname.split("/").at(-1) ?? "";
  const payment = await ask(fleet.testShop, "GET", `/v1/payments/${searchParams.get("payment_id")}`);
  expect(payment).toMatchObject({ referenceId: order, status: "succeeded" });
  const reports = () => shop.lines.filter((line) => line.startsWith("order "));
  // The output of the process may arrive after its page.
  await waitFor(() => reports().length > 0, { within: 20_000, what: "the report" });
  expect(reports()).toEqual([`order ${order} is paid`]);

  // The same form again, as after the browser's button for the page before.
  await page.goto(shop.url);
  await page.locator("input[name=order]").evaluate((input: HTMLInputElement, id) => {
    input.value = id;
  }, order);
  await page.getByRole("button", { name: "Buy for $12.50" }).click();
  await page.waitForURL(`${shop.url}/orders/${order}`);
});

test("the shop refuses webhooks that are not signed, and bodies that are too long to be one", async () => {
  const body = JSON.stringify({ id: "evt_1", type: "payment.succeeded", data: { reference_id: "order" } });
  expect((await fetch(hooks, { method: "POST", body })).status).toBe(400);
  const long = () => new Blob([Buffer.alloc(2_000_000)]).stream();
  const init = { method: "POST", body: long(), duplex: "half" } as RequestInit;
  expect((await fetch(hooks, init)).status).toBe(413);
});
