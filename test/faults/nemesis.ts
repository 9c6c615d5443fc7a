import { setTimeout as pause } from "node:timers/promises";
import { Redis } from "ioredis";
import { type Endpoint, type Mood, moods } from "./endpoint.ts";
import type { EvmStage } from "./evm-stage.ts";
import type { Miner } from "./miner.ts";
import type { Random } from "./random.ts";
import { solanaFaults } from "./solana-faults.ts";
import type { Stage } from "./stage.ts";

/** A fault that was there, times in milliseconds. */
export type Injected = { fault: string; from: number; to: number };

/** One way to break something: breaks it, and has mended it when it is over. */
export type Fault = { name: string; run(): Promise<unknown> };

/** Longest rest of each hand between two faults in a run of a minute or more: payments have to flow between them. */
const restMs = { endpoints: 3_000, processes: 7_000, chain: 2_000, "solana endpoints": 3_000, solana: 3_000 };
const unhurriedMs = 60_000;
/** A mood that nobody has felt lasts so much longer. */
const patienceMs = 5_000;

/**
 * Breaks everything that may break, with hands side by side: the endpoints of each chain, the processes with their
 * stores, and the chains themselves. Each hand goes through all its faults in an order that the seed decides, again and
 * again, and through all of them once at least; after `enough` it stops. Nothing is broken any more when this returns.
 */
export async function breakThings(
  args: { stage: Stage; miner: Miner | undefined; random: Random; durationMs: number; signal: AbortSignal },
  enough: Promise<unknown>,
): Promise<Injected[]> {
  const injected: Injected[] = [];
  let isEnough = false;
  void enough.then(() => {
    isEnough = true;
  });
  // A short run has to be denser, for every fault to have its turn.
  const pace = Math.min(1, args.durationMs / unhurriedMs);
  const play = async (name: keyof typeof restMs, deal: (random: Random) => Fault[]): Promise<void> => {
    const rest = Math.ceil(restMs[name] * pace);
    const random = args.random.branch(name);
    const faults = deal(random);
    for (let round = 0; round === 0 || !isEnough; round += 1) {
      for (const fault of random.shuffle(faults)) {
        if (args.signal.aborted || (isEnough && round > 0)) return;
        await pause(random.between(Math.ceil(rest / 3), rest), undefined, { signal: args.signal }).catch(
          () => undefined,
        );
        const from = performance.now();
        await fault.run();
        injected.push({ fault: fault.name, from, to: performance.now() });
      }
    }
  };
  const { stage, miner } = args;
  const { evm, solana } = stage;
  const hands = [play("processes", (random) => processFaults(stage, random))];
  if (evm && miner)
    hands.push(
      play("endpoints", (random) => endpointFaults({ stage, endpoints: evm.endpoints, name: "an endpoint", random })),
      play("chain", (random) => chainFaults(evm, miner, random)),
    );
  if (solana)
    hands.push(
      play("solana endpoints", (random) =>
        endpointFaults({ stage, endpoints: solana.endpoints, name: "a Solana endpoint", random }),
      ),
      play("solana", (random) => solanaFaults(solana, random)),
    );
  await Promise.all(hands);
  return injected;
}

type Endpoints = { stage: Stage; endpoints: readonly Endpoint[]; name: string; random: Random };

/** Every mood of one endpoint or of both for a while, until somebody has felt it. Whoever starts meanwhile meets it, too. */
function endpointFaults({ stage, endpoints, name, random }: Endpoints): Fault[] {
  const set = async (mood: Mood) => {
    const [first, second] = endpoints;
    const chosen = random.pick(whomFor(mood).map((some) => some.map((index) => [first, second][index])));
    for (const endpoint of chosen) endpoint?.setMood(mood);
    // Which chain an endpoint serves is asked by a process that starts.
    if (mood === "serves another chain") kill(stage, random, "worker", "SIGKILL");
    const isFelt = () => chosen.some((endpoint) => (endpoint?.felt() ?? 0) > 0);
    await pause(random.between(700, 2_500));
    for (const until = Date.now() + patienceMs; !isFelt() && Date.now() < until; ) await pause(50);
    for (const endpoint of chosen) endpoint?.setMood(undefined);
  };
  return moods.map((mood) => ({ name: `${name} ${mood}`, run: () => set(mood) }));
}

