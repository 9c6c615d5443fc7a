import { Registry } from "prom-client";
import { parseEther } from "viem";
import { expect, test } from "vitest";
import { openChains } from "../../../chains/open-chains.ts";
import { createLog } from "../../../runtime/log.ts";
import { createMetrics } from "../../../runtime/metrics.ts";
import { watchGasBalances } from "../../../transfers/watch-gas-balances.ts";
import { addCleanup } from "../../support/cleanups.ts";
import { networksFor, startChain } from "../../support/evm-chain.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";
import { waitFor } from "../../support/wait-for.ts";

test("a lane's gas balance is read repeatedly by one call per lane, and survives an unavailable RPC endpoint", async () => {
  const chain = await startChain({ lanes: 2 });
  const proxy = await startFaultProxy({ target: chain.url });
  const metrics = createMetrics(new Registry(), "worker");
  const log = createLog({ level: "silent", role: "worker" });
  const chains = openChains(await networksFor(chain, { rpcUrls: [proxy.url] }), metrics);
  const readBalances = async () => (await metrics.laneGasBalance.get()).values.map(({ value }) => value);
  const fundLanes = (ether: string) =>
    Promise.all(chain.keys.lanes.map(({ address }) => chain.client.setBalance({ address, value: parseEther(ether) })));
  await fundLanes("2");
  addCleanup(watchGasBalances({ chains, metrics, log }, 50));

  await waitFor(async () => (await readBalances()).length === 2, { within: 10_000 });
  expect(await readBalances()).toEqual([2e18, 2e18]);
  // The chain id of an endpoint is read once.
  expect(Object.keys(proxy.calls).sort()).toEqual(["eth_chainId", "eth_getBalance"]);
  expect(proxy.calls["eth_chainId"]).toBe(1);

  proxy.refuse(true);
  await fundLanes("1");
  const callsBefore = proxy.calls["eth_getBalance"] ?? 0;
  // Each lane's balance was read once without success, and one read more.
  await waitFor(async () => (proxy.calls["eth_getBalance"] ?? 0) > callsBefore + 2, { within: 20_000 });
  expect(await readBalances()).toEqual([2e18, 2e18]);
  proxy.refuse(false);
  await waitFor(async () => (await readBalances()).every((wei) => wei === 1e18), { within: 20_000 });
});
