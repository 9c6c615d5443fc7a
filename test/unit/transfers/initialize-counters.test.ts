import { Registry } from "prom-client";
import { expect, test } from "vitest";
import type { Chain } from "../../../chains/chain.ts";
import { createMetrics } from "../../../runtime/metrics.ts";
import { initializeCounters } from "../../../transfers/initialize-counters.ts";

/** Returns the values of the counter of lone confirmations after the start of a chain with these endpoints. */
async function confirmationsWith(urls: string[]): Promise<number[]> {
  const metrics = createMetrics(new Registry(), "worker");
  const rpc = urls.map((url, index) => ({ name: `node-${index}`, url }));
  initializeCounters({ metrics }, { chain: "eip155:1", network: { rpc } } as unknown as Chain);
  return (await metrics.singleEndpointConfirmations.get()).values.map(({ value }) => value);
}

test("the lone confirmations of a chain with several endpoints start at 0, so that the first one is an increase", async () => {
  expect(await confirmationsWith(["https://a.example", "https://b.example"])).toEqual([0]);
});

test("a chain with a single endpoint counts no lone confirmations before the first", async () => {
  expect(await confirmationsWith(["https://a.example"])).toEqual([]);
  expect(await confirmationsWith(["https://a.example", "https://a.example"])).toEqual([]);
});
