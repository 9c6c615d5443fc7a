import type { VersionedTransactionResponse } from "@solana/web3.js";
import { readAgreementThreshold } from "../endpoint-agreement.ts";
import { ChainError } from "../errors.ts";
import type { FinalReading, FinalTransaction, KnownMovement } from "../final-transaction.ts";
import type { TokenMovement } from "../token-movement.ts";
import { isSignature } from "./ed25519-keys.ts";
import type { SolanaChain, SolanaToken } from "./open-solana-chain.ts";
import { readStatuses } from "./signature-statuses.ts";
import { readSignedPayment, type SignedPayment } from "./signed-payment.ts";
import {
  askSignatures,
  findTransaction,
  type ListedTransaction,
  listSignatures,
  readTransactionFromEach,
} from "./transaction-history.ts";
import { isUnexplained, readMovements } from "./treasury-movements.ts";

/** Transactions that are read at the same time. */
const CONCURRENCY = 8;
/** Entries that are listed at most for each transaction. A page has 1,000: a search in vain costs an eighth more calls. */
const ENTRIES_PER_TRANSACTION = 128;

/**
 * Reads transactions by signature, with the memos of their movements. A transaction that moves a large amount into the
 * treasury (`agreementThreshold`), or any amount if `agree` says so, is final only when a second endpoint shows the same. Payments
 * whose signed bytes the caller supplies, or has supplied before, are looked for in the treasury's history, which costs one call for
 * many, or one of each endpoint. Throws ChainError when no endpoint answers.
 */
export async function readFinalMovements(
  chain: SolanaChain,
  hashes: readonly string[],
  { signed = new Map(), known = new Map(), agree = "large" }: FinalReading = {},
): Promise<ReadonlyMap<string, FinalTransaction>> {
  const found = await listPayments(chain, hashes, { signed, known, agree });
  const open = hashes.filter((hash) => !found.has(hash));
  for (let first = 0; first < open.length; first += CONCURRENCY) {
    const some = open.slice(first, first + CONCURRENCY);
    const read = await Promise.all(some.map((hash) => readOne(chain, hash, agree)));
    for (const [index, hash] of some.entries()) found.set(hash, read[index] ?? { state: "not_found" });
  }
  return found;
}

/**
 * Returns the payments that the treasury's history shows as made. The bytes say what moves, and the history that it has moved: it
 * lists whole signatures. The statuses of signatures would not do: nodes keep them by 20 bytes of the signature, so a
 * thief of a relayer's key could sign two transactions that share them and land the harmless one.
 */
async function listPayments(
  chain: SolanaChain,
  hashes: readonly string[],
  { signed, known, agree }: Required<FinalReading>,
): Promise<Map<string, FinalTransaction>> {
  const payments = hashes.flatMap((hash): SignedPayment[] => {
    const bytes = signed.get(hash);
    const payment = bytes ? readSignedPayment(chain, hash, bytes) : toPayment(chain, known.get(hash));
    return payment && !needsSecond(chain, [payment.movement], "large") ? [payment] : [];
  });
  const found = new Map<string, FinalTransaction>();
  for (const [{ treasuryAccount }, some] of Map.groupBy(payments, ({ token }) => token)) {
    const wanted = new Set(some.map(({ movement }) => movement.txHash));
    const isShared = needsSecond(
      chain,
      some.map(({ movement }) => movement),
      agree,
    );
    const firstSlot = Math.min(...some.map(({ movement }) => known.get(movement.txHash)?.blockNumber ?? 0));
    const slots = await (isShared ? findListedTwice : findListed)(chain, treasuryAccount, {
      hashes: wanted,
      firstSlot,
    });
    for (const { movement } of some) {
      const slot = slots.get(movement.txHash);
      if (slot === undefined) continue;
      const made = { ...movement, blockId: String(slot), blockNumber: slot };
      found.set(movement.txHash, { state: "final", movements: [made], isBySignedBytes: true });
    }
  }
  return found;
}

function toPayment(chain: SolanaChain, movement: KnownMovement | undefined): SignedPayment | undefined {
  const token = [...chain.tokens.values()].find((one) => one.token === movement?.token);
  return movement && token && { token, movement };
}

/** Transactions that are looked for in a history. None of them is in a slot before `firstSlot`. */
type Sought = { hashes: ReadonlySet<string>; firstSlot: number };

/**
 * Looks for transactions in the newest history of an account, and returns the slots of those that have succeeded. Leaves out
 * those that lie too far back.
 */
