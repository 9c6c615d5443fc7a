import pRetry from "p-retry";
import type { PrivateKeyAccount } from "viem";
import { expect, test } from "vitest";
import { confirm, createPayment, listOptions, Refused, signOption } from "../../local/buyer-client.ts";
import { fundBuyers, mine, startChain, type TestChain } from "../support/evm-chain.ts";
import { execute } from "../support/execute-sql.ts";
import { type Fleet, startFleet } from "../support/fleet.ts";
import { expectSound, waitUntilIdle } from "../support/fleet-invariants.ts";
import { makeForeignTraffic } from "../support/foreign-traffic.ts";
import { limits } from "../support/log-limits.ts";
import { type ProviderRules, startRealisticProvider } from "../support/realistic-provider.ts";
import { mapConcurrently } from "../support/sign-payments.ts";
import { waitFor } from "../support/wait-for.ts";

const PAYMENTS = 200;
const BUYERS = 20;
/** Blocks between two final heights, and how far below the head the newest one is at least. */
const JUMP = { step: 300, depth: 3 };
/** Blocks per round: the first one holds transactions, the others are empty. */
const BLOCKS = 100;
const FOREIGN_TRANSFERS = 100;
/** Rounds that each of the special rules lasts. The final height stands still for more rounds than it takes to jump. */
const ROUNDS = 4;

const limit = limits[0];
if (!limit) throw new Error("there is no limit");
/** The rules that always apply to both endpoints. */
const always: ProviderRules = {
  logs: { ...limit, blocks: 500, logs: 10_000 },
  batch: 10,
  nodes: [0, 3, 1],
  refusesFuture: true,
  receiptsAfterMs: 500,
  tags: JUMP,
};

/** What applies besides, one after the other, to the first and to the second endpoint. */
const special: readonly ((heights: { head: number; final: number }) => readonly [ProviderRules, ProviderRules])[] = [
  () => [{ budget: { units: 1_000, retryAfterSeconds: 1 } }, { budget: { units: 2_000 } }],
  () => [{ hang: { ms: 10_000, every: 7 } }, {}],
  ({ final }) => [{ tags: { at: final } }, { tags: { at: final } }],
  ({ head }) => [{ prunedBelow: head - 10 }, {}],
  () => [{ nodes: [40] }, {}],
];

/** Sends a request of a wallet, and again after a response that a wallet may repeat. */
const asWallet = <T>(send: () => Promise<T>): Promise<T> =>
  pRetry(send, {
    retries: 60,
    minTimeout: 250,
    factor: 1,
    shouldRetry: ({ error }) => !(error instanceof Refused) || error.status >= 500,
  });

async function buy({ shop }: Fleet, chain: TestChain, buyer: PrivateKeyAccount): Promise<string> {
  // The chain's time advances by at least one second per block.
  const expiresAt = new Date(Date.now() + 6 * 3_600_000);
  const id = await createPayment(shop, { referenceId: "order", cents: "100", expiresAt });
  const [option] = await asWallet(() => listOptions(shop, id, [`${chain.id}:${buyer.address}`]));
  if (!option) throw new Error("the service returned no option");
  const results = await signOption(shop, id, option, buyer);
  await asWallet(() => confirm(shop, id, { optionId: option.id, results }));
  return id;
}

