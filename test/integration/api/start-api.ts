import { randomBytes } from "node:crypto";
import type { AddressInfo } from "node:net";
import { sql } from "kysely";
import { Registry } from "prom-client";
import type { ApiDeps } from "../../../api/api-deps.ts";
import { createLimits, type LimitSettings } from "../../../api/http/rate-limits.ts";
import { createRequestLog } from "../../../api/http/request-log.ts";
import { watchPayments } from "../../../api/polling/watch-payments.ts";
import { buildServer } from "../../../api/server.ts";
import { openChains } from "../../../chains/open-chains.ts";
import { moveRows } from "../../../db/moves.ts";
import { isReachable, openDb } from "../../../db/open.ts";
import type { NextOf, StateOf } from "../../../db/states.ts";
import type { Mode, Pool } from "../../../db/tables.ts";
import { freePort } from "../../../local/free-ports.ts";
import { createAssetUnits } from "../../../payments/asset-units.ts";
import { createListLimits } from "../../../payments/lifecycle/list-limits.ts";
import { createAccount } from "../../../payments/merchants/accounts.ts";
import { createApiKey } from "../../../payments/merchants/api-keys.ts";
import { createAppId } from "../../../payments/merchants/app-ids.ts";
import { createCredentialCache } from "../../../payments/merchants/credential-cache.ts";
import { addDestinations } from "../../../payments/merchants/destinations.ts";
import { createKeyUses } from "../../../payments/merchants/key-uses.ts";
import { createLogoJobs } from "../../../payments/merchants/logo-jobs.ts";
import { createMerchant } from "../../../payments/merchants/merchants.ts";
import { scopes as allScopes, type Scope } from "../../../payments/merchants/scopes.ts";
import { openJobQueues } from "../../../queues/enqueue.ts";
import { createPaymentChangePublisher, paymentChanges } from "../../../queues/payment-changes.ts";
import { openRedis, openSubscriber } from "../../../queues/redis-connections.ts";
import { createLog } from "../../../runtime/log.ts";
import { readLogFields, withLogFields } from "../../../runtime/log-context.ts";
import { createMetrics } from "../../../runtime/metrics.ts";
import { type Networks, parseNetworks } from "../../../runtime/networks/read-networks.ts";
import { createSafeFetch, type SafeFetch, validateUrl } from "../../../runtime/safe-fetch.ts";
import { addCleanup } from "../../support/cleanups.ts";
import { roleUrl } from "../../support/database-roles.ts";
import { unwrap } from "../../support/merchant-fixture.ts";
import { checkAnswer } from "../../support/published-contract.ts";
import { redisPrefix } from "../../support/redis-prefix.ts";
import { testActor } from "../../support/test-actor.ts";
import { createDatabase } from "../../support/test-database.ts";
import { testEncryption } from "../../support/test-deps.ts";

/** CAIP-19 ids of the assets of `networksDocument`; merchants are paid in the first unless a test says otherwise. */
export const secondAsset = `eip155:31337/erc20:0x${"a2".repeat(20)}`;
export const asset = `eip155:31337/erc20:0x${"a1".repeat(20)}`;
export const destination = `eip155:31337:0x${"d1".repeat(20)}`;
export const publicUrl = "https://pay.example.test";

const address = `0x${"b1".repeat(20)}`;

/** One for all apis of a test, so that they count the same minute. */
const loadedAt = new Date();

const token = {
  decimals: 6,
  kind: "eip3009",
  peg: "iso4217/USD",
  domain: { name: "USD Coin", version: "2" },
};

/** A network without endpoints: test mode calls no chain, and any call must fail. */
export const networksDocument = {
  deployment: "test",
  chains: [
    {
      chain: "eip155:31337",
      name: "Local",
      rpc: [{ name: "unreachable", url: "http://127.0.0.1:1" }],
      blockMs: 1_000,
      pollMs: 100,
      finality: { blocks: 1 },
      multicall: address,
      fees: { maxFeePerGas: "1000000000", priorityFeePerGas: "1" },
      treasury: { address, key: { env: "UNUSED_KEY" } },
      lanes: [{ address, key: { env: "UNUSED_KEY" } }],
      assets: [
        { ...token, asset, symbol: "USDC", name: "USD Coin" },
        { ...token, asset: secondAsset, symbol: "USDX", name: "Second Dollar" },
      ],
    },
  ],
};

