import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { openQueues } from "../../../support/test-queues.ts";
import { waitFor } from "../../../support/wait-for.ts";

const text = readFileSync(new URL("../../../../ops/runbooks/queue-waits.md", import.meta.url), "utf8");
const commands = [...text.matchAll(/^ *redis-cli .*?\b(hget|hdel) '([^']+)' (\w+)$/gm)];

test("the commands of the runbook show that a queue is paused, and resume it", async () => {
  const queues = await openQueues();
  await queues.ready();
  const run = async (name: string) => {
    const [, command = "", key = "", field = ""] = commands.find(([, one]) => one === name) ?? [];
    return queues.redis.call(command, key.replace(/^pay:/, `${queues.prefix}:`), field);
  };
  const ran: string[] = [];
  await queues.queue("relay-transfers").pause();
  queues.serve("relay-transfers", async ({ chain }) => {
    ran.push(chain);
    return { done: true };
  });
  await queues.enqueue("relay-transfers", [{ data: { chain: "eip155:1", transferId: `trf_${"0".repeat(32)}` } }]);
  expect(await run("hget")).toBe("1");
  expect(await queues.queue("relay-transfers").isPaused()).toBe(true);
  expect(ran).toEqual([]);
  expect(await run("hdel")).toBe(1);
  await waitFor(() => ran.length === 1, { within: 15_000, what: "the worker takes the job that waited" });
  expect(await run("hget")).toBeNull();
});
