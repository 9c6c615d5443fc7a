import type { Rows } from "./database-rows.ts";
import type { ChainTransfer } from "./evm-scan.ts";
import type { Evidence } from "./payment-invariants.ts";

/** A token movement as a row describes it. */
export type Movement = { token: string; payer: string; receiver: string; amount: bigint; nonce: string };

/** Returns the transfers on every chain of the run. */
export function listMovements({ evm, solana }: Pick<Evidence, "evm" | "solana">): ChainTransfer[] {
  return [...(evm?.scan.transfers ?? []), ...(solana?.scan.transfers ?? [])];
}

/** Returns the transfers into and out of the treasuries. Transfers of zero are not movements. */
export function listTreasuryMovements(evidence: Evidence): { incoming: ChainTransfer[]; outgoing: ChainTransfer[] } {
  const treasuries = [evidence.evm?.treasury, evidence.solana?.treasury];
  const moved = listMovements(evidence).filter(({ amount }) => amount > 0n);
  return {
    incoming: moved.filter(({ to }) => treasuries.includes(to)),
    outgoing: moved.filter(({ from }) => treasuries.includes(from)),
  };
}

/** Returns whether the log has the movement's token, payer, receiver, amount and nonce. */
export function isTransferOf(log: ChainTransfer, { token, payer, receiver, amount, nonce }: Movement): boolean {
  return (
    log.nonce === nonce && log.token === token && log.from === payer && log.to === receiver && log.amount === amount
  );
}

export const placeOf = ({ txHash, logIndex }: Pick<ChainTransfer, "txHash" | "logIndex">) => `${txHash} ${logIndex}`;

/** Returns the places of the movements that are booked as single exceptions. */
export function listExceptions({ entries }: Rows): Set<string> {
  const booked = entries.filter(({ account }) => account.startsWith("exceptions"));
  return new Set(booked.map(({ txHash, logIndex }) => `${txHash} ${logIndex}`));
}

/** Returns the values that occur more than once. */
export function findDuplicates(values: readonly string[]): string[] {
  return [...Map.groupBy(values, (value) => value)].flatMap(([value, all]) => (all.length > 1 ? [value] : []));
}

/** Sums the amounts by key. */
export function sumBy<R extends { amount: bigint }>(
  rows: readonly R[],
  keyOf: (row: R) => string,
): Map<string, bigint> {
  return new Map(
    [...Map.groupBy(rows, keyOf)].map(([key, all]) => [key, all.reduce((sum, { amount }) => sum + amount, 0n)]),
  );
}
