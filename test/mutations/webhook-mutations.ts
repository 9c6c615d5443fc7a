import type { MutationGroup } from "./mutation.ts";

const overHttp = ["test/integration/api/merchant/manage-webhooks.test.ts"];
const several = ["test/integration/payments/webhooks/several-endpoints.test.ts"];

/** Mutations of webhook endpoints and of the list of events. */
export const webhookMutations: readonly MutationGroup[] = [
  {
    file: "db/queries/webhook-deliveries.ts",
    tests: ["test/integration/db/forged-states.test.ts"],
    mutations: [
      {
        name: "an event is sent to an endpoint of another account",
        find: " and v.account_id = e.account_id and v.mode = e.mode",
        replace: " and v.mode = e.mode",
      },
      {
        name: "an event of live mode is sent to an endpoint of test mode",
        find: " and v.account_id = e.account_id and v.mode = e.mode",
        replace: " and v.account_id = e.account_id",
      },
    ],
  },
  {
    file: "db/queries/webhook-deliveries.ts",
    tests: ["test/integration/payments/webhooks/deliver.test.ts"],
    mutations: [
      {
        name: "each replay of an event leaves one more row",
        find: "KEPT_ATTEMPTS - 1}",
        replace: "1_000 * KEPT_ATTEMPTS}",
      },
    ],
  },
  {
    file: "payments/webhooks/lock-endpoint.ts",
    tests: overHttp,
    mutations: [
      {
        name: "a key changes an endpoint any number of times a day",
        find: 'tests: what === "test", limit })) < limit)',
        replace: 'tests: what === "test", limit })) <= limit)',
      },
      {
        name: "a key changes an endpoint that an operator has registered",
        find: 'if (row.by_operator && args.actor.kind === "key")',
        replace: "if (row.by_operator && !row.by_operator)",
      },
    ],
  },
  {
    file: "payments/webhooks/replay-events.ts",
    tests: ["test/integration/payments/webhooks/endpoint-races.test.ts"],
    mutations: [
      {
        name: "a replay of a period misses events that are being written",
        find: "let open = new Set(await listEventWriters(db));",
        replace: "let open = new Set<string>();",
      },
    ],
  },
  {
    file: "payments/webhooks/change-endpoints.ts",
    tests: overHttp,
    mutations: [
      {
        name: "an endpoint may be in a private network",
        find: "const error = validateUrl(url);",
        replace: 'const error = validateUrl("https://shop.example.test/");',
      },
    ],
  },
  {
    file: "db/queries/webhook-endpoints.ts",
    tests: overHttp,
    mutations: [
      {
        name: "an account reads and changes endpoints of others",
        find: 'if (owner) query = query.where("account_id", "=", owner.accountId).where("mode", "=", owner.mode);',
        replace: "",
      },
    ],
  },
  {
    file: "db/queries/webhook-events.ts",
    tests: ["test/integration/payments/webhooks/list-events.test.ts"],
    mutations: [
      {
        name: "events are listed in the order of their insertion, also those that commit later",
        find: "select id, row_number() over (order by sequence) as place from unnumbered",
        replace: "select id, sequence - 1 as place from unnumbered",
      },
    ],
  },
  {
    file: "payments/webhooks/disable-failing.ts",
    tests: several,
    mutations: [
      {
        name: "an endpoint that fails for days stays enabled",
        find: "if (hasFailed && at.getTime() - failingSince.getTime() >= FAILING_MS) await disable(deps, id);",
        replace: "",
      },
      {
        name: "an endpoint that accepts events is disabled",
        find: "if (failingSince) await clearFailure(deps.db, id);",
        replace: "",
      },
    ],
  },
  {
    file: "payments/webhooks/deliver-events.ts",
    tests: several,
    mutations: [
      {
        name: "a delivery that fails with an internal error is not counted",
        find: '  deps.metrics.webhookDeliveries.inc({ outcome: "internal" });\n',
        replace: "",
        tests: ["test/integration/payments/maintenance/failing-items.test.ts"],
      },
      {
        name: "the count of a delivery's outcome begins with the first delivery",
        find: "    metrics.webhookDeliveries.inc({ outcome }, 0);",
        replace: "    void outcome;",
        tests: ["test/integration/workers/handlers.test.ts"],
      },
      {
        name: "an endpoint that hangs keeps a job of the others",
        find: "const changesQueue = isSlow && !wasSlow;",
        replace: "const changesQueue = isSlow && wasSlow;",
      },
      {
        name: "an endpoint that has responded in time is slow when our own database stalls",
        find: "for (const { id } of over) sending.delete(id);",
        replace: "setImmediate(() => over.forEach(({ id }) => sending.delete(id)));",
      },
      {
        name: "a stored response holds an API key",
        find: "cleanText(scrubText(text), KEPT_CHARACTERS)",
        replace: "cleanText(text.slice(0, scrubText.length * text.length), KEPT_CHARACTERS)",
      },
    ],
  },
  {
    file: "runtime/safe-fetch.ts",
    tests: ["test/unit/runtime/safe-fetch.test.ts"],
    mutations: [
      {
        name: "names that callers choose are looked up on the threads that all connections share",
        find: "(allowPrivate ? lookupName : createNameResolver(nameServers))",
        replace: "(nameServers ? lookupName : lookupName)",
      },
      {
        name: "a name with a public address may have private ones",
        find: "!addresses.every(isPublic)",
        replace: "!addresses.some(isPublic)",
      },
    ],
  },
  {
    file: "runtime/name-resolver.ts",
    tests: ["test/unit/runtime/safe-fetch.test.ts"],
    mutations: [
      {
        name: "the private IPv6 address of a name is not found",
        find: "[resolver.resolve4(name), resolver.resolve6(name)]",
        replace: "[resolver.resolve4(name)]",
      },
      {
        name: "each request asks the name servers, although an answer is awaited",
        find: "running.get(name) ?? resolveName(",
        replace: "resolveName(",
      },
    ],
  },
];
