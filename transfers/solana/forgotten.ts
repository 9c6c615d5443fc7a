import type { VersionedTransactionResponse } from "@solana/web3.js";
import type { SolanaChain } from "../../chains/solana/open.ts";
import { encodeUnsigned, parseTransaction } from "../../chains/solana/transactions.ts";
import type { Db } from "../../db/tables.ts";
import type { SpentTransaction } from "../../db/transactions.ts";
import type { Books } from "../books.ts";
import type { TransferDeps } from "../deps.ts";
import { bookRents, changesRent, type Rent, toRent } from "./rents.ts";

/** What a transaction that the rows do not know has cost a lane of ours. */
export type Forgotten = { spent: SpentTransaction; rent: Rent | undefined };

/** Reads what a final transaction has cost us; undefined when it was not one of our lanes that paid for it. */
export function readForgotten(
  chain: SolanaChain,
  { signature: hash, slot }: { signature: string; slot: number },
  { transaction, meta }: VersionedTransactionResponse,
): Forgotten | undefined {
  const { message } = transaction;
  const address = message.staticAccountKeys[0]?.toBase58() ?? "";
  if (!chain.lanes.includes(address)) return undefined;
  const parsed = parseTransaction(encodeUnsigned(message.serialize(), message.header.numRequiredSignatures));
  const place = { chain: chain.chain, hash, slot };
  const rent = "fault" in parsed || !changesRent(parsed) ? undefined : toRent(parsed, meta, place);
  const at = { block_number: slot, block_hash: String(slot) };
  return { spent: { chain: chain.chain, address, hash, ...at, fee: BigInt(meta?.fee ?? 0) }, rent };
}

/**
 * Books fees and rents of transactions that a database which stepped back in time has forgotten; their markers are known
 * again from then on. In the transaction that records what they moved.
 */
export async function bookForgotten(
  deps: TransferDeps,
  db: Db,
  forgotten: readonly Forgotten[],
  books: Pick<Books, "gas" | "rent">,
): Promise<void> {
  if (forgotten.length === 0) return;
  const spent = forgotten.map((one) => one.spent);
  await books.gas(db, spent);
  await bookRents(
    deps,
    db,
    forgotten.flatMap(({ rent }) => rent ?? []),
    books.rent,
  );
  deps.log.error(
    { chain: spent[0]?.chain, transactions: spent.map(({ hash }) => hash) },
    "transactions of ours are on chain that the database has forgotten; they are booked",
  );
}
