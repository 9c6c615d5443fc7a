import { execFile } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { openDb } from "../../../db/open.ts";
import { makeScratch } from "../../../local/scratch-folder.ts";
import { createAccount } from "../../../payments/merchants/accounts.ts";
import { createApiKey } from "../../../payments/merchants/api-keys.ts";
import { findApiKey } from "../../../payments/merchants/find-api-keys.ts";
import { builtService } from "../../support/built-service.ts";
import { addCleanup } from "../../support/cleanups.ts";
import { networksFileFor, startChain } from "../../support/evm-chain.ts";
import { inRealTime } from "../../support/in-real-time.ts";
import { unwrap } from "../../support/merchant-fixture.ts";
import { redisPrefix } from "../../support/redis-prefix.ts";
import { spawnProcess } from "../../support/spawn-process.ts";
import { testActor } from "../../support/test-actor.ts";
import { createDatabase } from "../../support/test-database.ts";
import { testKeys } from "../../support/test-deps.ts";
import { waitFor } from "../../support/wait-for.ts";
import { networksDocument } from "./start-api.ts";

let env: Record<string, string>;

beforeAll(async () => {
  const folder = await makeScratch("networks");
  addCleanup(() => rm(folder, { recursive: true, force: true }));
  const networks = join(folder, "networks.json");
  await writeFile(networks, JSON.stringify(networksDocument));
  const redis = redisPrefix();
  env = {
    DATABASE_URL: await createDatabase(),
    REDIS_URL: redis.url,
    REDIS_PREFIX: redis.prefix,
    NETWORKS_FILE: networks,
    ...testKeys,
    PUBLIC_URL: "http://127.0.0.1:8080/",
  };
});

/** Runs the process until it ends. */
function run(given: Record<string, string>): Promise<{ code: number; output: string }> {
  const { promise, resolve } = Promise.withResolvers<{ code: number; output: string }>();
  const ports = { HOST: "127.0.0.1", PORT: "0", METRICS_PORT: "0" };
  execFile(
    process.execPath,
    [`${builtService}/api.js`],
    { env: { ...ports, ...given }, timeout: 30_000 },
    (error, stdout, stderr) => resolve({ code: Number(error?.code ?? 0), output: stdout + stderr }),
  );
  return promise;
}

describe("the process", () => {
  test(
    "the process serves while no RPC endpoint responds, and exits within seconds of SIGTERM",
    inRealTime,
    async () => {
      const api = await spawnProcess({ role: "api", env });
      const answer = await fetch(`${api.url}/v1/payments`, { method: "POST" });
      expect(answer.status).toBe(401);
      await answer.text();
      await waitFor(() => api.records().some(({ msg }) => msg === "listening"), { within: 20_000 });

      const began = performance.now();
      const killed = api.kill("SIGTERM");
      const ready = api.metricsUrl.replace("/metrics", "/readyz");
      await waitFor(async () => (await fetch(ready)).status === 503, {
        within: 10_000,
        what: "the process is not ready",
      });
      // It still serves for a moment, for clients that have not noticed yet.
      const late = await fetch(`${api.url}/v1/payments`, { method: "POST" });
      expect([late.status, late.headers.get("connection")]).toEqual([401, "close"]);
      await killed;
      expect(await api.gone).toEqual({ code: 0, signal: null });
      expect(performance.now() - began, "its time limit for running requests is 12 s").toBeLessThan(11_000);
    },
  );

  test("the process stores the last use of a key before it exits", async () => {
    const db = openDb(env["DATABASE_URL"] ?? "", { max: 1 });
    addCleanup(() => db.destroy());
    const deps = { db, now: () => new Date() };
    const { id: accountId } = await createAccount(deps, { actor: testActor, name: "Shop" });
    const wanted = { actor: testActor, accountId, mode: "live", scopes: ["payments:read"] } as const;
    const { apiKey, key } = unwrap(await createApiKey(deps, wanted));
    const api = await spawnProcess({ role: "api", env });
    const answer = await fetch(`${api.url}/v1/payments`, { headers: { "api-key": key } });
    expect([answer.status, await answer.json()]).toMatchObject([200, { data: [] }]);
    await api.kill("SIGTERM");
    await api.gone;
    const { lastUsedAt, lastUsedAddress } = unwrap(await findApiKey(deps, { id: apiKey.id }));
    expect([lastUsedAt, lastUsedAddress]).toEqual([expect.any(Date), "127.0.0.1"]);
  });

  test("the process names invalid environment variables, prints no value and exits with 1", async () => {
    const { code, output } = await run({ ...env, DATABASE_URL: "mysql://user:hunter2@db", PUBLIC_URL: "not a url" });
    expect(code).toBe(1);
    expect(output).toContain("DATABASE_URL: ");
    expect(output).toContain("PUBLIC_URL: ");
    expect(output).not.toMatch(/hunter2|not a url|\n\s+at /);
  });

  test("the process exits with 1 when the networks file does not match the chain", async () => {
    const chain = await startChain();
    const fitting = JSON.parse(await readFile(await networksFileFor(chain), "utf8"));
    const assets = [{ ...fitting.chains[0].assets[0], decimals: 7 }];
    const { code, output } = await run({ ...env, NETWORKS_FILE: await networksFileFor(chain, { change: { assets } }) });
    expect(code).toBe(1);
    expect(output).toContain("does not have 7 decimals");
  });
});
