import { PublicKey, type VersionedTransactionResponse } from "@solana/web3.js";
import { ChainFault } from "../faults.ts";
import type { SolanaChain } from "./open.ts";

/** Signatures in one call; what the method allows. Some endpoints give fewer. */
const PAGE = 1_000;

/** A final transaction that named an account. `memo` is what an endpoint says of its memos, foreign text as it came. */
export type Listed = { signature: string; slot: number; failed: boolean; memo: string };

/**
 * Lists some of the final transactions that named an account, the newest first: after `until`, and before `before` where
 * it is given. There are no more when it gives none. An endpoint that has not come to the slot `atSlot` is not believed.
 * Throws ChainFault.
 */
export async function listSignatures(
  chain: SolanaChain,
  args: { account: string; until?: string | undefined; before?: string | undefined; atSlot: number },
): Promise<Listed[]> {
  const { account, until, before, atSlot: minContextSlot } = args;
  const bounds = { ...(until ? { until } : {}), ...(before ? { before } : {}), minContextSlot };
  const page = await chain.rpc.ask("getSignaturesForAddress", (connection) =>
    connection.getSignaturesForAddress(new PublicKey(account), { limit: PAGE, ...bounds }, "finalized"),
  );
  return page.map(({ signature, slot, err, memo }) => ({ signature, slot, failed: err !== null, memo: memo ?? "" }));
}

/** The newest final transaction that named an account. */
export async function findNewest(
  chain: SolanaChain,
  account: string,
): Promise<{ signature: string; slot: number } | undefined> {
  const [newest] = await chain.rpc.ask("getSignaturesForAddress", (connection) =>
    connection.getSignaturesForAddress(new PublicKey(account), { limit: 1 }, "finalized"),
  );
  return newest && { signature: newest.signature, slot: newest.slot };
}

/** What each endpoint that answers gives as a final transaction, by itself. */
export async function readEachTransaction(
  chain: SolanaChain,
  signature: string,
): Promise<VersionedTransactionResponse[]> {
  const answers = await chain.rpc.askAny("getTransaction", (connection) =>
    connection.getTransaction(signature, { commitment: "finalized", maxSupportedTransactionVersion: 0 }),
  );
  return answers.flatMap(({ answer }) => answer ?? []);
}

/**
 * A final transaction whole: of the endpoints in their order, and when the first one does not have it or cannot give it,
 * of whichever can. Throws ChainFault: `rpc_behind` when those that answered do not have it.
 */
export async function readTransaction(chain: SolanaChain, signature: string): Promise<VersionedTransactionResponse> {
  const ask: Parameters<typeof chain.rpc.ask<VersionedTransactionResponse | null>>[1] = (connection) =>
    connection.getTransaction(signature, { commitment: "finalized", maxSupportedTransactionVersion: 0 });
  let fault: unknown;
  const first = await chain.rpc.ask("getTransaction", ask).catch((error: unknown) => {
    if (!(error instanceof ChainFault && error.code === "rpc_answer")) throw error;
    fault = error;
    return null;
  });
  if (first) return first;
  const all = await chain.rpc.askAny("getTransaction", ask);
  const found = all.find(({ answer }) => answer !== null)?.answer;
  if (found) return found;
  throw fault ?? new ChainFault("rpc_behind", { detail: `transaction ${signature}` });
}
