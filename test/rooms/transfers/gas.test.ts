import { Registry } from "prom-client";
import { parseEther } from "viem";
import { expect, test } from "vitest";
import { openChains } from "../../../chains/open.ts";
import { createLog } from "../../../ops/log.ts";
import { createMetrics } from "../../../ops/metrics.ts";
import { watchGasMoney } from "../../../transfers/gas.ts";
import { atEnd } from "../../support/at-end.ts";
import { networksFor, startChain } from "../../support/chain.ts";
import { startFaultProxy } from "../../support/fault-proxy.ts";
import { waitFor } from "../../support/wait-for.ts";

test("a lane's gas money is told anew every while, by one call per lane, and outlives an RPC that is away", async () => {
  const chain = await startChain({ lanes: 2 });
  const proxy = await startFaultProxy({ target: chain.url });
  const metrics = createMetrics(new Registry(), "worker");
  const log = createLog({ level: "silent", role: "worker" });
  const chains = openChains(await networksFor(chain, { rpcUrls: [proxy.url] }), metrics);
  const told = async () => (await metrics.laneGasBalance.get()).values.map(({ value }) => value);
  const give = (ether: string) =>
    Promise.all(chain.keys.lanes.map(({ address }) => chain.client.setBalance({ address, value: parseEther(ether) })));
  await give("2");
  atEnd(watchGasMoney({ chains, metrics, log }, 50));

  await waitFor(async () => (await told()).length === 2, { within: 10_000 });
  expect(await told()).toEqual([2e18, 2e18]);
  // An endpoint is asked for its chain once.
  expect(Object.keys(proxy.calls).sort()).toEqual(["eth_chainId", "eth_getBalance"]);
  expect(proxy.calls.eth_chainId).toBe(1);

  proxy.refuse(true);
  await give("1");
  const asked = proxy.calls.eth_getBalance ?? 0;
  // Each lane has been asked for in vain, and once more.
  await waitFor(async () => (proxy.calls.eth_getBalance ?? 0) > asked + 2, { within: 20_000 });
  expect(await told()).toEqual([2e18, 2e18]);
  proxy.refuse(false);
  await waitFor(async () => (await told()).every((wei) => wei === 1e18), { within: 20_000 });
});
