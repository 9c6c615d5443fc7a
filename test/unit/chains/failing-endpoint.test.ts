import { setImmediate as tick } from "node:timers/promises";
import { Registry } from "prom-client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { ChainError } from "../../../chains/errors.ts";
import { openEndpoint } from "../../../chains/failover-endpoint.ts";
import { createMetrics } from "../../../runtime/metrics.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

const unreachable = new ChainError("rpc_unreachable", { detail: "node-0" });

/** Opens an endpoint that has not answered its last request, and was suspended for that. */
async function openFailing() {
  const chain = "eip155:1";
  const entry = { name: "node-0", url: "node-0" };
  const { endpoint } = openEndpoint<string>(entry, {
    network: { chain, name: "Test", rpc: [entry] },
    metrics: createMetrics(new Registry(), "worker"),
    connect: (url) => url,
    identify: { method: "id", query: async () => ({ chain, description: chain }) },
    toError: (error) => error,
    isFailover: (error) => error instanceof ChainError,
  });
  const ask = (answer: Promise<string>) => endpoint.requestOptional("read", () => answer);
  await expect(ask(Promise.reject(unreachable))).rejects.toBe(unreachable);
  expect(endpoint.isSuspended()).toBe(true);
  const endSuspension = () => {
    vi.advanceTimersByTime(5_000);
    expect(endpoint.isSuspended()).toBe(false);
  };
  endSuspension();
  return { endpoint, ask, endSuspension };
}

const never = new Promise<never>(() => undefined);
const isOver = (answer: Promise<unknown>) =>
  Promise.race([
    answer.then(
      () => true,
      () => true,
    ),
    tick(false),
  ]);

test("an endpoint that did not answer the last request has a second for an answer that the caller can do without", async () => {
  const { endpoint, ask } = await openFailing();
  await expect(ask(never)).rejects.toMatchObject({ code: "rpc_unreachable" });
  expect(endpoint.isSuspended()).toBe(true);
});

test("an endpoint that answers within the second is not suspended", async () => {
  const { endpoint, ask } = await openFailing();
  expect(await ask(Promise.resolve("in time"))).toBe("in time");
  await new Promise((done) => setTimeout(done, 1_500));
  expect(endpoint.isSuspended()).toBe(false);
});

test("an endpoint that has answered, however late, has all its time for the next answer", async () => {
  const { endpoint, ask, endSuspension } = await openFailing();
  const { promise, resolve } = Promise.withResolvers<string>();
  await expect(ask(promise)).rejects.toMatchObject({ code: "rpc_unreachable" });
  resolve("late");
  await tick();
  endSuspension();
  const next = Promise.withResolvers<string>();
  const answer = ask(next.promise);
  await new Promise((done) => setTimeout(done, 1_500));
  expect(await isOver(answer)).toBe(false);
  next.resolve("slow");
  expect(await answer).toBe("slow");
  expect(endpoint.isSuspended()).toBe(false);
});

test("an endpoint that did not answer the last request has all its time for an answer that is needed", async () => {
  const { endpoint } = await openFailing();
  const needed = Promise.withResolvers<string>();
  const answer = endpoint.requestOrSuspend("read", () => needed.promise);
  await new Promise((done) => setTimeout(done, 1_500));
  needed.resolve("slow");
  expect(await answer).toBe("slow");
});
