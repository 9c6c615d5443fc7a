import { listCreated, mayCreate } from "../../chains/solana/creations.ts";
import { readTransaction } from "../../chains/solana/history.ts";
import type { SolanaChain } from "../../chains/solana/open.ts";
import type { Status } from "../../chains/solana/reads.ts";
import { parseTransaction } from "../../chains/solana/transactions.ts";
import { noteMade } from "../../db/made-accounts.ts";
import type { Db } from "../../db/tables.ts";
import type { TransactionRow } from "../../db/transactions.ts";
import type { TransferDeps } from "../deps.ts";

/** What a final transaction of ours has put into accounts that it made, lamports, out of which lane's money. */
export type Rent = { chain: string; address: string; hash: string; slot: number; lamports: bigint; made: string[] };

/** Books rents, in the transaction that calls their transactions final. */
export type RentBook = (db: Db, rents: readonly Rent[]) => Promise<void>;

/**
 * The rents of final transactions, as the chain tells them; one call for each that makes accounts. `unread` has the
 * hashes of those that cannot be read now, and why.
 */
export async function readRents(
  chain: SolanaChain,
  final: readonly { row: TransactionRow; status: Status }[],
): Promise<{ rents: Rent[]; unread: Map<string, unknown> }> {
  const rents: Rent[] = [];
  const unread = new Map<string, unknown>();
  for (const { row, status } of final.filter((one) => !one.status.error && mayCreate(one.row.bytes))) {
    const parsed = parseTransaction(row.bytes);
    const made = "fault" in parsed ? [] : listCreated(parsed);
    if ("fault" in parsed || made.length === 0) continue;
    const transaction = await readTransaction(chain, row.hash).catch((error: unknown) => {
      unread.set(row.hash, error);
      return undefined;
    });
    if (!transaction) continue;
    const { meta } = transaction;
    // The fee payer is the first account, and pays for nothing else.
    const [before = 0, after = 0] = [meta?.preBalances[0], meta?.postBalances[0]];
    const lamports = BigInt(before) - BigInt(after) - BigInt(meta?.fee ?? 0);
    const place = { chain: chain.chain, address: parsed.feePayer, hash: row.hash, slot: status.slot };
    rents.push({ ...place, lamports, made });
  }
  return { rents, unread };
}

/** Notes the accounts that were made, and books what they hold. */
export async function bookRents(deps: TransferDeps, db: Db, rents: readonly Rent[], book: RentBook): Promise<void> {
  const made_at = deps.now();
  const made = rents.flatMap(({ chain, hash: tx_hash, made }) =>
    made.map((address) => ({ chain, address, tx_hash, made_at })),
  );
  await noteMade(db, made);
  const paid = rents.filter(({ lamports }) => lamports > 0n);
  if (paid.length > 0) await book(db, paid);
}
