import { request } from "node:http";
import fc from "fast-check";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { codePoint } from "../../../support/code-points.ts";
import { checkAnswer, contract, findOperation } from "../../../support/published-contract.ts";
import { makeMerchant, startApi } from "../start-api.ts";
import { makeValidCalls, type ValidCall } from "./valid-calls.ts";

/**
 * Malformed variants of calls that would succeed. None may end in an internal error or hang, and a refused call must
 * not have written anything.
 */
const api = await startApi();
const calls = await makeValidCalls(api, await makeMerchant(api));
const RUNS = 60;
const HANG_MS = 10_000;
const seed = Number(process.env["FC_SEED"] ?? Date.now() % 2_147_483_647);

const oddValue = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom<unknown>(
      null,
      "",
      " ",
      0,
      -1,
      1.5,
      true,
      [],
      {},
      [null],
      "\0",
      "\ud800",
      "__proto__",
      "constructor",
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom<unknown>(
      1e308,
      -0,
      "9".repeat(400),
      "x".repeat(5_000),
      "💶".repeat(50),
      "'; drop table payment; --",
    ),
  },
  { weight: 2, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
  { weight: 1, arbitrary: fc.string({ unit: codePoint, maxLength: 40 }) },
);
/** Where in a value to put something odd: `at` counts through all members and elements. */
type Mutation = { at: number; how: "replace" | "drop" | "add" | "wrap"; what: unknown };
const mutation: fc.Arbitrary<Mutation> = fc.record({
  at: fc.nat(40),
  how: fc.constantFrom("replace", "replace", "drop", "add", "wrap"),
  what: oddValue,
});
const text = fc.oneof(
  fc.string({ maxLength: 30 }),
  fc.constantFrom("%", "%00", "%2F..%2F", "..", "%ff", "a b", "?", "#", "\ud800"),
);
/** Nested deeper than a stack, in a body that is not too large. */
const nested = `${"[".repeat(6_000)}${"]".repeat(6_000)}`;
/** Cursors in our form, with invalid times. */
const cursors = ["2026-02-30T00:00:00.000Z", "0000-01-01T00:00:00.000Z", "9".repeat(78)].map((at) =>
  Buffer.from(JSON.stringify([at, "pay_1"])).toString("base64url"),
);
const malformedCall = fc.record({
  body: fc.option(fc.array(mutation, { minLength: 1, maxLength: 3 })),
  raw: fc.option(
    fc.constantFrom(
      "{",
      "[]",
      "null",
      '"x"',
      "{}{}",
      '{"a":1e999}',
      "\u0000",
      `${"[".repeat(2_000)}`,
      `{"x":${nested}}`,
      `{"results":${nested},"collectedData":${nested},"amount":${nested},"checkout":${nested},"settlements":${nested}}`,
      '{"__proto__":{"x":1}}',
      "",
    ),
    { freq: 8 },
  ),
  type: fc.option(
    fc.constantFrom("text/plain", "application/json; charset=utf-16", "multipart/form-data", "x", "application/json;"),
    { freq: 8 },
  ),
  path: fc.option(fc.record({ at: fc.nat(6), with: text }), { freq: 4 }),
  query: fc.option(
    fc.array(
      fc.tuple(
        fc.constantFrom(
          "limit",
          "cursor",
          "status",
          "maxPollMs",
          "startTs",
          "sortBy",
          "network",
          "x",
          "includePaymentInfo",
          "merchantId",
        ),
        fc.oneof({ weight: 4, arbitrary: text }, { weight: 1, arbitrary: fc.constantFrom(...cursors) }),
      ),
      { maxLength: 4 },
    ),
    { freq: 3 },
  ),
  header: fc.option(
    fc.tuple(
      fc.constantFrom(
        "api-key",
        "merchant-id",
        "idempotency-key",
        "svc-version",
        "authorization",
        "app-id",
        "client-id",
        "x-request-id",
        "accept",
      ),
      fc.oneof(
        fc.constantFrom("", " ", "é", "a,b", "Bearer", "Bearer x y", "\t", "x".repeat(3_000)),
        fc.string({ maxLength: 20 }),
      ),
    ),
    { freq: 3 },
  ),
});
type MalformedCall = typeof malformedCall extends fc.Arbitrary<infer T> ? T : never;

function applyMutation(value: unknown, { at, how, what }: Mutation): unknown {
  const copy = structuredClone(value);
  const places: { holder: Record<string, unknown>; name: string }[] = [];
  const walk = (node: unknown): void => {
    if (typeof node !== "object" || node === null) return;
    for (const name of Object.keys(node)) {
      places.push({ holder: node as Record<string, unknown>, name });
      walk((node as Record<string, unknown>)[name]);
    }
  };
  walk(copy);
  const place = places[at % Math.max(1, places.length)];
  if (!place || how === "wrap") return how === "wrap" ? [copy] : what;
  const { holder, name } = place;
  if (how === "drop") delete holder[name];
  else if (how === "add") holder[`${name}2`] = what;
  else holder[name] = what;
  return copy;
}

