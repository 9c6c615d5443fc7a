import { Counter, Registry } from "prom-client";
import { afterEach, expect, test } from "vitest";
import { startProbes } from "../../../runtime/probes.ts";

type Options = Partial<Parameters<typeof startProbes>[0]>;
const open: { close(): Promise<void> }[] = [];
afterEach(() => Promise.all(open.splice(0).map((probes) => probes.close())));

async function start(options: Options = {}) {
  const registry = new Registry();
  new Counter({ name: "pay_things_total", help: "things", registers: [registry] }).inc(3);
  const ready = async () => ({ ok: true, checks: { postgres: true } });
  const probes = await startProbes({ host: "127.0.0.1", port: 0, registry, ready, ...options });
  open.push(probes);
  return (path: string, init?: RequestInit) => fetch(`http://127.0.0.1:${probes.port}${path}`, init);
}

test("the metrics endpoint serves the given registry in the exposition format", async () => {
  const get = await start();
  const answer = await get("/metrics");
  expect(answer.headers.get("content-type")).toContain("version=0.0.4");
  expect(await answer.text()).toContain("pay_things_total 3");
});

test("the readiness probe lists the checks that passed", async () => {
  const get = await start();
  const answer = await get("/readyz");
  expect([answer.status, await answer.json()]).toEqual([200, { ok: true, checks: { postgres: true } }]);
});

test("a failed check makes readiness answer 503 with its name, while liveness stays 200", async () => {
  const get = await start({ ready: async () => ({ ok: false, checks: { postgres: true, redis: false } }) });
  const answer = await get("/readyz");
  expect([answer.status, await answer.json()]).toEqual([503, { ok: false, checks: { postgres: true, redis: false } }]);
  expect((await get("/livez")).status).toBe(200);
});

test("a draining process is alive but not ready", async () => {
  let draining = false;
  const get = await start({ isDraining: () => draining });
  expect((await get("/readyz")).status).toBe(200);
  draining = true;
  expect((await get("/readyz")).status).toBe(503);
  expect((await get("/livez")).status).toBe(200);
});

test("a check that throws or never resolves makes the process not ready", async () => {
  const throwing = await start({ ready: () => Promise.reject(new Error("postgres://app:secret@db")) });
  const answer = await throwing("/readyz");
  expect([answer.status, await answer.text()]).toEqual([503, expect.not.stringContaining("secret")]);
  const hanging = await start({ ready: () => new Promise(() => {}) });
  expect((await hanging("/readyz")).status).toBe(503);
});

test("the probe server rejects other paths and methods", async () => {
  const get = await start();
  expect((await get("/")).status).toBe(404);
  expect((await get("/livez", { method: "POST" })).status).toBe(405);
});

test("starting the probes on a port in use is an error", async () => {
  const registry = new Registry();
  const ready = async () => ({ ok: true, checks: {} });
  const first = await startProbes({ host: "127.0.0.1", port: 0, registry, ready });
  open.push(first);
  await expect(startProbes({ host: "127.0.0.1", port: first.port, registry, ready })).rejects.toThrow("EADDRINUSE");
});
