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
import { makeSolanaMerchantFixture } from "../../support/solana-merchant-fixture.ts";
import { drainSol } from "../../support/solana-token-moves.ts";
import { startTestSolana } from "../../support/test-solana.ts";
import { waitFor } from "../../support/wait-for.ts";

test("a lane's gas balance and nonce are read repeatedly by one call each, and survive an unavailable RPC endpoint", async () => {
  const chain = await startChain({ lanes: 2 });
  const proxy = await startFaultProxy({ target: chain.url });
  const metrics = createMetrics(new Registry(), "worker");
  const lines: string[] = [];
  const log = createLog({ level: "info", role: "worker" }, { write: (line) => void lines.push(line) });
  const chains = openChains(await networksFor(chain, { rpcUrls: [proxy.url], change: { batchGas: 200_000 } }), metrics);
  const readBalances = async () => (await metrics.laneGasBalance.get()).values.map(({ value }) => value);
  const fundLanes = (ether: string) =>
    Promise.all(chain.keys.lanes.map(({ address }) => chain.client.setBalance({ address, value: parseEther(ether) })));
  await fundLanes("2");
  const { stop, listShort } = watchGasBalances({ chains, metrics, log }, 50);
  addCleanup(stop);

  const readNonces = async () => (await metrics.laneAccountNonce.get()).values.map(({ value }) => value);
  await waitFor(async () => (await readNonces()).length === 2, { within: 10_000 });
  expect(await readBalances()).toEqual([2e18, 2e18]);
  // The chain id of an endpoint is read once.
  expect(Object.keys(proxy.calls).sort()).toEqual([
    "eth_chainId",
    "eth_getBalance",
    "eth_getBlockByNumber",
    "eth_getTransactionCount",
  ]);
  expect(proxy.calls["eth_chainId"]).toBe(1);
  expect(await readNonces()).toEqual([0, 0]);

  proxy.refuse(true);
  await fundLanes("1");
  const callsBefore = proxy.calls["eth_getBalance"] ?? 0;
  // Each lane's balance was read once without success, and one read more.
  await waitFor(async () => (proxy.calls["eth_getBalance"] ?? 0) > callsBefore + 2, { within: 20_000 });
  expect(await readBalances()).toEqual([2e18, 2e18]);
  proxy.refuse(false);
  await waitFor(async () => (await readBalances()).every((wei) => wei === 1e18), { within: 20_000 });
  expect(listShort()).toEqual([]);

  const [lane = ""] = chain.keys.lanes.map(({ address }) => address.toLowerCase());
  await chain.client.setBalance({ address: lane as `0x${string}`, value: 5n });
  await waitFor(() => listShort().length > 0, { within: 20_000 });
  const [short] = listShort();
  expect(short).toMatchObject({ chain: chain.id, lane, balance: 5n });
  // Enough for a transfer at the present fee, and less than a full batch can cost at the fee ceiling.
  await fundLanes("0.01");
  await waitFor(() => listShort().length === 0, { within: 20_000 });
  const logged = lines.filter((line) => line.includes("native money for gas"));
  expect(logged.map((line) => JSON.parse(line))).toMatchObject([
    { lane, balance: "5", needs: String(short?.needs), msg: "lane has too little native money for gas: send it some" },
    { lane, msg: "lane has enough native money for gas again" },
  ]);
});

test("a Solana lane without SOL is reported with its balance and what it needs", async () => {
  const solana = await startTestSolana();
  const { deps, keys } = await makeSolanaMerchantFixture(solana);
  const [relayer] = keys.lanes;
  if (!relayer) throw new Error("the fixture has no lane");
  await drainSol(solana, relayer);
  const { stop, listShort } = watchGasBalances(deps, 50);
  addCleanup(stop);
  await waitFor(() => listShort().length > 0, { within: 10_000 });
  const [short] = listShort();
  expect(short).toMatchObject({ chain: solana.id, lane: relayer.address });
  expect((short?.needs ?? 0n) > (short?.balance ?? 0n)).toBe(true);
});
