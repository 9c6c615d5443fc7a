import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { afterEach, expect, test } from "vitest";
import { createLog } from "../../../runtime/log.ts";
import { createShutdown } from "../../../runtime/shutdown.ts";

function quietShutdown(timeoutMs?: number) {
  const lines: string[] = [];
  const log = createLog({ level: "info", role: "test" }, { write: (line) => void lines.push(line) });
  return { shutdown: createShutdown({ log, ...(timeoutMs === undefined ? {} : { timeoutMs }) }), lines };
}

test("shutdown aborts the signal, then closes each resource once, the last opened first", async () => {
  const { shutdown } = quietShutdown();
  const order: string[] = [];
  shutdown.onClose("database", () => order.push(`database ${shutdown.signal.aborted}`));
  shutdown.onClose("worker", async () => {
    await Promise.resolve();
    order.push("worker");
  });
  expect(shutdown.signal.aborted).toBe(false);
  await Promise.all([shutdown.close(), shutdown.close()]);
  await shutdown.close();
  expect(order).toEqual(["worker", "database true"]);
});

test("a close function that throws, rejects or hangs is logged by name, and the others still run", async () => {
  const { shutdown, lines } = quietShutdown(20);
  const order: string[] = [];
  shutdown.onClose("first", () => order.push("first"));
  shutdown.onClose("throws", () => {
    throw new Error("no");
  });
  shutdown.onClose("rejects", () => Promise.reject(new Error("no")));
  shutdown.onClose("hangs", () => new Promise(() => {}));
  await shutdown.close();
  expect(order).toEqual(["first"]);
  expect(lines.map((line) => (JSON.parse(line) as { resource: string }).resource)).toEqual([
    "hangs",
    "rejects",
    "throws",
  ]);
});

test("a close function with its own timeout is bounded by that timeout", async () => {
  const { shutdown, lines } = quietShutdown(1);
  const { promise, resolve } = Promise.withResolvers<void>();
  shutdown.onClose("slow but allowed", () => promise, { timeoutMs: 60_000 });
  shutdown.onClose("default", () => setTimeout(resolve, 30) && new Promise(() => {}));
  await shutdown.close();
  expect(lines).toHaveLength(1);
});

const running: ChildProcess[] = [];
afterEach(() => {
  for (const child of running.splice(0)) child.kill("SIGKILL");
});

/** Starts a process with the service's signal handling, a timer that keeps it alive, and `body`. It prints "ready". */
async function startProcess(body: string) {
  const folder = new URL("../../../runtime/", import.meta.url).href;
  const code = `
    import { createLog } from "${folder}log.ts";
    import { createShutdown, installSignals } from "${folder}shutdown.ts";
    const log = createLog({ level: "info", role: "test" });
    const shutdown = createShutdown({ log });
    installSignals(shutdown, { log, lingerMs: 50 });
    const timer = setInterval(() => {}, 1000);
    ${body}
    console.log("ready");`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], { stdio: ["ignore", "pipe", "inherit"] });
  running.push(child);
  // The process may exit before all of its output has arrived.
  const exited = once(child, "close") as Promise<[number | null, string | null]>;
  const lines: string[] = [];
  const printed = (text: string) =>
    new Promise<void>((resolve) => {
      const check = () => lines.some((line) => line.includes(text)) && resolve();
      reader.on("line", check);
      check();
    });
  const reader = createInterface({ input: child.stdout });
  reader.on("line", (line) => lines.push(line));
  return { child, exited, lines, printed };
}

test("SIGTERM closes the process, which logs that it has closed and exits with 0", async () => {
  const { child, exited, lines, printed } = await startProcess(
    `shutdown.onClose("timer", () => { clearInterval(timer); console.log("closed"); });`,
  );
  await printed("ready");
  child.kill("SIGTERM");
  expect(await exited).toEqual([0, null]);
  expect(lines).toContain("closed");
  expect(lines.map((text) => (text.startsWith("{") ? JSON.parse(text) : {}))).toContainEqual(
    expect.objectContaining({ msg: "closed", code: 0 }),
  );
});

test("an open handle does not keep the process alive after shutdown", async () => {
  const { child, exited, lines, printed } = await startProcess("");
  await printed("ready");
  child.kill("SIGINT");
  expect(await exited).toEqual([0, null]);
  expect(lines.join()).toContain("Timeout");
});

test("a second signal ends a close that takes too long", async () => {
  const { child, exited, printed } = await startProcess(
    `shutdown.onClose("hangs", () => { console.log("hanging"); return new Promise(() => {}); });`,
  );
  await printed("ready");
  child.kill("SIGTERM");
  await printed("hanging");
  child.kill("SIGTERM");
  expect(await exited).toEqual([1, null]);
});

test.each([
  ["an unhandled rejection", `setTimeout(() => Promise.reject(new Error("lost")), 10);`],
  ["an uncaught exception", `setTimeout(() => { throw new Error("lost"); }, 10);`],
])("%s is logged, everything is closed, and the process ends with 1", async (_name, body) => {
  const { exited, lines } = await startProcess(`shutdown.onClose("timer", () => console.log("closed")); ${body}`);
  expect(await exited).toEqual([1, null]);
  expect(lines.join("\n")).toMatch(/"level":"fatal".*"message":"lost"/);
  expect(lines).toContain("closed");
});
