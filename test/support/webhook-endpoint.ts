import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Webhook } from "standardwebhooks";
import { openDb } from "../../db/open.ts";
import { takeDueWork } from "../../payments/maintenance/take-due-rows.ts";
import { createEndpoint, type EndpointSettings } from "../../payments/webhooks/change-endpoints.ts";
import { deliverDue } from "../../payments/webhooks/deliver-events.ts";
import { writeSettledEvents } from "../../payments/webhooks/settled-events.ts";
import { addCleanup } from "./cleanups.ts";
import type { TestChain } from "./evm-chain.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "./merchant-fixture.ts";
import { testActor } from "./test-actor.ts";
import { testEncryption } from "./test-deps.ts";

/** A received webhook. */
export type ReceivedWebhook = { path: string; headers: IncomingHttpHeaders; body: string; event: WebhookEvent };
type WebhookEvent = {
  id: string;
  type: string;
  api_version: string;
  created_at: string;
  data: Record<string, unknown> & { payment_id: string; payment_state_version: number };
};

/**
 * Starts a merchant's webhook server, which records what it receives and answers 200 until `answer` changes that.
 * @param port a free one when unset
 */
export async function startWebhookEndpoint(port = 0) {
  const arrivals: ReceivedWebhook[] = [];
  let answer: (arrival: ReceivedWebhook, response: ServerResponse) => void = (_arrival, response) =>
    void response.end();
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const body = Buffer.concat(parts).toString();
      const event = JSON.parse(body) as WebhookEvent;
      const arrival = { path: request.url ?? "", headers: request.headers, body, event };
      arrivals.push(arrival);
      answer(arrival, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  addCleanup(async () => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hooks?token=s3cret`,
    arrivals,
    /** Sets how the server answers: with a status, or by a function. */
    answer(how: number | typeof answer) {
      answer = typeof how === "number" ? (_arrival, response) => void response.writeHead(how).end() : how;
    },
    types: () => arrivals.map(({ event }) => event.type),
    of: (paymentId: string) => arrivals.filter(({ event }) => event.data.payment_id === paymentId),
  };
}

/**
 * Verifies a webhook as a merchant does with the standardwebhooks library. Throws if it is not authentic and recent.
 */
export function verifyReceivedWebhook(secret: string, { headers, body }: ReceivedWebhook): unknown {
  return new Webhook(secret).verify(body, headers as Record<string, string>);
}

/** Registers an endpoint for a merchant fixture's account and mode. */
export async function registerEndpoint(
  fixture: Pick<MerchantFixture, "accountId" | "mode" | "deps">,
  url: string,
  settings: Partial<EndpointSettings> = {},
): Promise<{ id: string; secret: string }> {
  const { accountId, mode } = fixture;
  const deps = { ...fixture.deps, validateUrl: () => undefined };
  const { endpoint, secret } = unwrap(
    await createEndpoint(deps, { actor: testActor, accountId, mode, ...settings, url }),
  );
  return { id: endpoint.id, secret };
}

/** Registers an endpoint for a merchant's account and mode, in the database of real processes. */
export async function registerEndpointIn(
  databaseUrl: string,
  merchantId: string,
  url: string,
): Promise<{ secret: string }> {
  const db = openDb(databaseUrl, { max: 1 });
  try {
    const row = await db.selectFrom("merchant").selectAll().where("id", "=", merchantId).executeTakeFirstOrThrow();
    const deps = { db, ...testEncryption(), now: () => new Date(), validateUrl: () => undefined };
    return unwrap(await createEndpoint(deps, { actor: testActor, accountId: row.account_id, mode: row.mode, url }));
  } finally {
    await db.destroy();
  }
}

/** Delivers everything for which the sweep enqueues jobs, as workers do. Returns the number of endpoints. */
export async function deliverAll({ deps }: Pick<MerchantFixture, "deps">): Promise<number> {
  while ((await writeSettledEvents(deps)) > 0);
  const endpoints = await takeDueWork(deps, "endpoints");
  const signal = new AbortController().signal;
  await Promise.all(endpoints.map(({ id }) => deliverDue(deps, { endpointId: id, signal })));
  return endpoints.length;
}

/** Returns a merchant fixture whose account receives its events at a new endpoint. */
export async function makeWebhookFixture(chain: TestChain, options: Parameters<typeof makeMerchantFixture>[1] = {}) {
  const fixture = await makeMerchantFixture(chain, options);
  const endpoint = await startWebhookEndpoint();
  const owner = { accountId: fixture.accountId, mode: fixture.mode };
  const deliveries = () =>
    fixture.db
      .selectFrom("webhook_delivery as d")
      .innerJoin("webhook_event as v", "v.id", "d.event_id")
      .selectAll("d")
      .select(["v.type", "v.payment_id", "v.refund_id"])
      .orderBy("v.sequence")
      .execute();
  const registered = await registerEndpoint(fixture, endpoint.url);
  return {
    fixture,
    endpoint,
    owner,
    deliveries,
    ...registered,
    query: { endpointId: registered.id, owner, actor: testActor },
    deliver: () => deliverAll(fixture),
  };
}