export type StartOptions = {
  /** A separate Redis, which a test can stop; the shared one when unset. */
  redisUrl?: string;
  /** A database that another api serves too; a new one when unset. */
  databaseUrl?: string;
  /** Returns the URL by which the api connects to a database, such as a relay's; the database's own when unset. */
  relayDatabase?: (url: string) => Promise<string>;
  /** The replica that serves lists and statements; none when unset. */
  replica?: (primary: Pool) => ApiDeps["replica"];
  /** The URL under which buyers reach the api, such as a proxy's. */
  publicUrl?: string;
  /** Requests per minute; unlimited when unset. */
  limits?: Partial<LimitSettings>;
  /** The clock of the rate limits; when unset it stands still, so that no minute ends during a test. */
  limitsNow?: () => Date;
  trustedProxies?: string[];
  /** A prefix that shares its counters with another api. */
  redisPrefix?: string;
  /** Serves under the address that it listens on, for browsers; otherwise under `publicUrl`. */
  ownUrl?: boolean;
  /** The URLs of the terms and the privacy policy; none when unset. */
  legal?: ApiDeps["legal"];
  /** The networks of a real chain; `networksDocument` when unset. */
  networks?: Networks;
  /** The budget of the endpoint; none when unset. */
  callsPerMinute?: number;
  /** Price feeds of the networks file; none when unset. */
  prices?: readonly object[];
  /** How servers that callers name are fetched; any address is allowed when unset. */
  safeFetch?: SafeFetch;
  /** How long clients may take and be silent; the api's own limits when unset. */
  timeLimits?: Parameters<typeof buildServer>[1];
  /** Webhook endpoints may be on this machine. */
  allowsPrivateHooks?: boolean;
};

