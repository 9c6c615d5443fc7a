import type { VersionedTransactionResponse } from "@solana/web3.js";
import type { SeenTransfer } from "../../chains/movements.ts";
import { type Landed, listLandedSince, readTransaction } from "../../chains/solana/history.ts";
import { type Movement, readMovements } from "../../chains/solana/movements.ts";
import type { SolanaChain, SolanaToken } from "../../chains/solana/open.ts";
import { advanceAccountCursor, listAccountCursors } from "../../db/account-cursors.ts";
import { listOwnHashes } from "../../db/solana-transactions.ts";
import type { Books } from "../books.ts";
import type { TransferDeps } from "../deps.ts";
import { recordBlocks } from "../record.ts";
import { bookForgotten, type Forgotten, readForgotten } from "./forgotten.ts";

type ScanBooks = Pick<Books, "bound" | "gas" | "rent">;

/**
 * Finds what moved into or out of the treasury by transactions that are not ours, in the final history of its token
 * accounts: one call per asset, and one more for each such transaction. What was meant for a payment that waits opens its
 * attempt; the rest is for the exceptions.
 */
export async function scanTreasury(deps: TransferDeps, chain: SolanaChain, books: ScanBooks): Promise<void> {
  const cursors = await listAccountCursors(deps.db, chain.chain);
  for (const token of chain.tokens.values()) {
    const from = cursors.get(token.treasuryAccount);
    if (from !== undefined) await scanAccount(deps, chain, { token, from, books });
  }
}

async function scanAccount(
  deps: TransferDeps,
  chain: SolanaChain,
  { token, from, books }: { token: SolanaToken; from: string | null; books: ScanBooks },
): Promise<void> {
  const { landed, newest } = await listLandedSince(chain, token.treasuryAccount, from ?? undefined);
  if (newest === undefined || newest === from) return;
  const hashes = landed.map(({ signature }) => signature);
  const own = await listOwnHashes(deps.db, { chain: chain.chain, hashes });
  const seen: SeenTransfer[] = [];
  const forgotten: Forgotten[] = [];
  for (const one of landed.filter(({ signature }) => !own.has(signature))) {
    const transaction = await readTransaction(chain, one.signature);
    seen.push(...listSeen(chain, token, one, transaction));
    forgotten.push(...[readForgotten(chain, one, transaction) ?? []].flat());
  }
  const count = await deps.db.transaction().execute(async (db): Promise<() => void> => {
    const place = { chain: chain.chain, account: token.treasuryAccount };
    const ok = await advanceAccountCursor(db, { ...place, from, to: newest });
    if (!ok) return () => undefined;
    await bookForgotten(deps, db, forgotten, books);
    return recordBlocks(db, deps, chain, { seen, landed: [], bound: books.bound });
  });
  count();
}

function listSeen(
  chain: SolanaChain,
  token: SolanaToken,
  { signature, slot }: Landed,
  transaction: VersionedTransactionResponse,
): SeenTransfer[] {
  const accounts = new Map([[token.treasuryAccount, token.token]]);
  return readMovements(transaction, { owner: chain.treasury, accounts }).map((movement: Movement): SeenTransfer => {
    const { mint, payer, receiver, amount, memo, index } = movement;
    return {
      ...{ blockHash: String(slot), blockNumber: slot, txHash: signature, logIndex: index },
      ...{ token: mint, payer, receiver, amount, authorizationNonce: memo ?? null },
    };
  });
}
