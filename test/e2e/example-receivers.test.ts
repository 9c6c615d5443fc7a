import { execFile } from "node:child_process";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { Webhook } from "standardwebhooks";
import { describe, expect, test } from "vitest";
import { ask } from "../../local/buyer-client.ts";
import { makeScratch } from "../../local/scratch-folder.ts";
import { startChain } from "../support/evm-chain.ts";
import { findGo, findPython, type Language } from "../support/example-languages.ts";
import { startFleet } from "../support/fleet.ts";
import { readProgram, reservePort, startExample } from "../support/run-example.ts";
import { waitFor } from "../support/wait-for.ts";

const run = promisify(execFile);
const fleet = await startFleet({ chain: await startChain(), workers: 1 });

/** How the tests of an example are run, and by which line it is started once it is compiled. */
type Receiver = { name: string; find(): Promise<Language> | Language; tests: string[]; compile?: string[] };

const program = join(await makeScratch("go-receiver"), "receiver");
const receivers: Receiver[] = [
  { name: "webhooks-python", find: findPython, tests: ["-m", "unittest"] },
  { name: "webhooks-go", find: findGo, tests: ["test", "./..."], compile: ["build", "-o", program, "."] },
];

describe.each(receivers)("$name", ({ name, find, tests, compile }) => {
  const cwd = resolve("examples", name);

  /** Starts the example with its environment. */
  async function start(env: Record<string, string>, port: number) {
    const { program: language, env: more } = await find();
    if (compile) await run(language, compile, { cwd, env: { ...process.env, ...more } });
    const line = compile ? `exec ${program}` : readProgram(name);
    return await startExample(name, line, { port, env: { ...more, ...env }, paths: [dirname(language)] });
  }

  test("passes the cases of Standard Webhooks' own libraries", async () => {
    const { program: language, env } = await find();
    const { stdout, stderr } = await run(language, tests, { cwd, env: { ...process.env, ...env } });
    expect(stdout + stderr).toMatch(/^(OK|ok) ?/m);
  });

  test("reports a paid payment once, whether the service or anyone else delivers the event again", async () => {
    const { port, hooks } = await reservePort();
    const { secret } = (await ask(fleet.testShop, "POST", "/v1/webhook-endpoints", { url: hooks })) as {
      secret: string;
    };
    const { lines } = await start({ PAY_WEBHOOK_SECRET: secret, PAY_API_KEY: fleet.testShop.caller.apiKey }, port);
    const body = { referenceId: `order-${name}`, amount: { unit: "iso4217/USD", value: "1250" } };
    const { id } = (await ask(fleet.testShop, "POST", "/v1/payments", body)) as { id: string };
    await ask(fleet.testShop, "POST", `/v1/payments/${id}/simulate`, { status: "succeeded" });
    const line = `payment ${id} of order order-${name} is paid`;
    await waitFor(() => lines.includes(line), { within: 20_000, what: "the paid order" });

    const send = async (headers: Record<string, string>, text: string, path = hooks) =>
      (await fetch(path, { method: "POST", headers, body: text })).status;
    const write = (data: object, eventId = "evt_other") =>
      JSON.stringify({ id: eventId, type: "payment.succeeded", data: { live: false, reference_id: null, ...data } });
    const sign = (text: string, { key = secret, at = new Date() } = {}) => {
      const { id: eventId } = JSON.parse(text) as { id: string };
      return {
        "webhook-id": eventId,
        "webhook-timestamp": String(Math.floor(at.getTime() / 1_000)),
        "webhook-signature": new Webhook(key).sign(eventId, at, text),
      };
    };
    const text = write({ payment_id: "pay_other" });
    const old = new Date(Date.now() - 6 * 60_000);
    const otherKey = `whsec_${Buffer.alloc(24, 7).toString("base64")}`;
    expect(await send(sign(text), `${text} `)).toBe(400);
    expect(await send(sign(text, { key: otherKey }), text)).toBe(400);
    expect(await send(sign(text, { at: old }), text)).toBe(400);
    expect(await send({}, text)).toBe(400);
    expect(await send(sign(text), text, new URL("/", hooks).href)).toBe(404);
    const otherMode = write({ payment_id: "pay_live", live: true }, "evt_live");
    expect(await send(sign(otherMode), otherMode)).toBe(204);
    expect(lines.filter((one) => one.endsWith("is paid"))).toEqual([line]);
    expect(await send(sign(text), text)).toBe(204);
    expect(await send(sign(text), text)).toBe(204);
    const renamed = write({ payment_id: id }, "evt_renamed");
    expect(await send(sign(renamed), renamed)).toBe(204);
    const last = "payment pay_other of order (none) is paid";
    await waitFor(() => lines.includes(last), { within: 20_000 });
    expect(lines.filter((one) => one.endsWith("is paid"))).toEqual([line, last]);
  });

  test.each(["", "whsec_", "whsec_c2hvcnQ="])(
    "does not start with the secret '%s', which anyone could guess",
    async (weak) => {
      const { port } = await reservePort();
      const env = { PAY_WEBHOOK_SECRET: weak, PAY_API_KEY: fleet.testShop.caller.apiKey };
      await expect(start(env, port)).rejects.toThrow(/missing or too short/);
    },
  );
});
