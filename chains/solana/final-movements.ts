import type { VersionedTransactionResponse } from "@solana/web3.js";
import { readAgreementThreshold } from "../endpoint-agreement.ts";
import type { FinalTransaction } from "../final-transaction.ts";
import type { TokenMovement } from "../token-movement.ts";
import { readStatuses } from "./cluster-state.ts";
import { isSignature } from "./ed25519-keys.ts";
import type { SolanaChain, SolanaToken } from "./open-solana-chain.ts";
import { readMovements } from "./treasury-movements.ts";

/** Transactions that are read at the same time. */
const CONCURRENCY = 8;

/**
 * Reads transactions by signature, with the memos of their movements. A transaction that moves a large amount into the
 * treasury (`agreementThreshold`) is final only when a second endpoint shows the same. Throws ChainError when no endpoint
 * answers.
 */
export async function readFinalMovements(
  chain: SolanaChain,
  hashes: readonly string[],
): Promise<ReadonlyMap<string, FinalTransaction>> {
  const found = new Map<string, FinalTransaction>();
  for (let first = 0; first < hashes.length; first += CONCURRENCY) {
    const some = hashes.slice(first, first + CONCURRENCY);
    const read = await Promise.all(some.map((hash) => readOne(chain, hash)));
    for (const [index, hash] of some.entries()) found.set(hash, read[index] ?? { state: "not_found" });
  }
  return found;
}

async function readOne(chain: SolanaChain, hash: string): Promise<FinalTransaction> {
  if (!isSignature(hash)) return { state: "not_found" };
  const options = { commitment: chain.network.finality, maxSupportedTransactionVersion: 0 } as const;
  const shown = await chain.rpc.ask("getTransaction", (connection) => connection.getTransaction(hash, options));
  if (!shown) return { state: (await isKnown(chain, hash)) ? "not_final" : "not_found" };
  const movements = listMovements(chain, hash, shown);
  if (!isLarge(chain, movements)) return { state: "final", movements };
  const all = await chain.rpc.queryAvailable("getTransaction", (connection) =>
    connection.getTransaction(hash, options),
  );
  const agreeing = all.filter(({ answer }) => answer && isSame(listMovements(chain, hash, answer), movements));
  return agreeing.length >= 2 ? { state: "final", movements } : { state: "not_final" };
}

async function isKnown(chain: SolanaChain, hash: string): Promise<boolean> {
  const { statuses } = await readStatuses(chain, [hash], { history: true });
  return statuses[0] !== undefined;
}

/** Lists the movements as the watcher does: for each token alone, so that positions and memos are the same. */
function listMovements(chain: SolanaChain, hash: string, shown: VersionedTransactionResponse): TokenMovement[] {
  return [...chain.tokens.values()].flatMap((token) => listTokenMovements(chain, { hash, token }, shown));
}

/** Returns the movements of one token into and out of the treasury. */
export function listTokenMovements(
  chain: SolanaChain,
  { hash, token }: { hash: string; token: SolanaToken },
  shown: VersionedTransactionResponse,
): TokenMovement[] {
  const treasury = { owner: chain.treasury, accounts: new Map([[token.treasuryAccount, token.token]]) };
  const { slot, blockTime } = shown;
  return readMovements(shown, treasury).map(({ mint, memo, index, ...movement }) => ({
    ...movement,
    blockId: String(slot),
    blockNumber: slot,
    txHash: hash,
    logIndex: index,
    token: mint,
    authorizationNonce: memo ?? null,
    at: blockTime ? new Date(blockTime * 1_000) : undefined,
  }));
}

/** Returns true if the networks file requires a second endpoint for one of these movements. */
function isLarge(chain: SolanaChain, movements: readonly TokenMovement[]): boolean {
  return movements.some(({ token: mint, receiver, amount }) => {
    const token = [...chain.tokens.values()].find((one) => one.token === mint);
    const threshold = token && readAgreementThreshold(chain.network, token);
    return receiver === chain.treasury && threshold !== undefined && amount >= threshold;
  });
}

/** Returns true if two endpoints show the same movements in the same slot. */
function isSame(some: readonly TokenMovement[], others: readonly TokenMovement[]): boolean {
  const describe = (all: readonly TokenMovement[]) =>
    all
      .map((m) => [m.blockId, m.logIndex, m.token, m.payer, m.receiver, m.amount, m.authorizationNonce].join(" "))
      .join("\n");
  return describe(some) === describe(others);
}
