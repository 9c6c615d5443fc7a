import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { ChainError } from "../../../chains/errors.ts";
import { openFailover } from "../../../chains/failover.ts";
import { createMetrics } from "../../../runtime/metrics.ts";

test("an endpoint that serves another chain has one failed call, and no answer", async () => {
  const failover = openFailover<string>({
    network: { chain: "eip155:1", name: "Test", rpc: [{ name: "foreign", url: "foreign" }] },
    metrics: createMetrics(new Registry(), "worker"),
    connect: (url) => url,
    identify: { method: "id", query: async () => ({ chain: "eip155:2", description: "chain 2" }) },
    height: { method: "height", query: async () => 1, maxBehind: 10 },
    toError: (error) => error,
    isFailover: (error): error is ChainError => error instanceof ChainError,
  });
  await expect(failover.check()).rejects.toThrow("serves chain 2");
  const [status] = failover.listStatuses();
  expect(status).toMatchObject({ calls: 1, failures: 1, error: "wrong_chain", answeredMs: undefined });
});