/** Starts the api as main.ts builds it, on a free port, with a new database and Redis prefix. */
export async function startApi(options: StartOptions = {}) {
  const { url: sharedRedis, prefix: ownPrefix } = redisPrefix();
  const namespace = { url: sharedRedis, prefix: options.redisPrefix ?? ownPrefix };
  const redisUrl = options.redisUrl ?? namespace.url;
  const databaseUrl = options.databaseUrl ?? (await createDatabase());
  const lines: string[] = [];
  const log = createLog(
    { level: "debug", role: "api", context: readLogFields },
    { write: (line) => void lines.push(line) },
  );
  const registry = new Registry();
  const metrics = createMetrics(registry, "api");
  const statements = { count: 0 };
  const readinessChecks = { count: 0 };
  // The test's own connection; the api connects in its role.
  const db = openDb(databaseUrl, { max: 2 });
  const apiUrl = await roleUrl(databaseUrl, "api");
  const served = openDb((await options.relayDatabase?.(apiUrl)) ?? apiUrl, {
    max: 5,
    onStatement: () => void statements.count++,
  });
  const redis = openRedis(redisUrl, () => undefined);
  const subscriber = openSubscriber(redisUrl, paymentChanges(namespace.prefix), () => undefined);
  const { enqueue, close } = openJobQueues({
    redis,
    prefix: namespace.prefix,
    log,
    metrics,
    requestId: () => readLogFields().requestId,
  });
  const publishPaymentChanges = createPaymentChangePublisher(redis, namespace.prefix);
  const { callsPerMinute, prices = [] } = options;
  const entries = networksDocument.chains.map((entry) => {
    return { ...entry, rpc: entry.rpc.map((one) => ({ ...one, callsPerMinute })) };
  });
  const networks = options.networks ?? parseNetworks({ ...networksDocument, chains: entries, prices });
  const chains = openChains(networks, metrics);
  const adapters = {
    ...testEncryption(),
    safeFetch: options.safeFetch ?? createSafeFetch({ allowPrivate: true }),
  };
  const screened = new Set<string>();
  const screeningList = (_chain: string, accounts: readonly string[]) => new Set(accounts).intersection(screened);
  const notifiers = { enqueue, publishPaymentChanges, screeningList, log, metrics };
  const deps = {
    db,
    chains,
    networks,
    assetUnits: createAssetUnits(served),
    ...notifiers,
    ...adapters,
    now: () => new Date(),
  };
  const { prefix } = namespace;
  const watched = watchPayments({ ...deps, db: served, subscriber, prefix });
  const { waiters, statuses } = watched;
  const limits = createLimits(
    { redis, prefix: namespace.prefix, metrics, now: options.limitsNow ?? (() => loadedAt) },
    { perAddress: 0, perKey: 0, perPayment: 0, ...options.limits },
  );
  // A test stores the uses itself.
  const keyUses = createKeyUses(deps);
  const credentials = createCredentialCache();
  const inContext = withLogFields;
  const port = options.ownUrl ? await freePort() : 0;
  await watched.subscription.subscribed;
  const apiDeps = {
    ...deps,
    db: served,
    replica: options.replica?.(served),
    waiters,
    statuses,
    limits,
    requestLog: createRequestLog({ redis, prefix, now: deps.now }),
    keyUses,
    logoJobs: createLogoJobs(),
    runList: createListLimits(10),
    validateUrl: (text: string) => validateUrl({ allowPrivate: options.allowsPrivateHooks ?? false }, text),
    credentials,
    readiness: {
      async ready() {
        readinessChecks.count += 1;
        return { ok: await isReachable(served), checks: { postgres: true } };
      },
    },
    collectedDataMs: 86_400_000,
    trustedProxies: options.trustedProxies ?? [],
    inContext,
    legal: options.legal ?? { termsUrl: undefined, privacyUrl: undefined },
    appSchemes: new Set(["mywallet", "myapp"]),
    publicUrl: options.publicUrl ?? (options.ownUrl ? `http://127.0.0.1:${port}` : publicUrl),
  };
  const app = buildServer(apiDeps, options.timeLimits);
  await app.listen({ host: "127.0.0.1", port });
  addCleanup(async () => {
    await app.close();
    watched.close();
    subscriber.disconnect();
    await close();
    redis.disconnect();
    await served.destroy();
    await db.destroy();
  });
  const url = `http://127.0.0.1:${(app.server.address() as AddressInfo).port}`;
  return {
    url,
    /** Returns the number of open sockets. */
    countConnections: () =>
      new Promise<number>((resolve) => void app.server.getConnections((_error, count) => resolve(count))),
    prefix: namespace.prefix,
    databaseUrl,
    app,
    deps,
    db,
    keyUses,
    credentials,
    metrics,
    registry,
    publishPaymentChanges,
    subscriber,
    waiters,
    lines,
    statements,
    /** The checks for /readyz, each of which is one statement. */
    readinessChecks,
    screened,
    ...createClient(url),
  };
}

export type Api = Awaited<ReturnType<typeof startApi>>;
export type Answer = { status: number; headers: Headers; body: Record<string, unknown> };

type RequestOptions = { headers?: Record<string, string>; json?: unknown; text?: string; signal?: AbortSignal };

/** Sends requests over HTTP. `json` is serialized; `text` is sent unchanged. */
function createClient(url: string) {
  async function ask(method: string, path: string, asked: RequestOptions = {}): Promise<Answer> {
    const sent = asked.json === undefined ? asked.text : JSON.stringify(asked.json);
    const type = asked.json === undefined ? {} : { "content-type": "application/json" };
    const response = await fetch(`${url}${path}`, {
      method,
      redirect: "manual",
      headers: { ...type, ...asked.headers },
      ...(sent === undefined ? {} : { body: sent }),
      ...(asked.signal ? { signal: asked.signal } : {}),
    });
    const responseText = await response.text();
    const body = responseText === "" ? {} : (JSON.parse(responseText) as Record<string, unknown>);
    // A 405 concerns the path and belongs to no operation, and so does a browser's preflight.
    if (response.status !== 405 && method !== "OPTIONS") checkAnswer(method, path, { status: response.status, body });
    return { status: response.status, headers: response.headers, body };
  }
  return {
    get: (path: string, headers: Record<string, string> = {}, signal?: AbortSignal) =>
      ask("GET", path, { headers, ...(signal ? { signal } : {}) }),
    patch: (path: string, headers: Record<string, string>, json: unknown) => ask("PATCH", path, { headers, json }),
    put: (path: string, headers: Record<string, string>, json: unknown) => ask("PUT", path, { headers, json }),
    delete: (path: string, headers: Record<string, string>) => ask("DELETE", path, { headers }),
    post: (path: string, headers: Record<string, string>, json: unknown) => ask("POST", path, { headers, json }),
    ask,
  };
}

