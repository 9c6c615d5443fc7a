import { type Hex, pad } from "viem";
import type { EvmMovement } from "../token-movement.ts";
import { TRANSFER_TOPIC } from "./abi.ts";
import type { Rpc } from "./evm-rpc.ts";
import { type LogBlocks, type LogFilter, readLogs } from "./read-logs.ts";
import { type OurContracts, readTransferLogs } from "./transfer-logs.ts";

/**
 * The accounts whose movements are read, in lower case: the treasury, and the other accounts that buyers pay. Only their
 * movements are asked for, so that transfers between strangers cost nothing.
 */
export type WatchedAccounts = { contracts: OurContracts; tokens: readonly Hex[]; receivers: ReadonlySet<string> };

/**
 * Most accounts that one call names. Nodes and providers limit them: Geth to 1,000 per position, Infura to 5,000 in all.
 */
export const MAX_ACCOUNTS_PER_CALL = 500;

/**
 * Returns the movements of the watched accounts in these blocks, without their natural keys: other logs of the same
 * transactions show those (transaction-movements.ts). Throws the errors of `readLogs`.
 */
export async function readAccountMovements(
  rpc: Rpc,
  blocks: LogBlocks,
  accounts: WatchedAccounts,
): Promise<EvmMovement[]> {
  const logs = await readLogs(rpc, blocks, listFilters(accounts));
  return readTransferLogs(logs, accounts.contracts).filter((movement) => isWatched(accounts, movement));
}

/** Returns true if a movement goes into or out of a watched account. An endpoint may return other logs than were asked for. */
export function isWatched(
  { contracts, tokens, receivers }: WatchedAccounts,
  { token, payer, receiver }: Pick<EvmMovement, "token" | "payer" | "receiver">,
): boolean {
  const { treasury } = contracts;
  return tokens.includes(token as Hex) && (payer === treasury || receiver === treasury || receivers.has(receiver));
}

/** Returns the filters that select the transfers out of the treasury and into each account. */
export function listFilters({ contracts, tokens, receivers }: WatchedAccounts): LogFilter[] {
  const { treasury } = contracts;
  const into = [treasury, ...[...receivers].filter((one) => one !== treasury)].map((one) => pad(one as Hex));
  const parts = Array.from({ length: Math.ceil(into.length / MAX_ACCOUNTS_PER_CALL) }, (_, index) =>
    into.slice(index * MAX_ACCOUNTS_PER_CALL, (index + 1) * MAX_ACCOUNTS_PER_CALL),
  );
  return [
    ...parts.map((some): LogFilter => ({ address: tokens, topics: [[TRANSFER_TOPIC], null, some] })),
    { address: tokens, topics: [[TRANSFER_TOPIC], [pad(treasury)]] },
  ];
}
