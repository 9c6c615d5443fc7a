import { Registry } from "prom-client";
import { afterEach, expect, test, vi } from "vitest";
import { type CallPriority, withCallPriority } from "../../../chains/call-priority.ts";
import { ChainError } from "../../../chains/errors.ts";
import { openFailover } from "../../../chains/failover.ts";
import { createMetrics } from "../../../runtime/metrics.ts";

afterEach(() => void vi.useRealTimers());
/** Stops the clock by which budgets refill. */
const stopClock = () => vi.useFakeTimers({ toFake: ["performance"] });

/** Opens two endpoints with these budgets. `call` returns the name of the endpoint that was asked. */
function openTwo(...budgets: [number | undefined, number | undefined]) {
  const registry = new Registry();
  const chain = "eip155:1";
  const rpc = budgets.map((callsPerMinute, index) => ({ name: `node-${index}`, url: `node-${index}`, callsPerMinute }));
  const failover = openFailover<string>({
    network: { chain, name: "Test", rpc },
    metrics: createMetrics(registry, "worker"),
    connect: (url) => url,
    identify: { method: "id", query: async () => ({ chain, description: chain }) },
    height: { method: "height", query: async () => 1, maxBehind: 10 },
    toError: (error) => error,
    isFailover: (error) => error instanceof ChainError,
  });
  const call = (priority: CallPriority) =>
    withCallPriority(priority, () =>
      failover.run((endpoint) => endpoint.requestOrSuspend("read", async (url) => url), "read"),
    );
  const remaining = async (name: string) => {
    const metric = await registry.getSingleMetric("pay_rpc_budget_remaining_calls")?.get();
    return metric?.values.find(({ labels }) => labels["endpoint"] === name)?.value;
  };
  return { call, remaining };
}

test("calls that move money go to the next endpoint while the budget of the first is spent", async () => {
  stopClock();
  const { call, remaining } = openTwo(60, undefined);
  expect(await remaining("node-0")).toBe(10);
  const asked: string[] = [];
  for (let calls = 0; calls < 15; calls += 1) asked.push(await call("money"));
  // One call was spent on the check of the chain.
  expect(asked).toEqual([...Array(9).fill("node-0"), ...Array(6).fill("node-1")]);
  expect(await remaining("node-0")).toBe(0);
  expect(await remaining("node-1")).toBeUndefined();
});

test("a call for convenience is refused with the time to wait when no endpoint has room for it, and suspends none", async () => {
  stopClock();
  const { call } = openTwo(60, 60);
  const refusal = async () => {
    for (let calls = 0; calls < 20; calls += 1) {
      const error = await call("convenience").then(
        () => undefined,
        (reason: unknown) => reason,
      );
      if (error) return error;
    }
    return undefined;
  };
  const refused = await refusal();
  expect(refused).toMatchObject({ code: "budget_spent", transient: true });
  expect((refused as ChainError).waitMs).toBeGreaterThan(0);
  expect(await call("verification")).toBe("node-0");
  expect(await call("money")).toBe("node-0");
});

test("a call that moves money waits while every budget is spent", async () => {
  const { call } = openTwo(600, 600);
  await call("money");
  // Each has about 100 calls saved up, and makes 8 a second beyond them.
  const asked = await Promise.all(Array.from({ length: 215 }, () => call("money")));
  expect(asked.filter((name) => name === "node-1").length).toBeGreaterThan(90);
});
