import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { ChainError } from "../../../chains/errors.ts";
import { openFailover } from "../../../chains/failover.ts";
import { createMetrics } from "../../../runtime/metrics.ts";

test("an endpoint that serves another chain has one failed call, and no answer; metrics have its name, never its URL", async () => {
  const registry = new Registry();
  const failover = openFailover<string>({
    network: { chain: "eip155:1", name: "Test", rpc: [{ name: "foreign", url: "https://node.example/key" }] },
    metrics: createMetrics(registry, "worker"),
    connect: (url) => url,
    identify: { method: "id", query: async () => ({ chain: "eip155:2", description: "chain 2" }) },
    height: { method: "height", query: async () => 1, maxBehind: 10 },
    toError: (error) => error,
    isFailover: (error) => error instanceof ChainError,
  });
  await expect(failover.check()).rejects.toThrow("serves chain 2");
  const [status] = failover.listStatuses();
  expect(status).toMatchObject({ calls: 1, failures: 1, error: "wrong_chain", answeredMs: undefined });
  const scraped = await registry.metrics();
  expect(scraped).toMatch(/pay_rpc_duration_seconds_count\{[^}]*endpoint="foreign"/);
  expect(scraped).not.toContain("node.example");
});
