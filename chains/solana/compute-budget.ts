import { BUDGET_PROGRAM, defaultUnits, MAX_COMPUTE_UNITS } from "./wallet-instructions.ts";
import type { ParsedTransaction } from "./wire-format.ts";

/** Returns the compute unit limit of a transaction, and its price per unit in micro-lamports. */
export function readBudget(parsed: Pick<ParsedTransaction, "instructions">): { units: number; unitPrice: bigint } {
  const budget = parsed.instructions.filter(({ program }) => program === BUDGET_PROGRAM);
  const dataOf = (kind: number) => {
    const found = budget.find(({ data }) => data[0] === kind);
    return found && Buffer.from(found.data);
  };
  const [limit, price] = [dataOf(2), dataOf(3)];
  const others = parsed.instructions.length - budget.length;
  return {
    units: limit
      ? Math.min(limit.readUInt32LE(1), Number(MAX_COMPUTE_UNITS))
      : Number(defaultUnits(budget.length, others)),
    unitPrice: price ? price.readBigUInt64LE(1) : 0n,
  };
}

/** Share of the simulated units that is added, in percent, and the least that is added. */
const MARGIN_PERCENT = 10;
const LEAST_MARGIN = 1_000;

/**
 * Returns the unit limit of a transaction whose simulation took `units`: these and a margin, at most `most`. The priority fee
 * is paid for the limit, not for what is used.
 */
export function limitUnits(units: number, most: number): number {
  return Math.min(most, units + Math.max(LEAST_MARGIN, Math.ceil((units * MARGIN_PERCENT) / 100)));
}
