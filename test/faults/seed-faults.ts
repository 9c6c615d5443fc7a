import { type Limit, limits } from "../support/log-limits.ts";
import type { Conditions, Family } from "./payment-plan.ts";
import type { Random } from "./seeded-random.ts";

/** Heavy faults: each seed has one of them, in rotation, so that any six consecutive seeds cover all of them. */
export const rareFaults = [
  "failover",
  "failover without loss",
  "restore",
  "clocks",
  "minute freeze",
  "asset removed",
] as const;
export type RareFault = (typeof rareFaults)[number];

/** The faults of one seed beside those that every seed has. */
export type SeedFaults = Conditions & {
  rare: RareFault;
  /** The eth_getLogs limits of the two EVM endpoints; undefined for an endpoint without a limit. */
  logLimits: readonly (Limit | undefined)[];
  /** Whether payouts accumulate for some seconds. */
  accumulates: boolean;
};

/** Derives the faults from the seed; `rare` overrides the heavy fault, for the study of one fault. */
export function drawSeedFaults(
  seed: number,
  random: Random,
  { chains, rare }: { chains: readonly Family[]; rare?: RareFault | undefined },
): SeedFaults {
  // Solana has one asset in these runs, and a chain needs at least one.
  const possible = rareFaults.filter((fault) => fault !== "asset removed" || chains.includes("evm"));
  const limited = random.chance(0.6);
  const both = random.chance(0.5);
  const draw = (): Limit => {
    const { words, code } = random.pick(limits);
    return { words, code, blocks: random.between(2, 8), logs: random.between(8, 40) };
  };
  const [first, second] = [draw(), draw()];
  return {
    rare: rare ?? (possible[seed % possible.length] as RareFault),
    logLimits: [limited ? first : undefined, limited && both ? second : undefined],
    takesFees: random.chance(0.3),
    accumulates: random.chance(0.5),
  };
}

/** Returns one readable line. */
export function describeSeedFaults({ rare, logLimits, takesFees, accumulates }: SeedFaults): string {
  const limited = logLimits.flatMap((limit) => (limit ? `${limit.blocks} blocks or ${limit.logs} logs` : []));
  return [
    rare,
    limited.length === 0 ? "no log limits" : `logs limited to ${limited.join(" and ")}`,
    takesFees ? "a token takes fees" : "no token takes fees",
    accumulates ? "payouts accumulate" : "payouts are immediate",
  ].join(", ");
}
