import { ComputeBudgetProgram } from "@solana/web3.js";

/** An instruction with its accounts as addresses. `number` is its position, counted from one. */
export type PlainInstruction = { number: number; program: string; accounts: string[]; data: Uint8Array };

/** A program that wallets may call on their own, as they may Lighthouse (lighthouse-guards.ts). */
export const BUDGET_PROGRAM = ComputeBudgetProgram.programId.toBase58();

const SET_LIMIT = 2;
const SET_PRICE = 3;
/** The runtime's maximum of compute units per transaction. */
export const MAX_COMPUTE_UNITS = 1_400_000n;
/**
 * Units per instruction of a transaction without a limit. The budget's instructions are builtins and get less
 * (SIMD-0170).
 */
const DEFAULT_UNITS = 200_000n;
const BUILT_IN_UNITS = 3_000n;
const MICRO = 1_000_000n;

/**
 * Returns the reasons to refuse a wallet's compute budget: an instruction other than the unit limit and the unit price, a
 * duplicate, or a priority fee above `maxFee` lamports by the runtime's formula.
 * @param others the number of instructions besides those of the budget
 */
export function validateComputeBudget(budget: readonly PlainInstruction[], others: number, maxFee: bigint): string[] {
  const reasons: string[] = [];
  const limits = budget.filter(({ data, accounts }) => data[0] === SET_LIMIT && data.length === 5 && !accounts.length);
  const prices = budget.filter(({ data, accounts }) => data[0] === SET_PRICE && data.length === 9 && !accounts.length);
  for (const one of budget) {
    if (limits.includes(one) || prices.includes(one)) continue;
    reasons.push(
      `instruction ${one.number} of the compute budget is neither SetComputeUnitLimit nor SetComputeUnitPrice in its plain form`,
    );
  }
  if (limits.length > 1) reasons.push("the compute unit limit is set more than once");
  if (prices.length > 1) reasons.push("the compute unit price is set more than once");
  const units =
    limits.length > 0 ? max(limits.map(({ data }) => readNumber(data))) : defaultUnits(budget.length, others);
  const price = max(prices.map(({ data }) => readNumber(data)));
  const fee = ((units < MAX_COMPUTE_UNITS ? units : MAX_COMPUTE_UNITS) * price + MICRO - 1n) / MICRO;
  if (fee > maxFee) reasons.push(`the priority fee of ${fee} lamports is above the ${maxFee} lamports that we pay`);
  return reasons;
}

/** Returns the compute units of a transaction without a limit, by its numbers of budget and other instructions. */
export function defaultUnits(budget: number, others: number): bigint {
  const units = BUILT_IN_UNITS * BigInt(budget) + DEFAULT_UNITS * BigInt(others);
  return units < MAX_COMPUTE_UNITS ? units : MAX_COMPUTE_UNITS;
}

/** Reads the little-endian number after the first byte. */
function readNumber(data: Uint8Array): bigint {
  return data.subarray(1).reduceRight((sum, byte) => sum * 256n + BigInt(byte), 0n);
}

function max(numbers: readonly bigint[]): bigint {
  return numbers.reduce((highest, one) => (one > highest ? one : highest), 0n);
}
