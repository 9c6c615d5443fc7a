import type { Hex } from "viem";
import { ChainError } from "../errors.ts";
import type { EvmMovement } from "../token-movement.ts";
import { type Receipt, readReceipt } from "./evm-broadcast.ts";
import type { EvmChain } from "./open-evm-chain.ts";
import { matchPushes, readTransferLogs } from "./transfer-logs.ts";

/** Receipts that are asked for at the same time. */
const CONCURRENT_RECEIPTS = 8;

/**
 * Returns movements with their natural keys, which other logs of their transactions show. Reads the receipt of each
 * transaction that is not among `known`, and the transaction of each push: the cost depends on these movements, and not
 * on what else the blocks contain. Throws ChainError `rpc_behind` while the endpoint lacks a receipt or shows other logs.
 * @param known receipts that were read already
 */
export async function readNaturalKeys(
  chain: EvmChain,
  movements: readonly EvmMovement[],
  known: readonly Receipt[] = [],
): Promise<EvmMovement[]> {
  const kinds = new Map<string, string>([...chain.tokens.values()].map(({ token, kind }) => [token, kind]));
  const isPush = ({ token, receiver }: EvmMovement) => kinds.get(token) === "push" && receiver === chain.treasury;
  const receipts = new Map<string, Receipt>(known.map((receipt) => [receipt.hash, receipt]));
  const missing = [...new Set(movements.filter((one) => !isPush(one)).map(({ txHash }) => txHash))].filter(
    (hash) => !receipts.has(hash),
  );
  for (let first = 0; first < missing.length; first += CONCURRENT_RECEIPTS) {
    const hashes = missing.slice(first, first + CONCURRENT_RECEIPTS);
    for (const receipt of await Promise.all(hashes.map((hash) => readPresent(chain, hash))))
      receipts.set(receipt.hash, receipt);
  }
  const shown = new Map(
    [...receipts.values()].flatMap(({ logs }) => readTransferLogs(logs, chain).map((log) => [keyOf(log), log])),
  );
  const keyed = movements.map((movement) => {
    const found = shown.get(keyOf(movement));
    if (found && isSame(found, movement)) return { ...found, at: movement.at };
    if (isPush(movement)) return { ...movement };
    throw new ChainError("rpc_behind", { detail: `another receipt of ${movement.txHash}` });
  });
  await matchPushes(
    chain.rpc,
    keyed.filter((one) => one.authorizationNonce === null && isPush(one)),
  );
  return keyed;
}

async function readPresent(chain: EvmChain, hash: Hex): Promise<Receipt> {
  const receipt = await readReceipt(chain.rpc, hash);
  if (!receipt) throw new ChainError("rpc_behind", { detail: `receipt of ${hash}` });
  return receipt;
}

/** Returns the place of a movement: its block, transaction and log. */
const keyOf = ({ blockId, txHash, logIndex }: EvmMovement) => `${blockId} ${txHash} ${logIndex}`;

const isSame = (one: EvmMovement, other: EvmMovement) =>
  one.token === other.token &&
  one.payer === other.payer &&
  one.receiver === other.receiver &&
  one.amount === other.amount;
