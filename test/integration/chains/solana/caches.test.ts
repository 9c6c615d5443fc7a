import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { chooseLane } from "../../../../chains/solana/choose-lane.ts";
import { openSolanaChain, type SolanaChain } from "../../../../chains/solana/open-solana-chain.ts";
import { chooseUnitPrice } from "../../../../chains/solana/priority-fees.ts";
import { recentBlockhash } from "../../../../chains/solana/recent-blockhash.ts";
import { describeSolana } from "../../../../local/solana-entry.ts";
import { createMetrics } from "../../../../runtime/metrics.ts";
import { parseNetworks, type SolanaNetwork } from "../../../../runtime/networks/read-networks.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { makeSolanaKeys, startTestSolana } from "../../../support/test-solana.ts";

const solana = await startTestSolana();
const keys = await makeSolanaKeys(solana, 2);
const proxy = await startFaultProxy({ target: solana.url });
const HOUR_MS = 3_600_000;

function openChain(): SolanaChain {
  const { id, mint, slotMs } = solana;
  const entry = describeSolana({ id, mints: [mint], keys, rpcUrls: [proxy.url, solana.url], slotMs });
  const [network] = parseNetworks({ deployment: "test", chains: [entry] }).chains;
  return openSolanaChain(network as SolanaNetwork, createMetrics(new Registry(), "worker"));
}

const reads: [string, string, (chain: SolanaChain, now: number) => Promise<unknown>][] = [
  [
    "the list of funded relayers",
    "getMultipleAccounts",
    (chain, now) => chooseLane(chain, { key: "0x00000000", now, isLive: true }),
  ],
  ["the price of a compute unit", "getRecentPrioritizationFees", (chain, now) => chooseUnitPrice(chain, 1_000, now)],
  ["the newest blockhash", "getLatestBlockhash", (chain, now) => recentBlockhash(chain, now)],
];

test.each(reads)("%s is read again after the clock is set back by an hour", async (_what, method, read) => {
  const chain = openChain();
  const now = Date.now();
  const countCalls = async (at: number) => {
    const before = proxy.calls[method] ?? 0;
    await read(chain, at);
    return (proxy.calls[method] ?? 0) - before;
  };
  expect(await countCalls(now)).toBe(1);
  expect(await countCalls(now), "the value is still fresh").toBe(0);
  expect(await countCalls(now - HOUR_MS)).toBe(1);
  expect(await countCalls(now - HOUR_MS + 10), "the new value is fresh by the changed clock").toBe(0);
});
