import { writeFileSync } from "node:fs";
import { test } from "vitest";
import { startChain } from "../support/evm-chain.ts";
import { startFaultProxy } from "../support/fault-proxy.ts";
import { startFleet } from "../support/fleet.ts";
import { makeSolanaKeys, startTestSolana } from "../support/test-solana.ts";

test("idle", { timeout: 200_000 }, async () => {
  const evm = [] as Awaited<ReturnType<typeof startFaultProxy>>[];
  const solana = await startTestSolana({ slotMs: 400 });
  const keys = await makeSolanaKeys(solana);
  
  const sol = await Promise.all([0, 1].map(() => startFaultProxy({ target: solana.url })));
  await startFleet({ solana: { chain: solana, keys, rpcUrls: sol.map(({ url }) => url), change: { pollMs: 1000 } } });
  await new Promise((r) => setTimeout(r, 15_000));
  const all = [...evm, ...sol];
  const before = all.map(({ calls }) => ({ ...calls }));
  await new Promise((r) => setTimeout(r, 60_000));
  writeFileSync("/tmp/idle2.json", JSON.stringify(all.map(({ calls }, i) => Object.fromEntries(Object.entries(calls).map(([k, v]) => [k, v - (before[i]?.[k] ?? 0)]).filter(([, v]) => v))), null, 1) + "\nslotMs " + solana.slotMs);
});
