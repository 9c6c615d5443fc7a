import { type Hex, pad, type RpcLog } from "viem";
import { ChainError } from "../errors.ts";
import type { EvmMovement } from "../token-movement.ts";
import { AUTHORIZATION_USED_TOPIC, TRANSFER_TOPIC } from "./abi.ts";
import { COLLECTED_TOPIC } from "./collector-contract.ts";
import { DISBURSED_TOPIC } from "./disburser-contract.ts";
import { type Receipt, readReceipt } from "./evm-broadcast.ts";
import { classifyLogError } from "./log-errors.ts";
import { isSlow } from "./log-ranges.ts";
import { findMovement, keepMovements } from "./movement-readings.ts";
import type { EvmChain } from "./open-evm-chain.ts";
import { type LogFilter, readLogs } from "./read-logs.ts";
import { matchPushes, readTransferLogs } from "./transfer-logs.ts";

/** Transactions whose receipts are asked for at the same time. */
const CONCURRENT_TRANSACTIONS = 8;

/**
 * Returns movements with their natural keys, which other logs of their transactions show. Reads the receipt of each
 * transaction that is not among `known`, and the transaction of each push: the cost depends on these movements, and not
 * on what else the blocks contain. Where a receipt may be too large for the endpoint or the time, reads the logs of its block
 * that name the payers. What an earlier call has read from the same endpoint is not read again, so that calls that fail
 * get further each time. Throws ChainError `rpc_behind` while the endpoint lacks a receipt or shows other logs.
 * @param known the logs of transactions that were read already
 */
export async function readNaturalKeys(
  chain: EvmChain,
  movements: readonly EvmMovement[],
  known: readonly Pick<Receipt, "hash" | "logs">[] = [],
): Promise<EvmMovement[]> {
  const logsOf = new Map<string, readonly RpcLog[]>(known.map(({ hash, logs }) => [hash, logs]));
  const keyed = new Map<string, EvmMovement>();
  for (const movement of movements) {
    const kept = logsOf.has(movement.txHash) ? undefined : findMovement(chain, movement);
    if (kept && isSame(kept, movement)) keyed.set(keyOf(movement), kept);
  }
  const unread = movements.filter((movement) => !keyed.has(keyOf(movement)));
  const missing = [...Map.groupBy(unread, ({ txHash }) => txHash)];
  for (let first = 0; first < missing.length; first += CONCURRENT_TRANSACTIONS) {
    const some = missing.slice(first, first + CONCURRENT_TRANSACTIONS);
    const read = some.map(([hash, made]) => readKeysOf(chain, { hash, made, logs: logsOf.get(hash) }));
    for (const one of (await Promise.all(read)).flat()) keyed.set(keyOf(one), one);
  }
  return movements.map((movement) => ({ ...movement, ...keyed.get(keyOf(movement)), at: movement.at }));
}

/**
 * Returns the movements of one transaction with their natural keys, and keeps them.
 * @param args.logs the logs of its receipt, if that was read already
 */
async function readKeysOf(
  chain: EvmChain,
  { hash, made, logs }: { hash: Hex; made: readonly EvmMovement[]; logs: readonly RpcLog[] | undefined },
): Promise<EvmMovement[]> {
  const kinds = new Map<string, string>([...chain.tokens.values()].map(({ token, kind }) => [token, kind]));
  const isPush = ({ token, receiver }: EvmMovement) => kinds.get(token) === "push" && receiver === chain.treasury;
  const read = logs ?? (made.every(isPush) ? [] : await readLogsOf(chain, hash, made));
  const shown = new Map(readTransferLogs(read, chain).map((log) => [keyOf(log), log]));
  const keyed = made.map((movement) => {
    const found = shown.get(keyOf(movement));
    if (found && isSame(found, movement)) return found;
    if (isPush(movement)) return { ...movement };
    throw new ChainError("rpc_behind", { detail: `another receipt of ${hash}` });
  });
  await matchPushes(
    chain.rpc,
    keyed.filter((one) => one.authorizationNonce === null && isPush(one)),
  );
  // Only now: a receipt that the endpoint shows with other logs has to be read again.
  keepMovements(chain, keyed);
  return keyed;
}

/**
 * Returns the logs of a transaction that can show the movements that these payers have made, and their natural keys. Throws ChainError
 * `rpc_behind` while the endpoint lacks the receipt.
 */
export async function readLogsOf(
  chain: EvmChain,
  hash: Hex,
  made: readonly (Paid & Pick<EvmMovement, "blockId">)[],
): Promise<readonly RpcLog[]> {
  try {
    const receipt = await readReceipt(chain.rpc, hash);
    if (!receipt) throw new ChainError("rpc_behind", { detail: `receipt of ${hash}` });
    return receipt.logs;
  } catch (cause) {
    const [block] = made.map(({ blockId }) => blockId);
    if (block === undefined || !isTooLarge(cause)) throw cause;
    return readLogsOfPayers(chain, { hash, block, made });
  }
}

/** Returns true for the error of an endpoint for which a receipt may be too large, or which may need too long for it. */
export function isTooLarge(error: unknown): boolean {
  return classifyLogError(error).kind === "too_large" || isSlow(error);
}

/** Returns the logs of a transaction that its block shows and that can show the natural keys of the movements of these payers. */
export async function readLogsOfPayers(
  chain: EvmChain,
  { hash, block, made }: { hash: Hex; block: Hex; made: readonly Paid[] },
): Promise<readonly RpcLog[]> {
  const logs = await readLogs(chain.rpc, { blockHash: block }, listKeyFilters(chain, made));
  return logs.filter(({ transactionHash }) => transactionHash === hash);
}

type Paid = Pick<EvmMovement, "token" | "payer">;

/** Returns the filters that select the movements of these payers, and the logs that show their natural keys. */
function listKeyFilters({ collector, disburser }: EvmChain, made: readonly Paid[]): LogFilter[] {
  const tokens = [...new Set(made.map(({ token }) => token))];
  const payers = [...new Set(made.map(({ payer }) => pad(payer)))];
  return [
    { address: tokens, topics: [[TRANSFER_TOPIC, AUTHORIZATION_USED_TOPIC], payers] },
    {
      address: [collector, disburser],
      topics: [[COLLECTED_TOPIC, DISBURSED_TOPIC], tokens.map((token) => pad(token))],
    },
  ];
}

/** Returns the place of a movement: its block, transaction and log. */
const keyOf = ({ blockId, txHash, logIndex }: EvmMovement) => `${blockId} ${txHash} ${logIndex}`;

const isSame = (one: EvmMovement, other: EvmMovement) =>
  one.token === other.token &&
  one.payer === other.payer &&
  one.receiver === other.receiver &&
  one.amount === other.amount;
