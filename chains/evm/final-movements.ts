import { type Hex, hexToNumber, isHash } from "viem";
import { readAgreementThreshold } from "../endpoint-agreement.ts";
import { ChainError, isTransientChainError, parseAnswer } from "../errors.ts";
import type { FinalReading, FinalTransaction } from "../final-transaction.ts";
import type { EvmMovement } from "../token-movement.ts";
import { readAccountMovements } from "./account-logs.ts";
import { readReceipt } from "./evm-broadcast.ts";
import { isUnavailable, type Rpc } from "./evm-rpc.ts";
import { finalReadingsOf } from "./final-readings.ts";
import type { EvmChain } from "./open-evm-chain.ts";
import { throwChainError } from "./rpc-errors.ts";
import { isTooLarge, readLogsOfPayers } from "./transaction-movements.ts";
import { matchPushes, readTransferLogs } from "./transfer-logs.ts";

/** Receipts that are asked for at the same time. */
const CONCURRENT_RECEIPTS = 8;

/** A transaction, and the endpoint that has shown it. */
type Shown = { by: string; one: FinalTransaction };

/**
 * Reads transactions by hash, with the natural keys of their movements. All are read from one endpoint, and those that are not final
 * there from the next ones. A transaction that moves a large amount into the treasury (`agreementThreshold`), or any amount if `agree`
 * says so, is final only when a second endpoint shows the same. Throws ChainError when no endpoint answers.
 */
export async function readFinalMovements(
  chain: EvmChain,
  hashes: readonly string[],
  { agree = "large" }: FinalReading = {},
): Promise<ReadonlyMap<string, FinalTransaction>> {
  const found = await findShown(chain, hashes);
  const shared = [...found].filter(([, { one }]) => one.state === "final" && needsSecond(chain, one.movements, agree));
  const agreed = new Set<string>();
  for (const { name, rpc } of chain.endpoints) {
    const open = shared.filter(([hash, { by }]) => by !== name && !agreed.has(hash));
    if (open.length === 0) continue;
    const second = await readIfAnswered(
      chain,
      rpc,
      open.map(([hash]) => hash),
    );
    for (const [hash, { one }] of open) if (isSame(chain, one, second.get(hash))) agreed.add(hash);
  }
  return new Map([...found].map(([hash, { one }]) => [hash, mustAgree(hash) ? { state: "not_final" } : one]));

  function mustAgree(hash: string): boolean {
    return shared.some(([name]) => name === hash) && !agreed.has(hash);
  }
}

/**
 * Reads each transaction from the first endpoint that shows it as final. An endpoint may have an old final block, or none, although
 * it answers, or may have lost the transaction.
 */
async function findShown(chain: EvmChain, hashes: readonly string[]): Promise<ReadonlyMap<string, Shown>> {
  const found = new Map<string, Shown>();
  const add = (by: string, answers: ReadonlyMap<string, FinalTransaction>) => {
    for (const [hash, one] of answers) {
      const before = found.get(hash)?.one.state ?? "not_found";
      if (!found.has(hash) || one.state === "final" || before === "not_found") found.set(hash, { by, one });
    }
  };
  const { by, value: first } = await chain.readFromOneEndpoint((rpc) =>
    readAll(chain, rpc, hashes).catch((error: Error) => {
      if (isUnavailable(error) || !isTransientChainError(error)) throw error;
      return error;
    }),
  );
  if (!(first instanceof Error)) add(by, first);
  for (const { name, rpc } of chain.endpoints) {
    const open = hashes.filter((hash) => found.get(hash)?.one.state !== "final");
    if (name !== by && open.length > 0) add(name, await readIfAnswered(chain, rpc, open));
  }
  if (first instanceof Error && found.size === 0) throw first;
  return found;
}

/** Reads transactions from one endpoint; none when it does not answer, or with what cannot be read. */
async function readIfAnswered(
  chain: EvmChain,
  rpc: Rpc,
  hashes: readonly string[],
): Promise<ReadonlyMap<string, FinalTransaction>> {
  return readAll(chain, rpc, hashes).catch((error: unknown) => {
    if (isTransientChainError(error)) return new Map<string, FinalTransaction>();
    throw error;
  });
}

/**
 * Reads transactions from one endpoint. Those that were final there before are not read again. The height is read before the
 * receipts: a receipt that came first could be of a block that was dropped until then.
 */