function findListed(chain: SolanaChain, account: string, wanted: Sought): Promise<Map<string, number>> {
  return search(wanted, (page) => listSignatures(chain, { ...page, account, depth: chain.network.finality }));
}

/** Returns the slots of those transactions that two endpoints list in the same slot. */
async function findListedTwice(chain: SolanaChain, account: string, wanted: Sought): Promise<Map<string, number>> {
  const depth = chain.network.finality;
  const answers = await chain.rpc.queryAvailable("getSignaturesForAddress", (_connection, call) =>
    search(wanted, (page) => askSignatures(call, { ...page, account, depth })),
  );
  const counts = (hash: string, slot: number) => answers.filter(({ answer }) => answer.get(hash) === slot).length;
  const listed = answers.flatMap(({ answer }) => [...answer]);
  return new Map(listed.filter(([hash, slot]) => counts(hash, slot) >= 2));
}

async function search(
  { hashes, firstSlot }: Sought,
  list: (page: { before: string | undefined; limit: number }) => Promise<ListedTransaction[]>,
): Promise<Map<string, number>> {
  const slots = new Map<string, number>();
  // Reading a single transaction costs one call too.
  let left = hashes.size > 1 ? hashes.size * ENTRIES_PER_TRANSACTION : 0;
  for (let before: string | undefined; left > 0 && slots.size < hashes.size; ) {
    const page = await list({ before, limit: left });
    for (const { signature, slot, failed } of page) if (hashes.has(signature) && !failed) slots.set(signature, slot);
    const last = page.at(-1);
    before = last?.signature;
    left = last === undefined || last.slot < firstSlot ? 0 : left - page.length;
  }
  return slots;
}

async function readOne(chain: SolanaChain, hash: string, agree: "large" | "all"): Promise<FinalTransaction> {
  if (!isSignature(hash)) return { state: "not_found" };
  const { finality } = chain.network;
  const wanted = { signature: hash, commitment: finality };
  const read = (shown: VersionedTransactionResponse) => listMovements(chain, hash, shown);
  // The first endpoint can lack what another one has, so that its word alone is no sign of a thief.
  const movements = await findTransaction(chain, wanted, read);
  if (!movements) return { state: (await isKnown(chain, hash)) ? "not_final" : "not_found" };
  if (!needsSecond(chain, movements, agree)) return { state: "final", movements };
  const all = await readTransactionFromEach(chain, wanted, read);
  const agreeing = all.filter(({ answer }) => isSame(answer, movements));
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

/**
 * Returns the movements of one token into and out of the treasury. Throws ChainError `rpc_answer` for an answer without inner
 * instructions that shows a change which no instruction explains: it cannot say who moved what, and other endpoints give the movement
 * another position.
 */
export function listTokenMovements(
  chain: SolanaChain,
  { hash, token }: { hash: string; token: SolanaToken },
  shown: VersionedTransactionResponse,
): TokenMovement[] {
  const treasury = { owner: chain.treasury, accounts: new Map([[token.treasuryAccount, token.token]]) };
  const { slot, blockTime } = shown;
  const found = readMovements(shown, treasury);
  if (!shown.meta?.innerInstructions && found.some(({ index }) => isUnexplained(index)))
    throw new ChainError("rpc_answer", { detail: `transaction ${hash} has no inner instructions` });
  return found.map(({ mint, memo, index, ...movement }) => ({
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

/** Returns true if a second endpoint must show one of these movements. */
function needsSecond(
  chain: SolanaChain,
  movements: readonly Pick<TokenMovement, "token" | "receiver" | "amount">[],
  agree: "large" | "all",
): boolean {
  return movements.some(({ token: mint, receiver, amount }) => {
    const token = [...chain.tokens.values()].find((one) => one.token === mint);
    const threshold = token && readAgreementThreshold(chain.network, token);
    return receiver === chain.treasury && threshold !== undefined && (agree === "all" || amount >= threshold);
  });
}

/** Returns a text that is the same for the same movements in the same slot. */
export function describeMovements(all: readonly TokenMovement[]): string {
  return all
    .map((m) => [m.blockId, m.logIndex, m.token, m.payer, m.receiver, m.amount, m.authorizationNonce].join(" "))
    .join("\n");
}

/** Returns true if two endpoints show the same movements in the same slot. */
function isSame(some: readonly TokenMovement[], others: readonly TokenMovement[]): boolean {
  return describeMovements(some) === describeMovements(others);
}
