import type { ChainTransfer } from "./chain-scan.ts";
import type { Evidence } from "./invariants.ts";
import type { Rows } from "./rows.ts";

/** What a row says of a token movement. */
export type Movement = { token: string; payer: string; receiver: string; amount: bigint; nonce: string };

/** What every chain of the run has moved. */
export function listMoved({ evm, solana }: Pick<Evidence, "evm" | "solana">): ChainTransfer[] {
  return [...(evm?.scan.transfers ?? []), ...(solana?.scan.transfers ?? [])];
}

/** Everything that reached or left a treasury. A transfer of nothing is no movement, whoever has made it. */
export function listOurs(evidence: Evidence): { inwards: ChainTransfer[]; outwards: ChainTransfer[] } {
  const treasuries = [evidence.evm?.treasury, evidence.solana?.treasury];
  const moved = listMoved(evidence).filter(({ amount }) => amount > 0n);
  return {
    inwards: moved.filter(({ to }) => treasuries.includes(to)),
    outwards: moved.filter(({ from }) => treasuries.includes(from)),
  };
}

/** True when the log shows this very movement: token, payer, receiver and amount, by this authorization. */
export function isTransferOf(log: ChainTransfer, { token, payer, receiver, amount, nonce }: Movement): boolean {
  return (
    log.nonce === nonce && log.token === token && log.from === payer && log.to === receiver && log.amount === amount
  );
}

export const placeOf = ({ txHash, logIndex }: Pick<ChainTransfer, "txHash" | "logIndex">) => `${txHash} ${logIndex}`;

/** Places of movements that the books hold as exceptions one by one. */
export function listExceptions({ entries }: Rows): Set<string> {
  const booked = entries.filter(({ account }) => account.startsWith("exceptions"));
  return new Set(booked.map(({ txHash, logIndex }) => `${txHash} ${logIndex}`));
}

/** Those that stand in a list more than once. */
export function repeated(values: readonly string[]): string[] {
  return [...Map.groupBy(values, (value) => value)].flatMap(([value, all]) => (all.length > 1 ? [value] : []));
}

/** Sums by a key. */
export function sumBy<R extends { amount: bigint }>(
  rows: readonly R[],
  keyOf: (row: R) => string,
): Map<string, bigint> {
  return new Map(
    [...Map.groupBy(rows, keyOf)].map(([key, all]) => [key, all.reduce((sum, { amount }) => sum + amount, 0n)]),
  );
}
