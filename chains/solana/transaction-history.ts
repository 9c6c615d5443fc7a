import { PublicKey, type VersionedTransactionResponse } from "@solana/web3.js";
import { z } from "zod";
import { ChainError } from "../errors.ts";
import type { Call } from "../json-rpc.ts";
import { askFirstSlot } from "./first-block.ts";
import type { SolanaChain } from "./open-solana-chain.ts";

/** Maximum number of signatures per call. Some endpoints return fewer. */
const PAGE = 1_000;

/** A final transaction that names an account. `memo` is the endpoint's text about its memos, not cleaned. */
export type ListedTransaction = { signature: string; slot: number; failed: boolean; memo: string };

const Listed = z.array(
  z.object({ signature: z.string(), slot: z.number(), err: z.unknown(), memo: z.string().nullish() }),
);

/** Which page of an account's history to list. The page contains neither `until` nor `before`. */
type PageArgs = {
  account: string;
  until?: string | undefined;
  before?: string | undefined;
  atSlot?: number | undefined;
  limit?: number;
  depth?: "confirmed" | "finalized";
};

/**
 * Returns a page of the transactions that name an account, newest first, after `until` and before `before`, final ones
 * unless `depth` says otherwise. An empty page is the end of the list. Skips endpoints that have not reached slot `atSlot`.
 * Throws ChainError.
 */
export async function listSignatures(chain: SolanaChain, args: PageArgs): Promise<ListedTransaction[]> {
  return chain.rpc.ask("getSignaturesForAddress", (_connection, call) => askSignatures(call, args));
}

type Page = readonly ListedTransaction[];

/**
 * Returns a page as `listSignatures` does, from an endpoint whose page satisfies `isUsable`. All endpoints are asked only if the page
 * of the first one does not, or if it returns an error. When all of them then list nothing, returns an empty page if `isEnd` says so
 * of the first slot of an endpoint's history. Throws ChainError, `history_short` if no page is usable.
 */
export async function findSignatures(
  chain: SolanaChain,
  args: PageArgs,
  { isUsable, isEnd }: { isUsable(page: Page): boolean; isEnd(firstSlot: number): boolean },
): Promise<Page> {
  let refusal: unknown;
  const first = await listSignatures(chain, args).catch((error: unknown) => {
    if (!(error instanceof ChainError && error.code === "rpc_answer")) throw error;
    refusal = error;
    return undefined;
  });
  if (first && isUsable(first)) return first;
  const answers = await chain.rpc.queryAvailable("getSignaturesForAddress", async (_connection, call) => {
    const page = await askSignatures(call, args);
    // Read after the page: blocks that are deleted in between count as missing.
    return { page, ends: page.length === 0 && isEnd(await askFirstSlot(call)) };
  });
  const pages = answers.map(({ answer }) => answer);
  const usable = pages.find(({ page }) => isUsable(page));
  if (usable) return usable.page;
  if (pages.every(({ page }) => page.length === 0) && pages.some(({ ends }) => ends)) return [];
  if (refusal !== undefined && pages.length === 0) throw refusal;
  throw new ChainError("history_short", { detail: `${args.account} on ${chain.chain}` });
}

async function askSignatures(call: Call, args: PageArgs): Promise<ListedTransaction[]> {
  const { account, until, before, atSlot, limit = PAGE, depth = "finalized" } = args;
  // JSON leaves out what is undefined.
  const bounds = { until, before, minContextSlot: atSlot, limit: Math.min(PAGE, limit), commitment: depth };
  const page = Listed.parse(await call("getSignaturesForAddress", [account, bounds]));
  // An entry without `err` does not say that the transaction succeeded.
  return page.map(({ signature, slot, err, memo }) => ({ signature, slot, failed: err !== null, memo: memo ?? "" }));
}

/** Returns the newest final transaction that names an account, or undefined if there is none. */
export async function findNewestSignature(
  chain: SolanaChain,
  account: string,
): Promise<{ signature: string; slot: number } | undefined> {
  const [newest] = await chain.rpc.ask("getSignaturesForAddress", (connection) =>
    connection.getSignaturesForAddress(new PublicKey(account), { limit: 1 }, "finalized"),
  );
  return newest && { signature: newest.signature, slot: newest.slot };
}

/** Returns a final transaction as each endpoint has it. Leaves out endpoints that do not answer or do not have it. */
export async function readTransactionFromEach(
  chain: SolanaChain,
  signature: string,
): Promise<VersionedTransactionResponse[]> {
  const answers = await chain.rpc.queryAvailable("getTransaction", (connection) =>
    connection.getTransaction(signature, { commitment: "finalized", maxSupportedTransactionVersion: 0 }),
  );
  return answers.flatMap(({ answer }) => answer ?? []);
}

/**
 * Returns a final transaction from the first endpoint, or from any other one if that endpoint does not have it or returns
 * an error. Throws ChainError, `rpc_behind` if no endpoint that answered has it.
 */
export async function readTransaction(chain: SolanaChain, signature: string): Promise<VersionedTransactionResponse> {
  const ask: Parameters<typeof chain.rpc.ask<VersionedTransactionResponse | null>>[1] = (connection) =>
    connection.getTransaction(signature, { commitment: "finalized", maxSupportedTransactionVersion: 0 });
  let refusal: unknown;
  const first = await chain.rpc.ask("getTransaction", ask).catch((error: unknown) => {
    if (!(error instanceof ChainError && error.code === "rpc_answer")) throw error;
    refusal = error;
    return null;
  });
  if (first) return first;
  const all = await chain.rpc.queryAvailable("getTransaction", ask);
  const found = all.find(({ answer }) => answer !== null)?.answer;
  if (found) return found;
  throw refusal ?? new ChainError("rpc_behind", { detail: `transaction ${signature}` });
}