/** Creates an API key as an operator does. */
export async function makeKey(
  api: Pick<Api, "deps">,
  args: Omit<Parameters<typeof createApiKey>[1], "actor">,
): Promise<{ id: string; key: string }> {
  const { apiKey, key } = unwrap(await createApiKey(api.deps, { ...args, actor: testActor }));
  return { id: apiKey.id, key };
}

/** Creates an account with a merchant that settles the test asset; `headers` are what its backend sends. */
export async function makeMerchant(
  api: Api,
  { mode = "test" as Mode, scopes = allScopes as readonly Scope[], destinationWaitingHours = 0 } = {},
) {
  const { id: accountId } = await createAccount(api.deps, { actor: testActor, name: "Shop", destinationWaitingHours });
  const { key } = await makeKey(api, { accountId, mode, scopes });
  const { id: appId } = unwrap(await createAppId(api.deps, { actor: testActor, accountId, mode }));
  const merchant = await createMerchant(api.deps, {
    actor: testActor,
    accountId,
    mode,
    name: "Shop",
    email: "shop@example.test",
  });
  await addDestinations(api.deps, {
    actor: testActor,
    accountId,
    mode,
    merchantId: merchant.id,
    settlements: [{ asset, destination }],
  });
  const wallet = { "app-id": appId, "client-id": randomBytes(8).toString("hex") };
  return { accountId, merchantId: merchant.id, key, wallet, headers: { "api-key": key, "merchant-id": merchant.id } };
}

export type TestMerchant = Awaited<ReturnType<typeof makeMerchant>>;

/** Creates a payment over HTTP and returns its id. */
export async function makePayment(api: Api, merchant: TestMerchant, more: object = {}): Promise<string> {
  const answer = await api.post("/v1/payments", merchant.headers, {
    amount: { unit: "iso4217/USD", value: "500" },
    ...more,
  });
  if (answer.status !== 201) throw new Error(`no payment: ${JSON.stringify(answer.body)}`);
  return answer.body["paymentId"] as string;
}

/** Moves a payment as a worker does. */
export async function movePayment<S extends StateOf<"payment">>(
  api: Api,
  id: string,
  from: S,
  to: NextOf<"payment", S>,
) {
  await movePaymentSilently(api, id, from, to);
  await api.publishPaymentChanges([id]);
}

/** Moves a payment without announcing it, as a worker that dies or loses Redis. */
export async function movePaymentSilently<S extends StateOf<"payment">>(
  api: Api,
  id: string,
  from: S,
  to: NextOf<"payment", S>,
) {
  const paid = { tx_id: `test:${id}`, asset, paid_asset: asset, paid_amount: 5_000_000n };
  const set = to === "succeeded" ? paid : {};
  const moved = await moveRows(api.db, "payment", { ids: [id], from, to, at: new Date(), set });
  if (moved.length !== 1) throw new Error(`${id} did not move from ${from} to ${to}`);
}

/** Counts the rows that a refused request must not insert. */
export async function countRows(api: Api): Promise<object> {
  const { rows } =
    await sql<object>`select (select count(*) from payment) as payments, (select count(*) from payment_option) as options,
    (select count(*) from attempt) as attempts, (select count(*) from event) as events`.execute(api.db);
  return rows[0] ?? {};
}

/** Returns how many long polls this api holds now. */
export async function countHeld(api: Api): Promise<number> {
  return (await api.metrics.longPolls.get()).values[0]?.value ?? 0;
}
