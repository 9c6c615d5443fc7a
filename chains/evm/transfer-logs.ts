import { type Hex, hexToBigInt, hexToNumber, type RpcLog, type RpcTransaction } from "viem";
import { ChainError, parseAnswer } from "../errors.ts";
import type { EvmMovement } from "../token-movement.ts";
import { TRANSFER_TOPIC } from "./abi.ts";
import { COLLECTED_TOPIC } from "./collector-contract.ts";
import { DISBURSED_TOPIC } from "./disburser-contract.ts";
import type { Rpc } from "./evm-rpc.ts";
import { lowerCaseHex } from "./hex.ts";
import { matchAuthorizations } from "./match-authorizations.ts";
import { readPush } from "./push-call-data.ts";
import { throwChainError } from "./rpc-errors.ts";

/** Our contracts on a chain and the treasury that they serve, in lower case. */
export type OurContracts = { collector: Hex; disburser: Hex; treasury: Hex };

/**
 * Returns the movements of Transfer logs, each with its natural key if another log shows it:
 * - Permit2: a later Collected log of our Collector in the same transaction with the same token, payer and amount.
 * - Payouts through our Disburser: a later Disbursed log, likewise.
 * - EIP-3009, for all others: the AuthorizationUsed log of the same token, payer and transaction; see `matchAuthorizations`.
 *
 * Nothing else proves a transfer. Zero amounts are skipped: any account can emit a transfer of zero in another account's
 * name, because `transferFrom` needs no allowance for it. A log that an endpoint lists twice counts once. Never throws,
 * whatever a contract emits.
 */
export function readTransferLogs(
  logs: readonly RpcLog[],
  { collector, disburser, treasury }: OurContracts,
): EvmMovement[] {
  const transfers: EvmMovement[] = [];
  const positionOf = ({ blockHash, logIndex }: RpcLog) => `${blockHash} ${logIndex && hexToNumber(logIndex)}`;
  const byPosition = new Map(logs.map((log) => [positionOf(log), log]));
  for (const log of byPosition.values()) {
    const [topic, from, to] = log.topics;
    if (!log.blockHash || !log.blockNumber || !log.transactionHash || !log.logIndex || log.removed) continue;
    // An ERC-20 Transfer has three topics and one word of data. ERC-721 uses the same topic but has four.
    if (topic !== TRANSFER_TOPIC || !from || !to || log.topics.length !== 3 || log.data.length !== 66) continue;
    transfers.push({
      blockId: log.blockHash,
      blockNumber: hexToNumber(log.blockNumber),
      txHash: log.transactionHash,
      logIndex: hexToNumber(log.logIndex),
      token: lowerCaseHex(log.address),
      payer: `0x${from.slice(-40)}`,
      receiver: `0x${to.slice(-40)}`,
      amount: hexToBigInt(log.data),
      authorizationNonce: null,
    });
  }
  const seen = transfers.filter(({ amount }) => amount > 0n);
  const collected = logs.filter((log) => log.address.toLowerCase() === collector && log.topics[0] === COLLECTED_TOPIC);
  const byTransaction = Map.groupBy(seen, ({ txHash }) => txHash);
  const inTransactionOf = ({ transactionHash }: RpcLog) =>
    (transactionHash && byTransaction.get(transactionHash)) || [];
  for (const log of collected) if (!log.removed) markCollected(inTransactionOf(log), log);
  const disbursed = logs.filter((log) => log.address.toLowerCase() === disburser && log.topics[0] === DISBURSED_TOPIC);
  for (const log of disbursed) if (!log.removed) markDisbursed(inTransactionOf(log), log, treasury);
  const unnamed = transfers.filter(({ authorizationNonce }) => authorizationNonce === null);
  matchAuthorizations(unnamed, { logs: [...byPosition.values()], treasury });
  return seen;
}

/** Sets the nonce of the movement that a Collected log describes. */
function markCollected(seen: readonly EvmMovement[], log: RpcLog): void {
  const [, token, payer, nonce] = log.topics;
  if (token && payer && nonce) markNamed(seen, log, { token, payer }, nonce);
}

/** Sets the nonce of the payout that a Disbursed log describes. */
function markDisbursed(seen: readonly EvmMovement[], log: RpcLog, treasury: Hex): void {
  const [, token, receiver, nonce] = log.topics;
  if (token && receiver && nonce) markNamed(seen, log, { token, receiver, payer: treasury }, nonce);
}

/**
 * Sets the nonce of the nearest earlier movement that matches the log. The log's addresses may be padded to a word.
 * @param seen the movements of the log's transaction
 */
function markNamed(
  seen: readonly EvmMovement[],
  log: RpcLog,
  named: { token: Hex; payer: Hex; receiver?: Hex },
  nonce: Hex,
): void {
  if (!log.logIndex || log.data.length !== 66) return;
  const [logIndex, amount] = [hexToNumber(log.logIndex), hexToBigInt(log.data)];
  const isSame = (address: string, padded: Hex | undefined) =>
    padded === undefined || address === `0x${padded.slice(-40)}`;
  const matching = seen.filter(
    (one) =>
      one.blockId === log.blockHash &&
      one.logIndex < logIndex &&
      isSame(one.token, named.token) &&
      isSame(one.payer, named.payer) &&
      isSame(one.receiver, named.receiver) &&
      one.amount === amount,
  );
  const nearest = matching.toSorted((a, b) => b.logIndex - a.logIndex)[0];
  if (nearest) nearest.authorizationNonce = nonce;
}

/**
 * Sets the natural key of movements that push transactions made, namely the transaction's tag. A push is sent by the payer
 * to the token contract with the call data of exactly this movement. Makes one call per transaction.
 * @param candidates movements without a natural key
 */
export async function matchPushes(rpc: Rpc, candidates: readonly EvmMovement[]): Promise<void> {
  for (const [hash, movements] of Map.groupBy(candidates, (one) => one.txHash)) {
    const transaction = await rpc({ method: "eth_getTransactionByHash", params: [hash] }).catch(throwChainError);
    for (const movement of movements) {
      if (transaction?.blockHash !== movement.blockId)
        throw new ChainError("rpc_behind", { detail: `transaction ${hash}` });
      movement.authorizationNonce = parseAnswer(() => findTag(transaction, movement)) ?? null;
    }
  }
}

/** Returns the tag of a transaction if it is a push that makes exactly this movement. */
export function findTag(
  transaction: Pick<RpcTransaction, "from" | "to" | "input">,
  movement: Pick<EvmMovement, "token" | "payer" | "receiver" | "amount">,
): Hex | undefined {
  if (transaction.from.toLowerCase() !== movement.payer || transaction.to?.toLowerCase() !== movement.token) return;
  const push = readPush(transaction.input);
  return push?.receiver === movement.receiver && push.amount === movement.amount ? push.tag : undefined;
}
