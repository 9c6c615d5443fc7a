import { encodeFunctionData, type Hex, hexToBigInt, pad, size } from "viem";
import { ChainError, parseAnswer } from "../../chains/errors.ts";
import { AUTHORIZATION_USED_TOPIC, permit2Abi, TRANSFER_TOPIC } from "../../chains/evm/abi.ts";
import { COLLECTED_TOPIC } from "../../chains/evm/collector-contract.ts";
import { encodeBlockNumber } from "../../chains/evm/current-block.ts";
import { DISBURSED_TOPIC, disburserAbi } from "../../chains/evm/disburser-contract.ts";
import { encodeAuthorizationState } from "../../chains/evm/eip3009.ts";
import { type BlockRange, readRangeInParts } from "../../chains/evm/log-ranges.ts";
import { type Call, type CallOutcome, simulateCalls } from "../../chains/evm/multicall.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import { type LogFilter, readLogs } from "../../chains/evm/read-logs.ts";
import { readLogsOf, readNaturalKeys } from "../../chains/evm/transaction-movements.ts";
import { readTransferLogs } from "../../chains/evm/transfer-logs.ts";
import type { EvmMovement } from "../../chains/token-movement.ts";
import type { EvmTransferRow } from "../../db/queries/transfers.ts";
import { isProof } from "../match-movements.ts";

type Authorized = Pick<EvmTransferRow, "kind" | "token" | "payer" | "authorization_nonce">;

/** Blocks that are searched before those that a transfer's age suggests. */
const MARGIN_BLOCKS = 5_000;

/**
 * Returns which authorizations the chain marks as used or cancelled, at a block no earlier than a height. Reads the newest
 * block, because endpoints drop old states. A push has no mark on the chain, so it counts as used and its movement must be
 * searched. `unknown` has the transfers whose contract returns no result (it is broken or paused); the others are still
 * known. Throws ChainError `rpc_behind` while the endpoint does not have the height.
 */
export async function readUsedAuthorizations(
  chain: EvmChain,
  transfers: readonly EvmTransferRow[],
  height: number,
): Promise<{ used: Set<string>; unknown: Set<string> }> {
  const marked = transfers.filter(({ kind }) => kind !== "push");
  const calls = [encodeBlockNumber(chain), ...marked.map((transfer) => encodeUseCheck(chain, transfer))];
  const [at, ...answers] = await simulateCalls(chain.rpc, { multicall: chain.multicall }, calls);
  if (!at?.ok || parseAnswer(() => hexToBigInt(at.data)) < BigInt(height))
    throw new ChainError("rpc_behind", { detail: `block ${height}` });
  const marks = marked.map((transfer, index) => ({ id: transfer.id, mark: decodeUseCheck(transfer, answers[index]) }));
  const pushes = transfers.filter(({ kind }) => kind === "push");
  return {
    used: new Set([...marks.filter(({ mark }) => mark), ...pushes].map(({ id }) => id)),
    unknown: new Set(marks.filter(({ mark }) => mark === undefined).map(({ id }) => id)),
  };
}

/** Returns the call that reads whether an authorization is used. */
export function encodeUseCheck(chain: EvmChain, transfer: Authorized): Call {
  const [payer, nonce] = [transfer.payer, transfer.authorization_nonce];
  if (transfer.kind === "permit2") {
    // Permit2 keeps a bit for each nonce, 256 to a word.
    const args = [payer, BigInt(nonce) >> 8n] as const;
    return { target: chain.permit2, data: encodeFunctionData({ abi: permit2Abi, functionName: "nonceBitmap", args }) };
  }
  if (transfer.kind === "disburse")
    return {
      target: chain.disburser,
      data: encodeFunctionData({ abi: disburserAbi, functionName: "used", args: [nonce] }),
    };
  return { target: transfer.token, data: encodeAuthorizationState(payer, nonce) };
}

/** Returns whether the outcome of that call says so, or undefined when the contract returned no valid result. */
export function decodeUseCheck(transfer: Authorized, answer: CallOutcome | undefined): boolean | undefined {
  if (!answer?.ok || size(answer.data) !== 32) return undefined;
  const mark = hexToBigInt(answer.data);
  return transfer.kind === "permit2"
    ? ((mark >> (BigInt(transfer.authorization_nonce) & 255n)) & 1n) === 1n
    : mark !== 0n;
}

/** Returns the blocks that can hold the movement of a transfer: from its creation to a block. */
export function listSearchedBlocks(
  { network }: Pick<EvmChain, "network">,
  { created_at: createdAt }: Pick<EvmTransferRow, "created_at">,
  to: { number: number; at: Date },
): BlockRange {
  // Blocks can come faster than usual, so twice as many are searched.
  const blocks = Math.ceil((2 * (to.at.getTime() - createdAt.getTime())) / network.blockMs);
  return { from: Math.max(0, to.number - blocks - MARGIN_BLOCKS), to: to.number };
}

/**
 * Searches blocks for the movement of a transfer, the newest ones first, while `mayRead` returns true. Returns the movement if
 * there is one. Lowers `left.to` to the highest block that is still to be searched, also when it throws.
 */
export async function findTransferMovement(
  chain: EvmChain,
  transfer: EvmTransferRow,
  { left, mayRead }: { left: BlockRange; mayRead: () => boolean },
): Promise<EvmMovement | undefined> {
  const { logRange } = chain.network;
  while (left.to >= left.from && mayRead()) {
    const range = { from: Math.max(left.from, left.to - logRange + 1), to: left.to };
    const parts = readRangeInParts(chain.rpc, range, {
      longest: logRange,
      read: (part) => readLogs(chain.rpc, part, [logFilterOf(chain, transfer)]),
    });
    for await (const { found } of parts) {
      for (const [hash, [log]] of Map.groupBy(found, ({ transactionHash }) => transactionHash)) {
        const made = hash && log?.blockHash && (await findProof(chain, { hash, block: log.blockHash }, transfer));
        if (made) return made;
      }
    }
    left.to = range.from - 1;
  }
  return undefined;
}

async function findProof(
  chain: EvmChain,
  { hash, block: blockId }: { hash: Hex; block: Hex },
  transfer: EvmTransferRow,
): Promise<EvmMovement | undefined> {
  const { token, payer } = transfer;
  const logs = await readLogsOf(chain, hash, [{ blockId, token, payer }]);
  const movements = await readNaturalKeys(chain, readTransferLogs(logs, chain), [{ hash, logs }]);
  return movements.find((log) => isProof(log, transfer));
}

/** Returns the filter for the logs that a transfer leaves, by their indexed members. */
function logFilterOf(chain: EvmChain, transfer: EvmTransferRow): LogFilter {
  const token = transfer.token;
  const [payer, receiver] = [pad(transfer.payer), pad(transfer.receiver)];
  const nonce = transfer.authorization_nonce;
  const select = (address: Hex, ...topics: Hex[]): LogFilter => ({
    address: [address],
    topics: topics.map((one) => [one]),
  });
  if (transfer.kind === "push") return select(token, TRANSFER_TOPIC, payer, receiver);
  if (transfer.kind === "permit2") return select(chain.collector, COLLECTED_TOPIC, pad(token), payer, nonce);
  if (transfer.kind === "disburse") return select(chain.disburser, DISBURSED_TOPIC, pad(token), receiver, nonce);
  return select(token, AUTHORIZATION_USED_TOPIC, payer, nonce);
}