/** Which endpoints may have a mood at the same time, each choice by their numbers. */
function whomFor(mood: Mood): readonly (readonly number[])[] {
  // An answer that one endpoint loses, the other one gives.
  if (mood === "loses answers to sends" || mood === "drops what it has accepted") return [[0, 1]];
  // What all endpoints say never to have seen is not there: nobody can know better.
  if (mood === "forgets what became of transactions") return [[0], [1]];
  return [[0], [1], [0, 1]];
}

function processFaults(stage: Stage, random: Random): Fault[] {
  const { redis, postgres } = stage;
  const flush = async () => {
    const client = new Redis(redis.url);
    await client.flushall();
    client.disconnect();
  };
  const freeze = async () => {
    const pid = kill(stage, random, "worker", "SIGSTOP");
    // Longer than a lease: whoever wakes up must find out that somebody else has taken over.
    await pause(random.between(5_500, 7_000));
    if (pid !== undefined) signalProcess(pid, "SIGCONT");
  };
  const restart = async (service: typeof redis, how: NodeJS.Signals) => {
    await service.kill(how);
    await pause(random.between(0, 1_500));
    await service.start();
  };
  return [
    { name: "kill -9 of a worker", run: async () => kill(stage, random, "worker", "SIGKILL") },
    { name: "kill -9 of a worker", run: async () => kill(stage, random, "worker", "SIGKILL") },
    { name: "kill -9 of an api", run: async () => kill(stage, random, "api", "SIGKILL") },
    { name: "a worker stands still", run: freeze },
    { name: "FLUSHALL", run: flush },
    { name: "Redis restarts", run: () => restart(redis, random.pick(["SIGKILL", "SIGTERM"])) },
    // An immediate shutdown, or not even that.
    { name: "Postgres restarts", run: () => restart(postgres, random.pick(["SIGQUIT", "SIGKILL"])) },
  ];
}

function chainFaults({ client, blockMs, keys }: EvmStage, miner: Miner, random: Random): Fault[] {
  const spike = async () => {
    const { baseFeePerGas } = await client.getBlock();
    // Far from what lanes have offered, and under what they may offer.
    const least = baseFeePerGas === null || baseFeePerGas < lowFee ? lowFee : baseFeePerGas;
    const raised = least * BigInt(random.between(2, 50));
    await miner.setBaseFee(raised < highFee ? raised : highFee);
    await pause(blockMs);
  };
  const drop = async () => {
    for (const until = Date.now() + random.between(1_000, 3_000); Date.now() < until; await pause(50)) {
      const { pending } = await client.getTxpoolContent();
      const ours = keys.lanes.flatMap(({ address }) => Object.values(pending[address] ?? {}));
      for (const { hash } of ours)
        if (random.chance(0.5)) await client.dropTransaction({ hash }).catch(() => undefined);
    }
  };
  const reorg = { name: "a reorg", run: () => miner.reorg(random.between(1, 5)) };
  return [reorg, reorg, { name: "the base fee jumps", run: spike }, { name: "transactions are dropped", run: drop }];
}

const lowFee = 1_000_000_000n;
const highFee = 60_000_000_000n;

/** Signals one process of a role. Undefined when none runs now. */
function kill(stage: Stage, random: Random, role: "api" | "worker", signal: NodeJS.Signals): number | undefined {
  const pids = stage.supervisor.pids(role);
  if (pids.length === 0) return undefined;
  const pid = random.pick(pids);
  signalProcess(pid, signal);
  return pid;
}

function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It was gone before we came.
  }
}
