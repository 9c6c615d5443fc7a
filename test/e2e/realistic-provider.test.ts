import pRetry from "p-retry";
import type { Hex, PrivateKeyAccount } from "viem";
import { expect, onTestFinished, test } from "vitest";
import { confirm, createPayment, listOptions, Refused, signOption } from "../../local/buyer-client.ts";
import { fundBuyers, mine, startChain, type TestChain } from "../support/evm-chain.ts";
import { execute } from "../support/execute-sql.ts";
import { type Fleet, startFleet } from "../support/fleet.ts";
import { expectSound, waitUntilIdle } from "../support/fleet-invariants.ts";
import { makeForeignTraffic } from "../support/foreign-traffic.ts";
import { limits } from "../support/log-limits.ts";
import { type ProviderRules, startRealisticProvider } from "../support/realistic-provider.ts";
import { scrape, sumOf } from "../support/scrape.ts";
import { mapConcurrently } from "../support/sign-payments.ts";
import { waitFor } from "../support/wait-for.ts";

const PAYMENTS = 200;
const BUYERS = 20;
const CALLS_PER_MINUTE = 1_500;
/** How long a call lasts at most, and how far apart two counts are whose difference is less than a minute's calls. */
const TIMEOUT_MS = 1_000;
const WINDOW_MS = 60_000 - TIMEOUT_MS;
/** Blocks between two final heights, and how far below the head the newest one is at least. */
const JUMP = { step: 300, depth: 3 };
/** Blocks per round: the first one holds transactions, the others are empty. */
const BLOCKS = 150;
const FOREIGN_TRANSFERS = 100;
/** Rounds by which the first stage is extended at most. */
const EXTRA_ROUNDS = 20;

const limit = limits[0];
if (!limit) throw new Error("there is no limit");
/** The rules that both endpoints always have. The blocks of a round, which are made at once, are more than a query may name. */
const always: ProviderRules = {
  logs: { ...limit, blocks: 100, logs: 10_000 },
  batch: 10,
  nodes: [0, 3, 1],
  refusesFuture: true,
  receiptsAfterMs: 500,
  tags: JUMP,
};

type Heights = { head: number; final: number };
/** What the two endpoints do besides, one after the other, and for how many rounds. */
const stages: readonly { rounds: number; rules: (heights: Heights) => readonly [ProviderRules, ProviderRules] }[] = [
  { rounds: 2, rules: () => [{ budget: { units: 1_000, retryAfterSeconds: 1 } }, { budget: { units: 2_000 } }] },
  { rounds: 2, rules: () => [{ hang: { ms: 10_000, every: 7 } }, {}] },
  // The final height stands still for 1,200 blocks of a second each: 20 minutes.
  { rounds: 8, rules: ({ final }) => [{ tags: { at: final } }, { tags: { at: final } }] },
  { rounds: 2, rules: ({ head }) => [{ prunedBelow: head - 10 }, {}] },
  { rounds: 2, rules: () => [{ nodes: [40] }, {}] },
  { rounds: 2, rules: ({ head }) => [{ stopsAt: head }, {}] },
];
const ruleOf = stages.flatMap(({ rounds, rules }) => [rules, ...Array<undefined>(rounds - 1).fill(undefined)]);

/** Sends a request as a wallet does: again after a response of 5xx. */
const asWallet = <T>(send: () => Promise<T>): Promise<T> =>
  pRetry(send, {
    retries: 60,
    minTimeout: 250,
    factor: 1,
    shouldRetry: ({ error }) => !(error instanceof Refused) || error.status >= 500,
  });

async function buy({ shop }: Fleet, chain: TestChain, buyer: PrivateKeyAccount): Promise<void> {
  // The chain's time advances by a second per block.
  const expiresAt = new Date(Date.now() + 6 * 3_600_000);
  const id = await createPayment(shop, { referenceId: "order", cents: "100", expiresAt });
  const [option] = await asWallet(() => listOptions(shop, id, [`${chain.id}:${buyer.address}`]));
  if (!option) throw new Error("the service returned no option");
  const results = await signOption(shop, id, option, buyer);
  await asWallet(() => confirm(shop, id, { optionId: option.id, results }));
}

/** Returns a check that every payment that has succeeded is in a block up to the given one. */
function checkSucceeded(fleet: Fleet, chain: TestChain): (final: number) => Promise<void> {
  const blockOf = new Map<string, number>();
  return async (final) => {
    const sql = "SELECT DISTINCT tx_id AS hash FROM payment WHERE state = 'succeeded'";
    const rows = (await execute(fleet.databaseUrl, sql)) as { hash: Hex }[];
    for (const { hash } of rows) {
      const number = blockOf.get(hash) ?? Number((await chain.client.getTransactionReceipt({ hash })).blockNumber);
      blockOf.set(hash, number);
      expect(number, `block of ${hash}, which was reported as succeeded`).toBeLessThanOrEqual(final);
    }
  };
}

/** Counts the calls of each worker to each endpoint, as the worker does. */
function countCalls(fleet: Fleet) {
  const counts: { from: number; to: number; calls: number[] }[] = [];
  return {
    counts,
    count: async () => {
      const from = performance.now();
      const scrapes = await Promise.all(fleet.workers.map(({ metricsUrl }) => scrape(metricsUrl)));
      const calls = scrapes.flatMap((samples) =>
        ["first", "second"].map((endpoint) => sumOf(samples, "pay_rpc_calls_total", { endpoint }) ?? 0),
      );
      counts.push({ from, to: performance.now(), calls });
    },
  };
}

