import { hexToNumber, type RpcLog } from "viem";
import type { TokenMovement } from "../token-movement.ts";
import { AUTHORIZATION_USED_TOPIC } from "./abi.ts";

/**
 * Sets `authorizationNonce` of the movements that EIP-3009 authorizations made. The standard requires a token to emit
 * AuthorizationUsed and Transfer, but fixes neither their order nor that they are adjacent. The function groups logs by
 * token, payer and transaction. In a group with as many authorizations as movements, it pairs them in order. In any other
 * group it pairs the nearest logs and lists all nonces in `candidateNonces`; a known transfer then finds its own movement by
 * receiver and amount.
 * @param seen movements read from the same logs, without zero amounts
 */
export function matchAuthorizations(seen: readonly TokenMovement[], logs: readonly RpcLog[]): void {
  const authorizations = logs.flatMap((log) => readAuthorization(log) ?? []);
  const movementsByGroup = Map.groupBy(seen, groupOf);
  for (const [group, unsorted] of Map.groupBy(authorizations, groupOf)) {
    const movements = movementsByGroup.get(group)?.toSorted(byLogIndex);
    if (!movements) continue;
    const used = unsorted.toSorted(byLogIndex);
    if (used.length === movements.length)
      for (const [index, movement] of movements.entries()) movement.authorizationNonce = used[index]?.nonce ?? null;
    else pairNearest(movements, used);
  }
}

/** An AuthorizationUsed log. */
type UsedAuthorization = Pick<TokenMovement, "blockId" | "txHash" | "token" | "payer" | "logIndex"> & {
  nonce: string;
};

function readAuthorization(log: RpcLog): UsedAuthorization | undefined {
  const [topic, payer, nonce] = log.topics;
  if (topic !== AUTHORIZATION_USED_TOPIC || !payer || !nonce || log.removed) return undefined;
  if (!log.blockHash || !log.transactionHash || !log.logIndex) return undefined;
  return {
    blockId: log.blockHash,
    txHash: log.transactionHash,
    token: log.address.toLowerCase(),
    payer: `0x${payer.slice(-40)}`,
    logIndex: hexToNumber(log.logIndex),
    nonce,
  };
}

type Group = Pick<UsedAuthorization, "blockId" | "txHash" | "token" | "payer">;
const groupOf = ({ blockId, txHash, token, payer }: Group) => `${blockId} ${txHash} ${token} ${payer}`;
const byLogIndex = (a: { logIndex: number }, b: { logIndex: number }) => a.logIndex - b.logIndex;

/**
 * Pairs each authorization with the first movement between it and the next authorization, or else with the last movement
 * between the previous authorization and it.
 */
function pairNearest(movements: readonly TokenMovement[], used: readonly UsedAuthorization[]): void {
  const candidateNonces = [...new Set(used.map(({ nonce }) => nonce))];
  for (const movement of movements) movement.candidateNonces = candidateNonces;
  const unpaired = new Set(movements);
  for (const [index, { logIndex, nonce }] of used.entries()) {
    const [from, to] = [used[index - 1]?.logIndex ?? -1, used[index + 1]?.logIndex ?? Number.POSITIVE_INFINITY];
    const after = movements.find((one) => unpaired.has(one) && one.logIndex > logIndex && one.logIndex < to);
    const nearest =
      after ?? movements.findLast((one) => unpaired.has(one) && one.logIndex > from && one.logIndex < logIndex);
    if (!nearest) continue;
    nearest.authorizationNonce = nonce;
    unpaired.delete(nearest);
  }
}
