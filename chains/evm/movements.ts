import { type Hex, hexToBigInt, hexToNumber, type RpcLog, type RpcTransaction } from "viem";
import { ChainFault } from "../faults.ts";
import type { SeenTransfer } from "../movements.ts";
import { TRANSFER_TOPIC } from "./abi.ts";
import { markAuthorized } from "./authorized.ts";
import { COLLECTED_TOPIC } from "./collector.ts";
import { DISBURSED_TOPIC } from "./disburser.ts";
import { readPush } from "./push.ts";
import type { Rpc } from "./rpc.ts";
import { throwFault } from "./rpc-errors.ts";

/** Our contracts on a chain, and the account that they work for; in lower case. */
export type Contracts = { collector: Hex; disburser: Hex; treasury: Hex };

/**
 * Reads Transfer logs, each with its natural key if a log shows it. EIP-3009: the AuthorizationUsed log of the same token,
 * payer and transaction (see markAuthorized). Permit2: our Collector's Collected log after it in the
 * same transaction, over the same token, payer and amount. Payouts through our Disburser: its Disbursed log, likewise.
 * Nothing else proves a transfer.
 * A transfer of zero is no movement: anybody may make one in anybody's name (`transferFrom` needs no allowance for it).
 * A log that an endpoint lists twice counts once. No log makes it throw, whatever a contract emits.
 */
export function pairLogs(logs: readonly RpcLog[], { collector, disburser, treasury }: Contracts): SeenTransfer[] {
  const seen: SeenTransfer[] = [];
  const placeOf = ({ blockHash, logIndex }: RpcLog) => `${blockHash} ${logIndex && hexToNumber(logIndex)}`;
  const byIndex = new Map(logs.map((log) => [placeOf(log), log]));
  for (const log of byIndex.values()) {
    const [topic, from, to] = log.topics;
    if (!log.blockHash || !log.blockNumber || !log.transactionHash || !log.logIndex || log.removed) continue;
    // Three topics and one word of data: an ERC-20 Transfer. ERC-721 shares the selector and has four topics.
    if (topic !== TRANSFER_TOPIC || !from || !to || log.topics.length !== 3 || log.data.length !== 66) continue;
    const amount = hexToBigInt(log.data);
    if (amount === 0n) continue;
    seen.push({
      blockHash: log.blockHash,
      blockNumber: hexToNumber(log.blockNumber),
      txHash: log.transactionHash,
      logIndex: hexToNumber(log.logIndex),
      token: log.address.toLowerCase() as Hex,
      payer: `0x${from.slice(-40)}`,
      receiver: `0x${to.slice(-40)}`,
      amount,
      authorizationNonce: null,
    });
  }
  markAuthorized(seen, [...byIndex.values()]);
  const collected = logs.filter((log) => log.address.toLowerCase() === collector && log.topics[0] === COLLECTED_TOPIC);
  const byTransaction = Map.groupBy(seen, ({ txHash }) => txHash);
  for (const log of collected) if (!log.removed) markCollected(byTransaction.get(log.transactionHash ?? "") ?? [], log);
  const disbursed = logs.filter((log) => log.address.toLowerCase() === disburser && log.topics[0] === DISBURSED_TOPIC);
  for (const log of disbursed)
    if (!log.removed) markDisbursed(byTransaction.get(log.transactionHash ?? "") ?? [], log, treasury);
  return seen;
}

/** Gives the movement that a Collected log speaks of its nonce. */
function markCollected(seen: readonly SeenTransfer[], log: RpcLog): void {
  const [, token, payer, nonce] = log.topics;
  if (token && payer && nonce) markNamed(seen, log, { token, payer }, nonce);
}

/** The same for a Disbursed log, which speaks of a payout of the treasury's. */
function markDisbursed(seen: readonly SeenTransfer[], log: RpcLog, treasury: Hex): void {
  const [, token, receiver, nonce] = log.topics;
  if (token && receiver && nonce) markNamed(seen, log, { token, receiver, payer: treasury }, nonce);
}

/** Gives the nearest movement of the log's transaction before it that it can mean its nonce. Addresses may be padded. */
function markNamed(
  seen: readonly SeenTransfer[],
  log: RpcLog,
  named: { token: Hex; payer: Hex; receiver?: Hex },
  nonce: Hex,
): void {
  if (!log.logIndex || log.data.length !== 66) return;
  const [logIndex, amount] = [hexToNumber(log.logIndex), hexToBigInt(log.data)];
  const is = (address: string, name: Hex | undefined) => name === undefined || address === `0x${name.slice(-40)}`;
  const movements = seen.filter(
    (one) =>
      one.blockHash === log.blockHash &&
      one.logIndex < logIndex &&
      is(one.token, named.token) &&
      is(one.payer, named.payer) &&
      is(one.receiver, named.receiver) &&
      one.amount === amount,
  );
  const nearest = movements.toSorted((a, b) => b.logIndex - a.logIndex)[0];
  if (nearest) nearest.authorizationNonce = nonce;
}

/**
 * Gives movements that show no natural key of their own the tag of the transaction that made them, where that is a
 * push: sent by the payer himself, to the token, with the call data of exactly this movement. One call for each block
 * that holds such movements, however many.
 */
export async function markPushes(rpc: Rpc, candidates: readonly SeenTransfer[]): Promise<void> {
  for (const [blockHash, movements] of Map.groupBy(candidates, (one) => one.blockHash)) {
    const block = await rpc({ method: "eth_getBlockByHash", params: [blockHash as Hex, true] }).catch(throwFault);
    if (!block) throw new ChainFault("rpc_behind", { detail: `block ${blockHash}` });
    const byHash = new Map((block.transactions as RpcTransaction[]).map((one) => [one.hash as string, one]));
    for (const movement of movements) {
      const transaction = byHash.get(movement.txHash);
      if (!transaction) throw new ChainFault("rpc_behind", { detail: `transaction ${movement.txHash}` });
      movement.authorizationNonce = findTag(transaction, movement) ?? null;
    }
  }
}

/** The tag of a transaction, if it is a push that makes exactly this movement. */
export function findTag(
  transaction: Pick<RpcTransaction, "from" | "to" | "input">,
  movement: Pick<SeenTransfer, "token" | "payer" | "receiver" | "amount">,
): Hex | undefined {
  if (transaction.from.toLowerCase() !== movement.payer || transaction.to?.toLowerCase() !== movement.token) return;
  const push = readPush(transaction.input);
  return push?.receiver === movement.receiver && push.amount === movement.amount ? push.tag : undefined;
}
