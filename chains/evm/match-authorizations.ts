import { hexToNumber, type RpcLog } from "viem";
import type { TokenMovement } from "../token-movement.ts";
import { AUTHORIZATION_USED_TOPIC } from "./abi.ts";

/**
 * Sets `authorizationNonce` of the movements that EIP-3009 authorizations made. Only the logs decide, so that the watcher and the
 * signer agree, whichever transfers they know. The standard requires a token to emit AuthorizationUsed and Transfer, but fixes
 * neither their order nor that they are adjacent. A payer's authorizations of a token divide its movements in a transaction into
 * parts, one for each authorization. A movement can only have the nonce of its part, so that it never counts for two payments.
 * @param transfers those that no other log names, with those of zero
 */
export function matchAuthorizations(
  transfers: readonly TokenMovement[],
  { logs, treasury }: { logs: readonly RpcLog[]; treasury: string },
): void {
  const authorizations = logs.flatMap((log) => readAuthorization(log) ?? []);
  const transfersByGroup = Map.groupBy(transfers.toSorted(byLogIndex), groupOf);
  for (const [group, used] of Map.groupBy(authorizations.toSorted(byLogIndex), groupOf)) {
    // A stranger can emit a transfer of zero in any account's name. The treasury never signs one.
    const made = transfersByGroup.get(group)?.filter(({ amount, payer }) => amount > 0n || payer !== treasury) ?? [];
    const moved = made.filter(({ amount }) => amount > 0n);
    for (const [authorization, part] of Map.groupBy(moved, openParts(made, used)))
      if (authorization)
        for (const movement of listMade(part, authorization, treasury))
          movement.authorizationNonce = authorization.nonce;
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
type Placed = Pick<UsedAuthorization, "logIndex">;
const byLogIndex = (a: Placed, b: Placed) => a.logIndex - b.logIndex;

/**
 * Returns a function that finds the authorization to whose part a movement belongs: the last one before it, or else the first
 * one. Where the logs begin with a Transfer and end with an authorization, the token emits AuthorizationUsed last, and the part
 * is that of the first authorization after the movement. A token that emits it first ends with a Transfer, be it of zero.
 * @param transfers in the order of their logs, as `used` is
 */
function openParts(transfers: readonly TokenMovement[], used: readonly UsedAuthorization[]) {
  const isBefore = (one: Placed | undefined, other: Placed | undefined) =>
    one !== undefined && other !== undefined && one.logIndex < other.logIndex;
  const isUsedLast = isBefore(transfers[0], used[0]) && isBefore(transfers.at(-1), used.at(-1));
  return (movement: TokenMovement) =>
    isUsedLast
      ? used.find((one) => isBefore(movement, one))
      : (used.findLast((one) => isBefore(one, movement)) ?? used[0]);
}

/**
 * Returns the movements of a part that have its nonce. An issuer's fee is a movement too, so a part can have several. Of those into the
 * treasury, the first one after the authorization has the nonce, or else the last one before it; of the treasury's own ones, the
 * largest. Of a payment to a merchant's account, all have it, and the known transfer's receiver and amount select one.
 */
function listMade(
  part: readonly TokenMovement[],
  { payer, logIndex }: UsedAuthorization,
  treasury: string,
): readonly TokenMovement[] {
  if (payer === treasury) return [part.reduce((most, one) => (one.amount > most.amount ? one : most))];
  const deposits = part.filter(({ receiver }) => receiver === treasury);
  const deposit = deposits.find((one) => one.logIndex > logIndex) ?? deposits.at(-1);
  return part.filter((one) => one === deposit || one.receiver !== treasury);
}
