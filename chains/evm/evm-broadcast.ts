import { type Hex, hexToBigInt, hexToNumber, type RpcLog } from "viem";
import { readHex } from "../../runtime/hex.ts";
import { ChainError, parseAnswer } from "../errors.ts";
import { type Endpoints, isUnavailable, type Rpc } from "./evm-rpc.ts";
import { requireLogs } from "./require-logs.ts";
import { readPaidRollupFee } from "./rollup-fees.ts";
import { describeRpcError, throwChainError } from "./rpc-errors.ts";

/**
 * The result of a broadcast. `unknown` means that the transaction may have reached the network. No result is a failed
 * transfer: only the chain shows later whether the transaction happened.
 */
export type BroadcastResult =
  | { outcome: "accepted" }
  | { outcome: "unknown"; reason: string }
  | { outcome: "nonce_too_low"; reason: string }
  | { outcome: "underpriced"; reason: string }
  | { outcome: "insufficient_funds"; reason: string }
  | { outcome: "refused"; reason: string };

/**
 * Error messages of nodes. They have no error codes, and Nethermind writes them without spaces. A known transaction counts
 * as accepted, because the node has the same bytes. A full pool refuses the transactions that pay less than those it holds.
 */
const outcomesByMessage: readonly [RegExp, Exclude<BroadcastResult["outcome"], "accepted">][] = [
  [/nonce (is )?too low|nonce.*already used|old ?nonce/i, "nonce_too_low"],
  [
    /underpriced|max fee per gas less than block base fee|fee ?(cap)?.*(low|less)|gas price.*low|tip.*low|replacement ?not ?allowed|pool.*(full|overflow)/i,
    "underpriced",
  ],
  [/insufficient ?(funds|balance)/i, "insufficient_funds"],
];

const ALREADY_KNOWN = /already ?known|already imported|known transaction|already ?exists|already in mempool/i;

/** Outcomes that depend on the endpoint's pool, minimum and height, so that another endpoint may accept the same bytes. */
const refusals: readonly BroadcastResult["outcome"][] = ["underpriced", "insufficient_funds", "refused"];

/** Returns true when endpoints have answered and none has taken the bytes, which other bytes of the same nonce may change. */
export function isRefusal(outcome: BroadcastResult["outcome"]): boolean {
  return refusals.includes(outcome);
}

/**
 * Which endpoints get bytes: `one`; one, and each other one until an endpoint accepts them or knows the nonce as used
 * (`first_to_accept`); or `all`.
 */
export type BroadcastTo = "one" | "first_to_accept" | "all";

/** Which of the results of several endpoints counts: the highest, and the first one of equals. */
const precedence = { accepted: 3, nonce_too_low: 2, underpriced: 1, insufficient_funds: 0, refused: 0, unknown: 0 };

/**
 * Broadcasts stored bytes. Returns `accepted` if an endpoint accepts them, otherwise `nonce_too_low` or `underpriced` if an
 * endpoint returns that, otherwise the first refusal. Returns `unknown` if no endpoint answers. Never throws for an error of the
 * network or the node.
 */
export async function broadcastBytes(
  chain: Pick<Endpoints, "sendToOneEndpoint" | "endpoints">,
  bytes: Hex,
  to: BroadcastTo = "first_to_accept",
): Promise<BroadcastResult> {
  const send = (rpc: Rpc) => sendBytes(rpc, bytes);
  const { by, value: first } = await chain
    .sendToOneEndpoint(send)
    .catch((error: unknown) => ({ by: undefined, value: readResult(error) }));
  // Without a name, every endpoint has been asked.
  if (to === "one" || by === undefined) return first;
  let best = first;
  for (const { rpc } of chain.endpoints.filter(({ name }) => name !== by)) {
    if (best.outcome === "nonce_too_low" || (best.outcome === "accepted" && to !== "all")) break;
    const result = await send(rpc).catch(readResult);
    if (precedence[result.outcome] > precedence[best.outcome]) best = result;
  }
  return best;
}

/** Broadcasts bytes to an endpoint. Throws the error of an endpoint that is unavailable. */
async function sendBytes(rpc: Rpc, bytes: Hex): Promise<BroadcastResult> {
  try {
    await rpc({ method: "eth_sendRawTransaction", params: [bytes] });
    return { outcome: "accepted" };
  } catch (error) {
    if (isUnavailable(error)) throw error;
    return readResult(error);
  }
}

function readResult(error: unknown): BroadcastResult {
  if (error instanceof ChainError) return { outcome: "unknown", reason: error.message };
  const reason = describeRpcError(error);
  if (ALREADY_KNOWN.test(reason)) return { outcome: "accepted" };
  const match = outcomesByMessage.find(([pattern]) => pattern.test(reason));
  return { outcome: match?.[1] ?? "refused", reason };
}

/**
 * The result of a mined transaction. `gasPrice` is in wei per gas; `fee` is everything that the sender paid, in wei.
 */
export type Receipt = {
  hash: Hex;
  blockHash: Hex;
  blockNumber: number;
  reverted: boolean;
  gasUsed: bigint;
  gasPrice: bigint;
  fee: bigint;
  logs: readonly RpcLog[];
};

/** Returns the receipt of a transaction, or undefined while the endpoint has none. */
export async function readReceipt(rpc: Rpc, hash: Hex): Promise<Receipt | undefined> {
  const receipt = await rpc({ method: "eth_getTransactionReceipt", params: [hash] });
  if (!receipt?.blockHash || !receipt.blockNumber) return undefined;
  const { blockHash, blockNumber } = receipt;
  return parseAnswer(() => {
    const gasUsed = hexToBigInt(receipt.gasUsed);
    const gasPrice = hexToBigInt(receipt.effectiveGasPrice);
    return {
      hash,
      blockHash: readHex(blockHash),
      blockNumber: hexToNumber(blockNumber),
      reverted: receipt.status === "0x0",
      gasUsed,
      gasPrice,
      fee: gasUsed * gasPrice + readPaidRollupFee(receipt, gasUsed),
      logs: requireLogs(receipt.logs),
    };
  });
}

/** Returns an account's next nonce, counting mined transactions only. */
export async function readNextNonce(rpc: Rpc, address: Hex): Promise<number> {
  const answer = await rpc({ method: "eth_getTransactionCount", params: [address, "latest"] });
  return parseAnswer(() => hexToNumber(answer));
}

/** Returns the price that the node proposes for a transaction without EIP-1559 fees, wei per gas. */
export async function readGasPrice(rpc: Rpc): Promise<bigint> {
  const answer = await rpc({ method: "eth_gasPrice" }).catch(throwChainError);
  return parseAnswer(() => hexToBigInt(answer));
}

/** Returns an account's native balance in wei. */
export async function readGasBalance(rpc: Rpc, address: Hex): Promise<bigint> {
  const answer = await rpc({ method: "eth_getBalance", params: [address, "latest"] });
  return parseAnswer(() => hexToBigInt(answer));
}
