import { expect, test } from "vitest";
import { describeApi } from "../../../api/contract/openapi.ts";
import { operations } from "../../../api/routes.ts";
import { GatewayClient, PaymentClient } from "../../../client/index.ts";
import manifest from "../../../client/package.json" with { type: "json" };
import { json, startScriptedService } from "./scripted-service.ts";

/** Operations that do the same as another one, for clients of the public service. */
const aliases = ["createMerchantPayment", "getMerchantPaymentStatus"];

const { baseUrl, requests, script } = await startScriptedService();
const page = { data: [], nextCursor: null };

/** Calls every function of a client, with ids for its texts, and iterates over every list. */
async function callAll(resources: object): Promise<void> {
  for (const [name, resource] of Object.entries(resources)) {
    if (name === "webhooks") continue;
    for (const [verb, call] of Object.entries<(...args: unknown[]) => unknown>(resource)) {
      if (verb === "waitUntilFinal") continue;
      const result = call(...(verb === "csv" ? [{ from: "", until: "" }] : ["a", "b", "c"]));
      if (typeof result === "object" && result !== null && Symbol.asyncIterator in result)
        await Array.fromAsync(result as AsyncIterable<unknown>);
      else await result;
    }
  }
}

test("every operation of the OpenAPI document has a method", async () => {
  script(json(200, page));
  await callAll(new PaymentClient({ baseUrl, apiKey: "k" }));
  await callAll(new PaymentClient({ baseUrl, apiKey: "k", merchantId: "m" }));
  const gateway = new GatewayClient({ baseUrl, apiKey: "k" });
  await gateway.get("a");
  await gateway.options("a", []);
  await gateway.fetch("a", { optionId: "o", data: "" });
  await gateway.confirm("a", { optionId: "o", results: [] });
  await gateway.status("a");
  await gateway.cancel("a");
  const called = requests.map(
    ({ method, url }) => `${method} ${url.replace(/\?.*/, "").replace(/\/[abcm](?=\/|$)/g, "/{}")}`,
  );
  const { paths } = describeApi(operations, { publicUrl: "https://pay.example.com" });
  const described = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([, { operationId }]) => !aliases.includes(operationId))
      .map(([method]) => `${method.toUpperCase()} ${path.replaceAll(/\{\w+\}/g, "{}")}`),
  );
  // Statements as CSV are no JSON, and not in the document.
  const files = ["GET /v1/statement.csv", "GET /v1/merchants/{}/statement.csv"];
  expect([...new Set(called)].toSorted()).toEqual([...described, ...files].toSorted());
});

test("a list without a merchant of its own is of the client's merchant", async () => {
  script(json(200, page));
  const client = new PaymentClient({ baseUrl, apiKey: "k", merchantId: "mrch_1" });
  await Array.fromAsync(client.payments.list({ status: ["succeeded", "failed"], network: ["eip155:1", "eip155:10"] }));
  await Array.fromAsync(client.refunds.list({ merchantId: ["mrch_2"] }));
  await Array.fromAsync(client.balances.list());
  expect(requests.map(({ url }) => decodeURIComponent(url))).toEqual([
    "/v1/payments?status=succeeded&status=failed&network=eip155:1,eip155:10&merchantId=mrch_1",
    "/v1/refunds?merchantId=mrch_2",
    "/v1/merchants/mrch_1/balances",
  ]);
});

test("a list requests its pages one by one, as they are needed, from a cursor on", async () => {
  const client = new PaymentClient({ baseUrl, apiKey: "k" });
  const answers = [
    { data: [1, 2], nextCursor: "c1" },
    { data: [3], nextCursor: null },
  ].map((body) => json(200, body));
  script(...answers);
  for await (const _first of client.payments.list()) break;
  expect(requests).toHaveLength(1);
  script(...answers);
  expect(await Array.fromAsync(client.payments.list({ limit: 2, cursor: "c0" }))).toEqual([1, 2, 3]);
  expect(requests.map(({ url }) => url)).toEqual(["/v1/payments?limit=2&cursor=c0", "/v1/payments?limit=2&cursor=c1"]);
});

test("the list of events ends at the newest, and its last page has the cursor to continue from", async () => {
  const client = new PaymentClient({ baseUrl, apiKey: "k" });
  script(
    json(200, { data: [{ id: "evt_1" }], nextCursor: "c1", hasMore: true }),
    json(200, { data: [{ id: "evt_2" }], nextCursor: "c2", hasMore: false }),
  );
  const pages = await Array.fromAsync(client.events.list().pages());
  expect(pages.map(({ nextCursor }) => nextCursor)).toEqual(["c1", "c2"]);
});

test("requests name the client and the version of its package", async () => {
  script(json(200, {}));
  await new PaymentClient({ baseUrl, apiKey: "k" }).payments.get("pay_1");
  expect(requests[0]?.headers).toMatchObject({ "sdk-name": manifest.name, "sdk-version": manifest.version });
});
