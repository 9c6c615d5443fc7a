import { type Limit, limits } from "./log-limits.ts";
import type { Conditions, Family } from "./plan.ts";
import type { Random } from "./random.ts";

/** Heavy faults: each seed has one of them, in turn, so that any five seeds in a row have them all. */
export const rareFaults = ["failover", "restore", "clocks", "minute freeze", "asset removed"] as const;
export type RareFault = (typeof rareFaults)[number];

/** What a seed has in store beside the faults that every seed has. */
export type Agenda = Conditions & {
  rare: RareFault;
  /** What the endpoints of the EVM chain allow eth_getLogs; the first endpoint for the whole run, the second by chance. */
  logLimits: readonly (Limit | undefined)[];
  /** Payouts are accumulated for some seconds. */
  accumulates: boolean;
};

/** Decides by the seed; `rare` is the operator's own choice, for the study of one fault. */
export function makeAgenda(
  seed: number,
  random: Random,
  { chains, rare }: { chains: readonly Family[]; rare?: RareFault | undefined },
): Agenda {
  // A chain cannot do without its only asset.
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

/** One line for a person. */
export function describeAgenda({ rare, logLimits, takesFees, accumulates }: Agenda): string {
  const limited = logLimits.flatMap((limit) => (limit ? `${limit.blocks} blocks or ${limit.logs} logs` : []));
  return [
    rare,
    limited.length === 0 ? "logs without limit" : `logs limited to ${limited.join(" and ")}`,
    takesFees ? "a token takes fees" : "no token takes fees",
    accumulates ? "payouts are accumulated" : "payouts one by one",
  ].join(", ");
}
