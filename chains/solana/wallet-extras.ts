import { ComputeBudgetProgram } from "@solana/web3.js";

/** An instruction with its accounts by address; `number` counts from one, as a person does. */
export type PlainInstruction = { number: number; program: string; accounts: string[]; data: Uint8Array };

/** What wallets may add to a transaction or set anew: their own compute budget, and guards. */
export const BUDGET_PROGRAM = ComputeBudgetProgram.programId.toBase58();
export const GUARD_PROGRAM = "L2TExMFKdjpN9kozasaurPirfHy9P8sbXoAN1qA3S95";

const SET_LIMIT = 2;
const SET_PRICE = 3;
/** The runtime's: units that a transaction has at most. */
export const MOST_UNITS = 1_400_000n;
/** Units of one that sets no limit, for each instruction; those of the budget are built in and get less (SIMD-0170). */
const DEFAULT_UNITS = 200_000n;
const BUILT_IN_UNITS = 3_000n;
const MICRO = 1_000_000n;

/** The most that a wallet is known to add; docs/decisions/wallet-guards.md. */
const MOST_GUARDS = 4;
/**
 * Lighthouse's instructions 2 to 14 assert something of accounts they only read. 0 and 1 write and close a memory account
 * and take a payer for its rent; 15 and 16 call other programs or speak of their trees.
 */
const FIRST_ASSERTION = 2;
const LAST_ASSERTION = 14;

/**
 * What speaks against the compute budget a wallet set: anything but the unit limit and the unit price, one of them
 * twice, or a price above `maxFee` lamports in all, as the runtime reckons it. `others` is how many instructions there
 * are beside these.
 */
export function findBudgetFaults(budget: readonly PlainInstruction[], others: number, maxFee: bigint): string[] {
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
    limits.length > 0 ? most(limits.map(({ data }) => readNumber(data))) : defaultUnits(budget.length, others);
  const price = most(prices.map(({ data }) => readNumber(data)));
  const fee = ((units < MOST_UNITS ? units : MOST_UNITS) * price + MICRO - 1n) / MICRO;
  if (fee > maxFee) reasons.push(`the priority fee of ${fee} lamports is above the ${maxFee} that we pay at most`);
  return reasons;
}

/** The units that the runtime gives a transaction without a limit, by its instructions of the budget and its others. */
export function defaultUnits(budget: number, others: number): bigint {
  const units = BUILT_IN_UNITS * BigInt(budget) + DEFAULT_UNITS * BigInt(others);
  return units < MOST_UNITS ? units : MOST_UNITS;
}

/** What speaks against the guards a wallet added: too many, a kind that does more than read, or an account we protect. */
export function findGuardFaults(
  guards: readonly PlainInstruction[],
  isProtected: (address: string) => boolean,
): string[] {
  const reasons: string[] = [];
  if (guards.length > MOST_GUARDS) {
    reasons.push(`there are ${guards.length} Lighthouse guards, ${MOST_GUARDS} are allowed`);
  }
  for (const { number, accounts, data } of guards) {
    const kind = data[0] ?? 0;
    if (kind < FIRST_ASSERTION || kind > LAST_ASSERTION) {
      reasons.push(`instruction ${number} of Lighthouse does more than assert what an account holds`);
    }
    for (const address of new Set(accounts.filter(isProtected))) {
      reasons.push(
        `instruction ${number} of Lighthouse names ${address}, which is the fee payer or an account of ours`,
      );
    }
  }
  return reasons;
}

/** The little-endian number behind the first byte. */
function readNumber(data: Uint8Array): bigint {
  return data.subarray(1).reduceRight((sum, byte) => sum * 256n + BigInt(byte), 0n);
}

function most(numbers: readonly bigint[]): bigint {
  return numbers.reduce((highest, one) => (one > highest ? one : highest), 0n);
}