/**
 * Sends a call with node:http, because fetch would correct half of what is wrong. Returns undefined when it cannot be
 * written as HTTP.
 */
function send(
  call: ValidCall,
  how: MalformedCall,
): Promise<{ status: number; text: string; path: string } | undefined> {
  const [base = "", query = ""] = call.path.split("?");
  const parts = base.split("/");
  if (how.path) parts[2 + (how.path.at % (parts.length - 2))] = how.path.with;
  const pairs = (how.query ?? []).map(([name, value]) => `${name}=${value}`).join("&");
  const path = `${parts.join("/")}${query || pairs ? `?${[query, pairs].filter(Boolean).join("&")}` : ""}`;
  const changed = how.body && call.body !== undefined ? how.body.reduce(applyMutation, call.body) : call.body;
  const body = how.raw ?? (call.body === undefined ? undefined : JSON.stringify(changed));
  const headers: Record<string, string> = { ...call.headers };
  if (body !== undefined) {
    headers["content-type"] = how.type ?? "application/json";
    headers["content-length"] = String(Buffer.byteLength(body));
  }
  if (how.header) headers[how.header[0]] = how.header[1];
  const { hostname, port } = new URL(api.url);
  return new Promise((resolve, reject) => {
    let outgoing: ReturnType<typeof request>;
    try {
      outgoing = request({ hostname, port, method: call.method, path, headers, timeout: HANG_MS });
    } catch {
      return resolve(undefined);
    }
    outgoing.on("timeout", () => reject(new Error("it hangs")));
    outgoing.on("error", reject);
    outgoing.on("response", async (response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk as Buffer);
      resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString("utf8"), path });
    });
    outgoing.end(body);
  });
}

/** Returns how many rows of all tables have been inserted, updated or deleted by transactions that are committed. */
async function countWrites(): Promise<number> {
  const { rows } = await sql<{ count: number }>`select coalesce(max(number), 0) as count from written_row`.execute(
    api.db,
  );
  return rows[0]?.count ?? Number.NaN;
}

/** Makes every table record its written rows, because a test that reads the tables takes longer with each call. */
async function recordWrites(): Promise<void> {
  const { rows: tables } = await sql<{ name: string }>`
    select tablename as name from pg_tables where schemaname = 'public' and tablename not like 'kysely%'`.execute(
    api.db,
  );
  await sql`create table written_row (number bigint generated always as identity primary key)`.execute(api.db);
  await sql`create function record_write() returns trigger language plpgsql security definer as $$
    begin insert into public.written_row default values; return null; end $$`.execute(api.db);
  for (const { name } of tables)
    await sql`create trigger record_write after insert or update or delete on ${sql.table(name)}
      for each row execute function record_write()`.execute(api.db);
}
await recordWrites();

const names = Object.values(contract.paths).flatMap((methods) =>
  Object.values(methods).map(({ operationId }) => operationId),
);
test.each(names)(
  "a malformed call of %s is refused by name or succeeds, and none hangs, fails internally or is half done",
  async (name) => {
    let unused: ValidCall | undefined;
    await fc.assert(
      fc.asyncProperty(malformedCall, async (how) => {
        const call = unused ?? (await calls[name]?.());
        if (!call) throw new Error(`there is no valid call of ${name}`);
        unused = call;
        const before = await countWrites();
        const answer = await send(call, how);
        if (!answer) return;
        const isUnwritten = (await countWrites()) === before;
        // A call that has written nothing would still succeed.
        if (!isUnwritten) unused = undefined;
        if (answer.status >= 500)
          throw new Error(`${call.method} ${answer.path} answered ${answer.status}: ${answer.text}`);
        if (answer.status < 400) return;
        const body = JSON.parse(answer.text) as { code: string; message: string };
        // A changed path may belong to another operation, or to none.
        if (answer.status === 404 && !findOperation(call.method, answer.path)) expect(body).toHaveProperty("code");
        else if (answer.status !== 405 && answer.status !== 431)
          checkAnswer(call.method, answer.path, { status: answer.status, body });
        expect(body.message).not.toMatch(/zod|undefined|\[object|Error:|at .*\.ts/);
        expect(isUnwritten, "a refused call writes nothing").toBe(true);
      }),
      { numRuns: RUNS, seed, endOnFailure: true },
    );
  },
);
