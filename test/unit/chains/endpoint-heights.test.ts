import { Registry } from "prom-client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { maxBehind } from "../../../chains/endpoint-heights.ts";
import { ChainError } from "../../../chains/errors.ts";
import { openFailover } from "../../../chains/failover.ts";
import { createMetrics } from "../../../runtime/metrics.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

/** Opens endpoints with these heights; undefined does not answer. `ask` returns the name of the endpoint that was asked. */
function openWith(heights: (number | undefined)[]) {
  const chain = "eip155:1";
  const answer = (url: string) => {
    const height = heights[Number(url)];
    if (height === undefined) throw new ChainError("rpc_unreachable");
    return height;
  };
  const failover = openFailover<string>({
    network: { chain, name: "Test", rpc: heights.map((_, index) => ({ name: `node-${index}`, url: String(index) })) },
    metrics: createMetrics(new Registry(), "worker"),
    connect: (url) => url,
    identify: { method: "id", query: async () => ({ chain, description: chain }) },
    height: { method: "height", query: async (url) => answer(url), maxBehind: 10 },
    toError: (error) => error,
    isFailover: (error) => error instanceof ChainError,
  });
  const ask = () =>
    failover.run(async ({ name, requestOrSuspend }) => {
      await requestOrSuspend("read", async (url) => answer(url));
      return name;
    }, "read");
  return { failover, ask };
}

test("an endpoint that lags is asked last until it has caught up", async () => {
  const heights = [100, 111];
  const { failover, ask } = openWith(heights);
  expect(await ask()).toBe("node-0");
  await failover.compareHeights();
  expect(await ask()).toBe("node-1");
  heights[0] = 101;
  await failover.compareHeights();
  expect(await ask()).toBe("node-0");
});

test("an endpoint that lags is asked when no other one answers", async () => {
  const heights = [100, 111 as number | undefined];
  const { failover, ask } = openWith(heights);
  await failover.compareHeights();
  heights[1] = undefined;
  expect(await ask()).toBe("node-0");
});

test("a process that makes calls compares the heights every 15 seconds", async () => {
  const { ask } = openWith([100, 200]);
  expect(await ask()).toBe("node-0");
  vi.advanceTimersByTime(14_999);
  expect([await ask(), await ask()]).toEqual(["node-0", "node-0"]);
  vi.advanceTimersByTime(1);
  expect(await ask()).toBe("node-0");
  await vi.waitFor(async () => expect(await ask()).toBe("node-1"));
});

test.each([
  [250, 120],
  [2_000, 15],
  [12_000, 10],
])("with a block every %i ms an endpoint may be %i blocks behind", (blockMs, blocks) => {
  expect(maxBehind(blockMs)).toBe(blocks);
});
