import { setTimeout as pause } from "node:timers/promises";
import type { Agenda } from "./agenda.ts";
import { assetFault } from "./assets.ts";
import { clockFault } from "./clocks.ts";
import { type Endpoint, type Mood, moods } from "./endpoint.ts";
import { evmFaults } from "./evm-faults.ts";
import { issuerFaults } from "./issuers.ts";
import { freezeForAMinute, kill, processFaults } from "./process-faults.ts";
import type { Random } from "./random.ts";
import { solanaFaults } from "./solana-faults.ts";
import { solanaStrangerFaults } from "./solana-strangers.ts";
import type { Stage } from "./stage.ts";
import { failoverFault, restoreFault } from "./step-back.ts";
import { strangerFaults } from "./strangers.ts";
import type { Wishes } from "./wishes.ts";

/** A fault that was there, times in milliseconds. */
export type Injected = { fault: string; from: number; to: number };

/** One way to break something: breaks it, and has mended it when it is over. */
export type Fault = { name: string; run(): Promise<unknown> };

/** Faults that one hand injects one after the other, and how long it rests between two of them at most. */
type Hand = { name: string; restMs: number; faults: Fault[] };

/** A run of a minute or more has the rests in full; a shorter one has to be denser. */
const unhurriedMs = 60_000;
/** A mood that nobody has felt lasts so much longer. */
const patienceMs = 3_000;

/** What a run is broken with: hands that work side by side, and the heavy fault of the seed. */
export type Nemesis = { hands: readonly Hand[]; rare: Fault };

/** Readies everything that is broken later, while nothing is broken yet: strangers are funded here. */
export async function prepareNemesis(args: {
  stage: Stage;
  wishes: Wishes | undefined;
  agenda: Agenda;
  random: Random;
}): Promise<Nemesis> {
  const { stage, wishes, agenda } = args;
  const { evm, solana } = stage;
  const alone = oneAtATime();
  const of = (name: string) => args.random.branch(name);
  const hands: Hand[] = [
    { name: "processes", restMs: 5_000, faults: processFaults(stage, { random: of("processes"), alone }) },
  ];
  const endpoints = (name: string, all: readonly Endpoint[], random: Random) =>
    endpointFaults({ stage, endpoints: all, name, random });
  if (evm && wishes)
    hands.push(
      { name: "endpoints", restMs: 2_000, faults: endpoints("an endpoint", evm.endpoints, of("endpoints")) },
      { name: "chain", restMs: 2_000, faults: evmFaults(evm, of("chain")) },
      {
        name: "issuers",
        restMs: 3_000,
        faults: await issuerFaults(evm, { wishes, random: of("issuers"), takesFees: agenda.takesFees }),
      },
      { name: "strangers", restMs: 1_500, faults: await strangerFaults(evm, of("strangers")) },
    );
  if (solana)
    hands.push(
      {
        name: "solana endpoints",
        restMs: 2_000,
        faults: endpoints("a Solana endpoint", solana.endpoints, of("solana endpoints")),
      },
      { name: "solana", restMs: 3_000, faults: solanaFaults(solana, of("solana")) },
      { name: "solana strangers", restMs: 5_000, faults: await solanaStrangerFaults(solana, of("solana strangers")) },
    );
  return { hands, rare: rareFault(stage, agenda, { random: of("rare"), alone }) };
}

/**
 * Breaks everything that may break. Each hand goes through all its faults in an order that the seed decides, again and
 * again, and through all of them once at least; after `enough` it stops. Nothing is broken any more when this returns.
 */
export async function breakThings(
  { hands, rare }: Nemesis,
  args: { random: Random; durationMs: number; signal: AbortSignal },
  enough: Promise<unknown>,
): Promise<Injected[]> {
  const { durationMs, signal } = args;
  const injected: Injected[] = [];
  let isEnough = false;
  void enough.then(() => {
    isEnough = true;
  });
  const pace = Math.min(1, durationMs / unhurriedMs);
  const rest = (ms: number) => pause(ms, undefined, { signal }).catch(() => undefined);
  const inject = async (fault: Fault) => {
    const from = performance.now();
    await fault.run();
    injected.push({ fault: fault.name, from, to: performance.now() });
  };
  const play = async ({ name, restMs, faults }: Hand): Promise<void> => {
    const random = args.random.branch(name);
    const most = Math.ceil(restMs * pace);
    for (let round = 0; round === 0 || !isEnough; round += 1)
      for (const fault of random.shuffle(faults)) {
        if (signal.aborted || (isEnough && round > 0)) return;
        await rest(random.between(Math.ceil(most / 3), most));
        await inject(fault);
      }
  };
  const playRare = async () => {
    await rest(durationMs * 0.2);
    if (!signal.aborted) await inject(rare);
  };
  await Promise.all([playRare(), ...hands.map(play)]);
  return injected;
}

function rareFault(
  stage: Stage,
  { rare }: Agenda,
  { random, alone }: { random: Random; alone: <T>(work: () => Promise<T>) => Promise<T> },
): Fault {
  const begin = (from: number) => {
    const lost = { from, to: Number.POSITIVE_INFINITY };
    stage.history.lost.push(lost);
    return lost;
  };
  switch (rare) {
    case "failover": {
      if (stage.replicated === undefined) throw new Error("a failover needs a replica");
      const { name, run } = failoverFault(stage.replicated, begin);
      return { name, run: () => alone(run) };
    }
    case "restore":
      return restoreFault(stage.postgres, { random, alone, begin });
    case "clocks":
      return clockFault(stage.clockFiles, random);
    case "minute freeze":
      return freezeForAMinute(stage, random);
    case "asset removed":
      return assetFault(stage, random.pick(stage.removable), random);
  }
}

/** Runs pieces of work that must not meet one after the other. */
function oneAtATime(): <T>(work: () => Promise<T>) => Promise<T> {
  let turn: Promise<unknown> = Promise.resolve();
  return (work) => {
    const mine = turn.then(work);
    turn = mine.catch(() => undefined);
    return mine;
  };
}

type Endpoints = { stage: Stage; endpoints: readonly Endpoint[]; name: string; random: Random };

/** Every mood of one endpoint or of both for a while, until a call has felt it. Who starts meanwhile meets it, too. */
function endpointFaults({ stage, endpoints, name, random }: Endpoints): Fault[] {
  const set = async (mood: Mood) => {
    const [first, second] = endpoints;
    const chosen = random.pick(whomFor(mood).map((some) => some.map((index) => [first, second][index])));
    for (const endpoint of chosen) endpoint?.setMood(mood);
    // Which chain an endpoint serves is asked by a process that starts.
    if (mood === "serves another chain") kill(stage, random, "worker", "SIGKILL");
    const isFelt = () => chosen.some((endpoint) => (endpoint?.felt() ?? 0) > 0);
    await pause(random.between(500, 2_000));
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
