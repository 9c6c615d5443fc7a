import type { VersionedTransactionResponse } from "@solana/web3.js";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { encodeUnsigned, parseTransaction } from "../../chains/solana/wire-format.ts";
import type { SpentTransaction } from "../../db/queries/transactions.ts";
import type { Db } from "../../db/tables.ts";
import type { BookingHandlers } from "../booking-handlers.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { bookRents, createsOrClosesAccounts, type Rent, toRent } from "./rents.ts";

/** The fee and the rent that a lane paid for a transaction that is missing in the database. */
export type ForgottenTransaction = { spent: SpentTransaction; rent: Rent | undefined };

/** Returns what a final transaction cost us, or undefined when no lane of ours paid for it. */
export function readForgottenTransaction(
  chain: SolanaChain,
  { signature: hash, slot }: { signature: string; slot: number },
  { transaction, meta }: VersionedTransactionResponse,
): ForgottenTransaction | undefined {
  const { message } = transaction;
  const address = message.staticAccountKeys[0]?.toBase58() ?? "";
  if (!chain.lanes.includes(address)) return undefined;
  const parsed = parseTransaction(encodeUnsigned(message.serialize(), message.header.numRequiredSignatures));
  const place = { chain: chain.chain, hash, slot };
  const rent = "error" in parsed || !createsOrClosesAccounts(parsed) ? undefined : toRent(parsed, meta, place);
  const at = { block_number: slot, block_id: String(slot) };
  return { spent: { chain: chain.chain, address, hash, ...at, fee: BigInt(meta?.fee ?? 0) }, rent };
}

/**
 * Books the fees and rents of transactions that are missing because the database lost commits, and stores their markers
 * again. Runs in the database transaction that records their movements.
 */
export async function bookForgotten(
  deps: TransferDeps,
  db: Db,
  forgotten: readonly ForgottenTransaction[],
  handlers: Pick<BookingHandlers, "gas" | "rent">,
): Promise<void> {
  if (forgotten.length === 0) return;
  const spent = forgotten.map((one) => one.spent);
  await handlers.gas(db, spent);
  await bookRents(
    deps,
    db,
    forgotten.flatMap(({ rent }) => rent ?? []),
    handlers.rent,
  );
  deps.log.error(
    { chain: spent[0]?.chain, transactions: spent.map(({ hash }) => hash) },
    "transactions of ours are on the chain and missing in the database; they are booked",
  );
}
