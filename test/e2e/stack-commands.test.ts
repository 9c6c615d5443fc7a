import { readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { findLocalStack } from "../../cli/find-stack.ts";
import { startChild } from "../../local/child-process.ts";
import { isAlive, makeScratch } from "../../local/scratch-folder.ts";
import { findRunningStack } from "../../local/stack-file.ts";
import { readSettings, withFreePorts } from "../../local/stack-settings.ts";
import { builtService } from "../support/built-service.ts";
import { addCleanup } from "../support/cleanups.ts";
import { waitFor } from "../support/wait-for.ts";

/** Starts one of the two commands with its own folder and ports. The demo runs the service from its sources. */
async function run(script: "start-stack" | "demo", args: readonly string[] = []) {
  const dir = await makeScratch(`stack-${script}`);
  addCleanup(() => rm(dir, { recursive: true, force: true }));
  const settings = await withFreePorts(readSettings({ STACK_DIR: dir }));
  const ports = Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, String(value)]));
  const lines: string[] = [];
  const env = { ...process.env, ...ports, XDG_STATE_HOME: join(dir, "state") };
  const child = await startChild(process.execPath, [`local/${script}.ts`, ...args], {
    env,
    onLine: (line) => lines.push(line),
  });
  addCleanup(() => child.end("SIGTERM"));
  return { dir, child, lines };
}

test("npm start replaces a killed worker in stack.json, and Ctrl-C leaves no process running", async () => {
  const { dir, child, lines } = await run("start-stack", ["--build", builtService]);
  const stack = () => findRunningStack(dir);
  const first = await waitFor(stack, { within: 60_000, what: "stack.json is there" });
  expect(first.processes.supervisor).toBe(child.pid);
  expect(first.evm.buyers.length).toBeGreaterThanOrEqual(20);
  await waitFor(() => lines.some((line) => line.includes(first.adminUrl)), { within: 20_000, what: "the summary" });

  const registered = join(dir, "state", "payment-service", "stack.json");
  expect(JSON.parse(await readFile(registered, "utf8"))).toEqual({ stackFile: join(dir, "stack.json") });
  expect((await stat(registered)).mode & 0o777).toBe(0o600);
  const found = await findLocalStack({ cwd: dir, env: { XDG_STATE_HOME: join(dir, "state") } });
  expect(found).toMatchObject({ file: join(dir, "stack.json"), baseUrl: first.baseUrl });

  const [killed = 0, other] = first.processes.workers;
  process.kill(killed, "SIGKILL");
  const replaced = async () => {
    const pids = (await stack())?.processes.workers ?? [];
    return pids.length === 2 && !pids.includes(killed) && pids.includes(other ?? 0) ? pids : undefined;
  };
  const workers = await waitFor(replaced, { within: 30_000, what: "a new worker" });

  await child.end("SIGINT", 180_000);
  expect(await child.gone).toEqual({ code: 0, signal: null });
  expect(await stack()).toBeUndefined();
  expect(await readdir(join(dir, "state", "payment-service"))).toEqual([]);
  const { api, postgres = 0, redis = 0, anvil = 0 } = first.processes;
  expect([...api, ...workers, postgres, redis, anvil].filter((pid) => pid > 0 && isAlive(pid))).toEqual([]);
});

test("npm run demo settles one payment, lets one expire, and exits with 0", async () => {
  const { child, lines } = await run("demo");
  const { code } = await child.gone;
  const text = lines.join("\n");
  expect({ code, text }).toMatchObject({ code: 0 });
  expect(text).toMatch(/Payment pay_\w+ is succeeded: transaction 0x[0-9a-f]{64}/);
  expect(text).toMatch(/holds 12\.5 USDC/);
  expect(text).toMatch(/has expired: no buyer paid in time/);
});
