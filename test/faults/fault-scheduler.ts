import { setTimeout as pause } from "node:timers/promises";
import { assetRemovalFault } from "./asset-list-fault.ts";
import { clockFault } from "./clock-fault.ts";
import { failoverFault, losslessFailoverFault, restoreFault } from "./database-loss-faults.ts";
import { evmFaults } from "./evm-faults.ts";
import { evmThirdPartyFaults } from "./evm-third-parties.ts";
import { type Endpoint, type FaultMode, faultModes } from "./faulty-endpoint.ts";
import type { ContractChanges } from "./gas-oracle-server.ts";
import { issuerFaults } from "./issuer-faults.ts";
import { freezeForAMinute, kill, processFaults } from "./process-faults.ts";
import type { SeedFaults } from "./seed-faults.ts";
import type { Random } from "./seeded-random.ts";
import { solanaFaults } from "./solana-faults.ts";
import { solanaThirdPartyFaults } from "./solana-third-parties.ts";
import type { TestEnvironment } from "./test-environment.ts";

/** A fault that was injected; times in milliseconds. */
export type InjectedFault = { fault: string; from: number; to: number };

/** One fault: `run` injects it and resolves when it has been removed. */
export type Fault = { name: string; run(): Promise<unknown> };

/** A group of faults that are injected one at a time, and the longest pause between two of them. */
type FaultGroup = { name: string; maxPauseMs: number; faults: Fault[] };

/** A run of this length or more uses the full pauses; a shorter one shortens them. */
const fullPaceMs = 60_000;
/** How much longer an endpoint's failure lasts when no call has met it, milliseconds. */
const graceMs = 3_000;

/** The faults of a run: groups that run concurrently, and the heavy fault of the seed. */
export type FaultSchedule = { groups: readonly FaultGroup[]; rare: Fault };

/** Prepares the faults while nothing is broken yet: this funds the third parties. */
export async function prepareFaults(args: {
  environment: TestEnvironment;
  contractChanges: ContractChanges | undefined;
  seedFaults: SeedFaults;
  random: Random;
}): Promise<FaultSchedule> {
  const { environment, contractChanges, seedFaults } = args;
  const { evm, solana } = environment;
  const alone = oneAtATime();
  const of = (name: string) => args.random.branch(name);
  const groups: FaultGroup[] = [
    { name: "processes", maxPauseMs: 5_000, faults: processFaults(environment, { random: of("processes"), alone }) },
  ];
  const endpoints = (name: string, all: readonly Endpoint[], random: Random) =>
    endpointFaults({ environment, endpoints: all, name, random });
  if (evm && contractChanges)
    groups.push(
      { name: "endpoints", maxPauseMs: 2_000, faults: endpoints("an endpoint", evm.endpoints, of("endpoints")) },
      { name: "chain", maxPauseMs: 2_000, faults: evmFaults(evm, of("chain")) },
      {
        name: "issuers",
        maxPauseMs: 3_000,
        faults: await issuerFaults(evm, { contractChanges, random: of("issuers"), takesFees: seedFaults.takesFees }),
      },
      { name: "strangers", maxPauseMs: 1_500, faults: await evmThirdPartyFaults(evm, of("strangers")) },
    );
  if (solana)
    groups.push(
      {
        name: "solana endpoints",
        maxPauseMs: 2_000,
        faults: endpoints("a Solana endpoint", solana.endpoints, of("solana endpoints")),
      },
      { name: "solana", maxPauseMs: 3_000, faults: solanaFaults(solana, of("solana")) },
      {
        name: "solana strangers",
        maxPauseMs: 5_000,
        faults: await solanaThirdPartyFaults(solana, of("solana strangers")),
      },
    );
  return { groups, rare: rareFault(environment, seedFaults, { random: of("rare"), alone }) };
}

/**
 * Injects the faults. Each group repeats all its faults, each time in a random order, at least once and until `enough`
 * resolves. Every fault has been removed when this returns.
 */
