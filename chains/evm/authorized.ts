import { hexToNumber, type RpcLog } from "viem";
import type { SeenTransfer } from "../movements.ts";
import { AUTHORIZATION_USED_TOPIC } from "./abi.ts";

/**
 * Gives movements the nonces of the EIP-3009 authorizations that made them. The standard says that a token emits
 * AuthorizationUsed and Transfer, and not in which order or what between them. So all of one token, payer and transaction
 * belong together: where there are as many authorizations as movements, the first made the first. Otherwise the nearest
 * ones are taken for pairs, and each movement names all nonces (`usedNonces`): a transfer that we know says by its receiver
 * and amount which movement is its own.
 * @param seen movements by the same logs, none of zero
 */
export function markAuthorized(seen: readonly SeenTransfer[], logs: readonly RpcLog[]): void {
  const uses = logs.flatMap((log) => readUse(log) ?? []);
  const movements = Map.groupBy(seen, keyOf);
  for (const [key, used] of Map.groupBy(uses, keyOf)) {
    const moved = movements.get(key);
    if (!moved) continue;
    const inOrder = used.toSorted(byPlace);
    const movedInOrder = moved.toSorted(byPlace);
    if (used.length === moved.length)
      for (const [index, movement] of movedInOrder.entries())
        movement.authorizationNonce = inOrder[index]?.nonce ?? null;
    else markNearest(movedInOrder, inOrder);
  }
}

/** An AuthorizationUsed log. */
type Use = Pick<SeenTransfer, "blockHash" | "txHash" | "token" | "payer" | "logIndex"> & { nonce: string };

function readUse(log: RpcLog): Use | undefined {
  const [topic, payer, nonce] = log.topics;
  if (topic !== AUTHORIZATION_USED_TOPIC || !payer || !nonce || log.removed) return undefined;
  if (!log.blockHash || !log.transactionHash || !log.logIndex) return undefined;
  return {
    blockHash: log.blockHash,
    txHash: log.transactionHash,
    token: log.address.toLowerCase(),
    payer: `0x${payer.slice(-40)}`,
    logIndex: hexToNumber(log.logIndex),
    nonce,
  };
}

const keyOf = ({ blockHash, txHash, token, payer }: Pick<Use, "blockHash" | "txHash" | "token" | "payer">) =>
  `${blockHash} ${txHash} ${token} ${payer}`;
const byPlace = (a: { logIndex: number }, b: { logIndex: number }) => a.logIndex - b.logIndex;

/** The first movement after an authorization and before the next one is its own; else the last one before it. */
function markNearest(moved: readonly SeenTransfer[], used: readonly Use[]): void {
  const usedNonces = [...new Set(used.map(({ nonce }) => nonce))];
  for (const movement of moved) movement.usedNonces = usedNonces;
  const free = new Set(moved);
  for (const [index, { logIndex, nonce }] of used.entries()) {
    const [from, to] = [used[index - 1]?.logIndex ?? -1, used[index + 1]?.logIndex ?? Number.POSITIVE_INFINITY];
    const after = moved.find((one) => free.has(one) && one.logIndex > logIndex && one.logIndex < to);
    const nearest = after ?? moved.findLast((one) => free.has(one) && one.logIndex > from && one.logIndex < logIndex);
    if (!nearest) continue;
    nearest.authorizationNonce = nonce;
    free.delete(nearest);
  }
}