async function readAll(chain: EvmChain, rpc: Rpc, hashes: readonly string[]): Promise<Map<string, FinalTransaction>> {
  const readings = finalReadingsOf(rpc);
  const found = new Map<string, FinalTransaction>();
  const readEach = async (some: readonly string[], height: number) => {
    for (let first = 0; first < some.length; first += CONCURRENT_RECEIPTS) {
      const chunk = some.slice(first, first + CONCURRENT_RECEIPTS);
      await Promise.all(chunk.map(async (hash) => found.set(hash, await readOne(chain, { rpc, final: height, hash }))));
    }
  };
  for (const hash of hashes) {
    const known = readings.find(chain, hash);
    if (known) found.set(hash, known);
  }
  const unknown = hashes.filter((hash) => !found.has(hash));
  if (unknown.length === 0) return found;
  const { height, isNew } = await readings.readHeight(chain);
  await readEach(unknown, height);
  const above = unknown.filter((hash) => found.get(hash)?.state === "not_final");
  if (above.length > 0 && !isNew) await readEach(above, (await readings.readHeight(chain, "now")).height);
  return found;
}

async function readOne(
  chain: EvmChain,
  { rpc, final, hash }: { rpc: Rpc; final: number; hash: string },
): Promise<FinalTransaction> {
  // Nodes accept a hash in any case. Records are kept by the text, so each transaction must have only one.
  if (!isHash(hash) || hash !== hash.toLowerCase()) return { state: "not_found" };
  const shown = await readMovements({ ...chain, rpc }, hash);
  if (!shown) return { state: "not_found" };
  const { blockNumber, movements } = shown;
  if (blockNumber > final) return { state: "not_final" };
  if (movements.some((one) => one.blockNumber !== blockNumber))
    throw new ChainError("rpc_answer", { detail: `logs of ${hash} in another block` });
  await matchPushes(
    rpc,
    movements.filter((one) => one.authorizationNonce === null && isPush(chain, one)),
  );
  const transaction = { state: "final", movements } as const;
  finalReadingsOf(rpc).keep(chain, hash, transaction);
  return transaction;
}

/**
 * Returns the movements that a transaction made, without the keys of pushes; undefined if the endpoint does not have it. Any account can
 * fill a transaction with so many logs that an endpoint refuses the receipt. Then its movements into and out of the treasury are read.
 */
async function readMovements(
  chain: EvmChain,
  hash: Hex,
): Promise<{ blockNumber: number; movements: EvmMovement[] } | undefined> {
  try {
    const receipt = await readReceipt(chain.rpc, hash);
    if (!receipt) return undefined;
    const { blockNumber, reverted, logs } = receipt;
    return { blockNumber, movements: reverted ? [] : readTransferLogs(logs, chain) };
  } catch (error) {
    if (!isTooLarge(error)) throw error;
    return readFromBlock(chain, hash);
  }
}

async function readFromBlock(chain: EvmChain, hash: Hex): ReturnType<typeof readMovements> {
  const found = await chain.rpc({ method: "eth_getTransactionByHash", params: [hash] }).catch(throwChainError);
  if (!found?.blockHash || !found.blockNumber) return undefined;
  const { blockHash: block, blockNumber } = found;
  const tokens = [...chain.tokens.values()].map(({ token }) => token);
  const accounts = { contracts: chain, tokens, receivers: new Set([chain.treasury]) };
  const moved = await readAccountMovements(chain.rpc, { blockHash: block }, accounts);
  const made = moved.filter(({ txHash }) => txHash === hash);
  const logs = made.length > 0 ? await readLogsOfPayers(chain, { hash, block, made }) : [];
  return { blockNumber: parseAnswer(() => hexToNumber(blockNumber)), movements: readTransferLogs(logs, chain) };
}

function isPush(chain: EvmChain, { token, receiver }: EvmMovement): boolean {
  return receiver === chain.treasury && tokenAt(chain, token)?.kind === "push";
}

/** Returns true if a second endpoint must show one of these movements. */
function needsSecond(
  chain: EvmChain,
  movements: readonly { token: string; receiver: string; amount: bigint }[],
  agree: "large" | "all",
): boolean {
  return movements.some(({ token, receiver, amount }) => {
    const known = tokenAt(chain, token);
    const threshold = known && readAgreementThreshold(chain.network, known);
    return receiver === chain.treasury && threshold !== undefined && (agree === "all" || amount >= threshold);
  });
}

const tokenAt = (chain: EvmChain, address: string) => [...chain.tokens.values()].find(({ token }) => token === address);

/**
 * Returns true if two endpoints show the same movements into and out of the treasury in the same block. Those of strangers do not count:
 * an endpoint that refuses the receipt shows none of them.
 */
function isSame(chain: EvmChain, one: FinalTransaction, other: FinalTransaction | undefined): boolean {
  if (one.state !== "final" || other?.state !== "final") return false;
  const { treasury } = chain;
  const describe = ({ movements }: Extract<FinalTransaction, { state: "final" }>) =>
    movements
      .filter(({ token, payer, receiver }) => tokenAt(chain, token) && (payer === treasury || receiver === treasury))
      .map((m) => `${m.blockId} ${m.logIndex} ${m.token} ${m.payer} ${m.receiver} ${m.amount} ${m.authorizationNonce}`);
  return describe(one).join("\n") === describe(other).join("\n");
}