/** Makes blocks in rounds, and checks before each round that only final payments have succeeded. */
async function startRounds(chain: TestChain, fleet: Fleet, setRules: (special: readonly ProviderRules[]) => void) {
  const moveForeign = await makeForeignTraffic(chain);
  await chain.client.setAutomine(false);
  const blockOf = new Map<string, number>();
  let round = 0;
  let final = 0;
  let stopped = false;

  const checkSucceeded = async () => {
    const rows = await execute<{ hash: string }>(
      fleet.databaseUrl,
      "SELECT tx_id AS hash FROM payment WHERE state = 'succeeded'",
    );
    for (const hash of new Set(rows.map((row) => row.hash))) {
      const known = blockOf.get(hash);
      const number =
        known ?? Number((await chain.client.getTransactionReceipt({ hash: hash as `0x${string}` })).blockNumber);
      blockOf.set(hash, number);
      expect(number, `block of ${hash}, which was reported as succeeded`).toBeLessThanOrEqual(final);
    }
  };
  const isCaughtUp = async (head: number) => {
    const [row] = await execute<{ number: string }>(fleet.databaseUrl, "SELECT number FROM chain_cursor");
    return Number(row?.number) >= head - BLOCKS;
  };
  const run = async () => {
    while (!stopped) {
      await checkSucceeded();
      const before = Number(await chain.client.getBlockNumber());
      const stage = special[Math.floor(round / ROUNDS)];
      const rules = round % ROUNDS === 0 ? (stage?.({ head: before, final }) ?? [{}, {}]) : undefined;
      if (rules) setRules(rules);
      if (rules) standsStill = rules.some(({ tags }) => tags && "at" in tags);
      await moveForeign(FOREIGN_TRANSFERS);
      const head = before + BLOCKS;
      // Before the blocks exist, because the service can see them at once.
      if (!standsStill) final = Math.max(final, Math.floor((head - JUMP.depth) / JUMP.step) * JUMP.step);
      await mine(chain, BLOCKS);
      round += 1;
      await waitFor(() => isCaughtUp(head), { within: 15_000, what: `the watcher reaches block ${head}` });
    }
    await checkSucceeded();
  };
  let standsStill = false;
  const running = run();
  return {
    running,
    rounds: () => round,
    stop: () => {
      stopped = true;
      return running;
    },
  };
}

test("200 payments succeed behind two endpoints with every limit and fault of real providers, and none before its block is final", async () => {
  const chain = await startChain({ lanes: 2 });
  const providers = await Promise.all([0, 1].map(() => startRealisticProvider({ target: chain.url, ...always })));
  const fleet = await startFleet({
    chain,
    rpcUrls: providers.map(({ url }) => url),
    change: { finality: "safe", rpcTimeoutMs: 1_000, pollMs: 250 },
  });
  const buyers = await fundBuyers(chain, BUYERS);
  const rounds = await startRounds(chain, fleet, (rules) => {
    for (const [index, provider] of providers.entries()) provider.setRules({ ...always, ...rules[index] });
  });
  const finish = async () => {
    await mapConcurrently(
      Array.from({ length: PAYMENTS }, (_, index) => index),
      16,
      async (index) => buy(fleet, chain, buyers[index % BUYERS] as PrivateKeyAccount),
    );
    await waitFor(() => rounds.rounds() > special.length * ROUNDS, { within: 90_000, what: "every rule was set" });
    await waitUntilIdle(fleet, 90_000);
  };
  const { writeFileSync } = await import("node:fs");
  const dump = setInterval(() => {
    writeFileSync(
      "/tmp/rp.dump",
      JSON.stringify({ rounds: rounds.rounds(), p: providers.map(({ counts: { ranges: _, ...c } }) => c) }, null, 1),
    );
    writeFileSync("/tmp/rp.lines", fleet.workers.flatMap((w) => w.lines).join("\n"));
    writeFileSync("/tmp/rp.api", fleet.apis.flatMap((w) => w.lines).join("\n"));
  }, 1000);
  await Promise.race([finish(), rounds.running]).finally(() => clearInterval(dump));
  await rounds.stop();

  await expectSound(fleet, chain, { succeeded: PAYMENTS });
  const refused = new Set(providers.flatMap(({ counts }) => Object.keys(counts.refused)));
  console.log(
    rounds.rounds(),
    providers.map(({ counts }) => [counts.calls, counts.refused]),
  );
  for (const rule of ["budget", "hang", "prunedBelow"]) expect(refused).toContain(rule);
});