/**
 * Makes blocks in rounds, with foreign transfers and the stages of the endpoints, until it is stopped. Only this makes blocks,
 * so the final height before each round is exactly the one up to which payments may have succeeded.
 */
function startRounds(
  chain: TestChain,
  fleet: Fleet,
  {
    moveForeign,
    setRules,
    count,
    hasRefused,
  }: {
    moveForeign: (transfers: number) => Promise<Hex>;
    setRules: (rules: readonly [ProviderRules, ProviderRules]) => void;
    count: () => Promise<void>;
    /** Whether an endpoint has refused a call for its budget. */
    hasRefused: () => boolean;
  },
) {
  const check = checkSucceeded(fleet, chain);
  let [done, extra] = [0, 0];
  let stopped = false;
  const hasRead = async (height: number) => {
    const [row] = await execute(fleet.databaseUrl, "SELECT number FROM chain_cursor");
    return Number(row?.["number"]) >= height;
  };
  // The first stage lasts until an endpoint has refused a call, because the calls come slower on a slow machine.
  const isFirstOver = () => done + 1 !== stages[0]?.rounds || hasRefused() || extra === EXTRA_ROUNDS;
  const run = async () => {
    let final = 0;
    let standsStill = false;
    while (!stopped) {
      await check(final);
      await count();
      const head = Number(await chain.client.getBlockNumber());
      const rules = done < ruleOf.length ? ruleOf[done]?.({ head, final }) : ([{}, {}] as const);
      if (rules) {
        setRules(rules);
        standsStill = rules.some(({ tags }) => tags !== undefined);
      }
      await moveForeign(FOREIGN_TRANSFERS);
      // Set before the blocks exist, because the service can see them at once.
      if (!standsStill) final = Math.floor((head + BLOCKS - JUMP.depth) / JUMP.step) * JUMP.step;
      await mine(chain, BLOCKS);
      await waitFor(() => hasRead(head), { within: 60_000, every: 200, what: `the watcher has read block ${head}` });
      if (isFirstOver()) done += 1;
      else extra += 1;
    }
    await check(final);
  };
  const running = run();
  return {
    running,
    hasEveryStageRun: () => done > ruleOf.length,
    stop: () => {
      stopped = true;
      return running;
    },
  };
}

test("200 payments succeed behind two endpoints with every limit and fault of real providers, none before its block is final, and no minute has more calls than the budget", {
  // Alone it takes a minute; other tests run concurrently, and on a busy machine it takes three.
  timeout: 600_000,
}, async () => {
  const chain = await startChain({ lanes: 2 });
  const providers = await Promise.all([0, 1].map(() => startRealisticProvider({ target: chain.url, ...always })));
  const rpc = ["first", "second"].map((name, index) => {
    return { name, url: providers[index]?.url, callsPerMinute: CALLS_PER_MINUTE };
  });
  const change = { rpc, finality: "safe", logRange: 2_000, rpcTimeoutMs: TIMEOUT_MS, pollMs: 500 };
  const fleet = await startFleet({ chain, change });
  const buyers = await fundBuyers(chain, BUYERS);
  const moveForeign = await makeForeignTraffic(chain);
  await chain.client.setAutomine(false);
  const { counts, count } = countCalls(fleet);
  const setRules = (rules: readonly [ProviderRules, ProviderRules]) => {
    for (const [index, provider] of providers.entries()) provider.setRules({ ...always, ...rules[index] });
  };
  const hasRefused = () => providers.some((provider) => "budget" in provider.counts.refused);
  const rounds = startRounds(chain, fleet, { moveForeign, setRules, count, hasRefused });
  onTestFinished(() => void rounds.stop());
  const payAll = async () => {
    const payers = Array.from({ length: PAYMENTS }, (_, index) => buyers[index % BUYERS] as PrivateKeyAccount);
    await mapConcurrently(payers, 16, (buyer) => buy(fleet, chain, buyer));
    await waitFor(rounds.hasEveryStageRun, { within: 300_000, what: "every stage has run" });
    await waitUntilIdle(fleet, 90_000);
  };
  await Promise.race([payAll(), rounds.running]);
  await rounds.stop();

  await expectSound(fleet, chain, { succeeded: PAYMENTS });
  const refused = providers.flatMap((provider) => Object.keys(provider.counts.refused));
  expect(refused).toEqual(expect.arrayContaining(["budget", "hang", "logs", "prunedBelow"]));
  for (const earlier of counts)
    for (const later of counts.filter(({ from, to }) => from > earlier.from && to - earlier.from < WINDOW_MS))
      for (const [index, calls] of later.calls.entries())
        expect(calls - (earlier.calls[index] ?? 0)).toBeLessThanOrEqual(CALLS_PER_MINUTE);
  const scrapes = await Promise.all(fleet.workers.map(({ metricsUrl }) => scrape(metricsUrl)));
  expect(sumOf(scrapes.flat(), "pay_rpc_budget_shortages_total")).toBeGreaterThan(0);
});
