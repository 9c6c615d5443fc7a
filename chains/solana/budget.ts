import { ComputeBudgetProgram } from "@solana/web3.js";
import type { ParsedTransaction } from "./transactions.ts";

const PROGRAM = ComputeBudgetProgram.programId.toBase58();
/** The runtime's own figures for a transaction that says nothing. */
const DEFAULT_UNITS = 200_000;
const MOST_UNITS = 1_400_000;

/** Compute units that a transaction asks for, and micro-lamports that it offers for each. */
export function readBudget(parsed: Pick<ParsedTransaction, "instructions">): { units: number; unitPrice: bigint } {
  const budget = parsed.instructions.filter(({ program }) => program === PROGRAM);
  const dataOf = (kind: number) => {
    const found = budget.find(({ data }) => data[0] === kind);
    return found && Buffer.from(found.data);
  };
  const [limit, price] = [dataOf(2), dataOf(3)];
  const others = parsed.instructions.length - budget.length;
  return {
    units: Math.min(limit ? limit.readUInt32LE(1) : DEFAULT_UNITS * others, MOST_UNITS),
    unitPrice: price ? price.readBigUInt64LE(1) : 0n,
  };
}