export async function injectFaults(
  { groups, rare }: FaultSchedule,
  args: { random: Random; durationMs: number; signal: AbortSignal },
  enough: Promise<unknown>,
): Promise<InjectedFault[]> {
  const { durationMs, signal } = args;
  const injected: InjectedFault[] = [];
  let isEnough = false;
  void enough.then(() => {
    isEnough = true;
  });
  const pace = Math.min(1, durationMs / fullPaceMs);
  const rest = (ms: number) => pause(ms, undefined, { signal }).catch(() => undefined);
  const inject = async (fault: Fault) => {
    const from = performance.now();
    await fault.run();
    injected.push({ fault: fault.name, from, to: performance.now() });
  };
  const runGroup = async ({ name, maxPauseMs, faults }: FaultGroup): Promise<void> => {
    const random = args.random.branch(name);
    const most = Math.ceil(maxPauseMs * pace);
    for (let round = 0; round === 0 || !isEnough; round += 1)
      for (const fault of random.shuffle(faults)) {
        if (signal.aborted || (isEnough && round > 0)) return;
        await rest(random.between(Math.ceil(most / 3), most));
        await inject(fault);
      }
  };
  const runRare = async () => {
    await rest(durationMs * 0.2);
    if (!signal.aborted) await inject(rare);
  };
  await Promise.all([runRare(), ...groups.map(runGroup)]);
  return injected;
}

function rareFault(
  environment: TestEnvironment,
  { rare }: SeedFaults,
  { random, alone }: { random: Random; alone: <T>(work: () => Promise<T>) => Promise<T> },
): Fault {
  const begin = (from: number) => {
    const lost = { from, to: Number.POSITIVE_INFINITY };
    environment.history.lost.push(lost);
    return lost;
  };
  switch (rare) {
    case "failover":
    case "failover without loss": {
      if (environment.replicated === undefined) throw new Error("a failover needs a replica");
      const { name, run } =
        rare === "failover"
          ? failoverFault(environment.replicated, begin)
          : losslessFailoverFault(environment.replicated);
      return { name, run: () => alone(run) };
    }
    case "restore":
      return restoreFault(environment.postgres, { random, alone, begin });
    case "clocks":
      return clockFault(environment.clockFiles, random);
    case "minute freeze":
      return freezeForAMinute(environment, random);
    case "asset removed":
      return assetRemovalFault(environment, random.pick(environment.removable), random);
  }
}

/** Returns a function that runs work one piece at a time. */
function oneAtATime(): <T>(work: () => Promise<T>) => Promise<T> {
  let previous: Promise<unknown> = Promise.resolve();
  return (work) => {
    const mine = previous.then(work);
    previous = mine.catch(() => undefined);
    return mine;
  };
}

type Endpoints = { environment: TestEnvironment; endpoints: readonly Endpoint[]; name: string; random: Random };

/** Returns each failure as a fault of one or both endpoints that lasts until a call has met it. */
function endpointFaults({ environment, endpoints, name, random }: Endpoints): Fault[] {
  const set = async (faultMode: FaultMode) => {
    const [first, second] = endpoints;
    const chosen = random.pick(endpointsFor(faultMode).map((some) => some.map((index) => [first, second][index])));
    for (const endpoint of chosen) endpoint?.setFaultMode(faultMode);
    // A process checks the chain of an endpoint only when it starts.
    if (faultMode === "serves another chain") kill(environment, random, "worker", "SIGKILL");
    const isAffected = () => chosen.some((endpoint) => (endpoint?.affected() ?? 0) > 0);
    await pause(random.between(500, 2_000));
    for (const until = Date.now() + graceMs; !isAffected() && Date.now() < until; ) await pause(50);
    for (const endpoint of chosen) endpoint?.setFaultMode(undefined);
  };
  return faultModes.map((faultMode) => ({ name: `${name} ${faultMode}`, run: () => set(faultMode) }));
}

/** Returns the sets of endpoints, by index, that may have a failure at the same time. */
function endpointsFor(faultMode: FaultMode): readonly (readonly number[])[] {
  // Both endpoints: the other one would otherwise return what one loses.
  if (faultMode === "loses responses to sends" || faultMode === "drops accepted transactions") return [[0, 1]];
  // One endpoint only: a transaction that all endpoints have forgotten does not exist for the service.
  if (faultMode === "forgets receipts") return [[0], [1]];
  return [[0], [1], [0, 1]];
}
