import { mkdtemp, readdir, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { runPay } from "../../support/pay-command.ts";

/** A service that answers with whatever a test sets: the project's own service refuses such names and ids. */
let answer: (url: URL) => { status?: number; body: object };
const server = createServer((request, response) => {
  const { status = 200, body } = answer(new URL(request.url ?? "/", "http://service"));
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
});
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
const home = await mkdtemp(join(tmpdir(), "pay-"));
afterAll(async () => {
  server.close();
  await rm(home, { recursive: true });
});

const PAY_URL = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const place = { cwd: home, env: { HOME: home, PAY_URL, PAY_API_KEY: "svc_test_1" } };
const id = `mrch_${"a".repeat(32)}`;
// A terminal's command to write to the clipboard, one of C1, and a line of its own.
const name = "Shop\u001b]52;c;eA==\u0007\u009b2J\nmode live";
const merchants = (own: string) => ({ data: [{ id: own, name }], nextCursor: null, totalCount: 1 });

test("a merchant's name and an error of the service cannot control the terminal", async () => {
  answer = ({ pathname }) => ({ body: pathname === "/v1/merchants" ? merchants(id) : { merchant: { id, name } } });
  const shown = await runPay(["whoami"], place);
  expect(shown).toMatchObject({ code: 0, err: "" });
  expect(shown.out).toContain("Shop\ufffd]52;c;eA==\ufffd\ufffd2J mode live)\n");
  answer = () => ({ status: 400, body: { code: "params_validation", message: name } });
  const refused = await runPay(["payments", "list"], place);
  expect(refused).toMatchObject({ code: 1, out: "" });
  expect(refused.err).toMatch(/^pay: [^\p{Cc}]+\n$/u);
  answer = () => ({ body: { event: { id: "evt_1", name } } });
  const json = (await runPay(["events", "get", "evt_1"], place)).out;
  expect(JSON.parse(json)).toEqual({ id: "evt_1", name });
  expect(json.replaceAll("\n", "")).toMatch(/^[^\p{Cc}]+$/u);
});

test("a merchant's id that could add a line to a .env file is neither printed by pay env nor stored by pay login", async () => {
  answer = () => ({ body: merchants(`${id}\nNODE_OPTIONS=--import=/tmp/x.mjs`) });
  expect(await runPay(["env"], place)).toMatchObject({ code: 1, out: "" });
  const args = ["login", "--url", PAY_URL];
  expect(await runPay(args, place, "svc_test_1\n")).toMatchObject({ code: 1, out: "" });
  expect(await readdir(home)).toEqual([]);
});

test("pay env refuses a secret that has a blank or a line feed", async () => {
  for (const PAY_WEBHOOK_SECRET of ["whsec_1 2", "whsec_1\nNODE_OPTIONS=x"]) {
    const env = { ...place.env, PAY_MERCHANT_ID: id, PAY_WEBHOOK_SECRET };
    const refused = await runPay(["env"], { ...place, env });
    expect(refused).toMatchObject({ code: 1, out: "", err: expect.stringContaining("PAY_WEBHOOK_SECRET") });
  }
});

test("pay logs reads the log again when the entry between two pages is no longer kept", async () => {
  const entry = (requestId: string) => ({
    ...{ id: "1-0", createdAt: "2026-01-01T00:00:00.000Z", method: "GET", path: "/v1/payments", status: 200 },
    ...{ errorCode: null, requestId, durationMs: 1 },
  });
  const gone = { code: "params_validation", message: "cursor: its entry is no longer kept; begin again without one" };
  let reads = 0;
  answer = ({ searchParams }) => {
    if (searchParams.get("cursor") === "first") return { status: 400, body: gone };
    if (searchParams.has("cursor")) return { body: { data: [entry("older")], nextCursor: null } };
    reads += 1;
    return { body: { data: [entry("newer")], nextCursor: reads === 1 ? "first" : "second" } };
  };
  const { code, out } = await runPay(["logs", "--json"], place);
  expect(code).toBe(0);
  expect(JSON.parse(out)).toEqual([entry("older"), entry("newer")]);
  answer = () => ({ status: 400, body: { code: "params_validation", message: "status: expected a status" } });
  expect(await runPay(["logs", "--status", "x"], place)).toMatchObject({ code: 1 });
});
