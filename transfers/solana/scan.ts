import type { SeenTransfer } from "../../chains/movements.ts";
import { type Landed, listLandedSince, readTransaction } from "../../chains/solana/history.ts";
import { type Movement, readMovements } from "../../chains/solana/movements.ts";
import type { SolanaChain, SolanaToken } from "../../chains/solana/open.ts";
import { advanceAccountCursor, listAccountCursors } from "../../db/account-cursors.ts";
import { listOwnHashes } from "../../db/solana-transactions.ts";
import type { TransferDeps } from "../deps.ts";
import { type BoundBook, recordBlocks } from "../record.ts";

/**
 * Finds what moved into or out of the treasury by transactions that are not ours, in the final history of its token
 * accounts: one call per asset, and one more for each such transaction. What was meant for a payment that waits opens its
 * attempt; the rest is for the exceptions.
 */
export async function scanTreasury(deps: TransferDeps, chain: SolanaChain, bound: BoundBook): Promise<void> {
  const cursors = await listAccountCursors(deps.db, chain.chain);
  for (const token of chain.tokens.values()) {
    const from = cursors.get(token.treasuryAccount);
    if (from !== undefined) await scanAccount(deps, chain, { token, from, bound });
  }
}

async function scanAccount(
  deps: TransferDeps,
  chain: SolanaChain,
  { token, from, bound }: { token: SolanaToken; from: string | null; bound: BoundBook },
): Promise<void> {
  const { landed, newest } = await listLandedSince(chain, token.treasuryAccount, from ?? undefined);
  if (newest === undefined || newest === from) return;
  const hashes = landed.map(({ signature }) => signature);
  const own = await listOwnHashes(deps.db, { chain: chain.chain, hashes });
  const seen: SeenTransfer[] = [];
  for (const one of landed.filter(({ signature }) => !own.has(signature)))
    seen.push(...(await readSeen(chain, token, one)));
  const count = await deps.db.transaction().execute(async (db): Promise<() => void> => {
    const place = { chain: chain.chain, account: token.treasuryAccount };
    const ok = await advanceAccountCursor(db, { ...place, from, to: newest });
    return ok ? recordBlocks(db, deps, chain, { seen, landed: [], bound }) : () => undefined;
  });
  count();
}

async function readSeen(chain: SolanaChain, token: SolanaToken, { signature, slot }: Landed): Promise<SeenTransfer[]> {
  const accounts = new Map([[token.treasuryAccount, token.token]]);
  const transaction = await readTransaction(chain, signature);
  const at = transaction.blockTime ? new Date(transaction.blockTime * 1_000) : undefined;
  return readMovements(transaction, { owner: chain.treasury, accounts }).map((movement: Movement): SeenTransfer => {
    const { mint, payer, receiver, amount, memo, index } = movement;
    return {
      ...{ blockHash: String(slot), blockNumber: slot, txHash: signature, logIndex: index },
      ...{ token: mint, payer, receiver, amount, authorizationNonce: memo ?? null, at },
    };
  });
}
