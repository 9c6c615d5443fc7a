import type { VersionedTransactionResponse } from "@solana/web3.js";
import {
  listClosedMarkers,
  listCreatedAccounts,
  listCreatedMarkers,
  mayCreateOrCloseAccounts,
} from "../../chains/solana/created-accounts.ts";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import type { SignatureStatus } from "../../chains/solana/signature-statuses.ts";
import { readTransaction } from "../../chains/solana/transaction-history.ts";
import { type ParsedTransaction, parseTransaction } from "../../chains/solana/wire-format.ts";
import { recordCreatedAccounts } from "../../db/queries/created-accounts.ts";
import { deleteClosedMarkers, type Marker, recordMarkers } from "../../db/queries/payout-markers.ts";
import type { SolanaTransactionRow } from "../../db/queries/solana-transactions.ts";
import type { Db } from "../../db/tables.ts";
import type { TransferDeps } from "../transfer-deps.ts";

/**
 * The rent of a final transaction of ours: lamports that the lane `address` paid into created accounts, negative when closed
 * accounts returned more.
 */
export type Rent = {
  chain: string;
  address: string;
  hash: string;
  slot: number;
  lamports: bigint;
  createdAccounts: string[];
  createdMarkers: Marker[];
  closedMarkers: string[];
};

/** A rent with the lamports in it that were never ours: a closed account also returns what third parties sent to it. */
export type BookedRent = Rent & { foreignLamports: bigint };

/** Books rents, in the database transaction that marks their transactions as final. */
export type BookRents = (db: Db, rents: readonly BookedRent[]) => Promise<void>;

/**
 * Reads the rents of final transactions from the chain, with one call for each that creates or closes accounts. `unread` has
 * the errors of transactions that cannot be read now, by hash.
 */
export async function readRents(
  chain: SolanaChain,
  final: readonly { row: SolanaTransactionRow; status: SignatureStatus }[],
): Promise<{ rents: Rent[]; unread: Map<string, unknown> }> {
  const rents: Rent[] = [];
  const unread = new Map<string, unknown>();
  for (const { row, status } of final.filter((one) => !one.status.error && mayCreateOrCloseAccounts(one.row.bytes))) {
    const parsed = parseTransaction(row.bytes);
    if ("error" in parsed || !createsOrClosesAccounts(parsed)) continue;
    const place = { chain: chain.chain, hash: row.hash, slot: status.slot };
    const read = ({ meta }: VersionedTransactionResponse) => toRent(parsed, meta, place);
    await readTransaction(chain, row.hash, read).then(
      (rent) => rents.push(rent),
      (error: unknown) => unread.set(row.hash, error),
    );
  }
  return { rents, unread };
}

/** Returns true for a transaction that creates or closes accounts. */
export function createsOrClosesAccounts(parsed: ParsedTransaction): boolean {
  return listCreatedAccounts(parsed).length + listCreatedMarkers(parsed).length + listClosedMarkers(parsed).length > 0;
}

/** Returns the rent of a transaction that creates or closes accounts. */
export function toRent(
  parsed: ParsedTransaction,
  meta: VersionedTransactionResponse["meta"],
  place: { chain: string; hash: string; slot: number },
): Rent {
  // The fee payer is the first account, and pays only the fee and rents.
  const [before = 0, after = 0] = [meta?.preBalances[0], meta?.postBalances[0]];
  const lamports = BigInt(before) - BigInt(after) - BigInt(meta?.fee ?? 0);
  const accounts = {
    createdAccounts: listCreatedAccounts(parsed),
    createdMarkers: listCreatedMarkers(parsed),
    closedMarkers: listClosedMarkers(parsed),
  };
  return { ...place, address: parsed.feePayer, lamports, ...accounts };
}

/** Stores the created accounts, deletes the closed ones, and books the rents. */
export async function bookRents(deps: TransferDeps, db: Db, rents: readonly Rent[], book: BookRents): Promise<void> {
  const created_at = deps.now();
  const created = rents.flatMap(({ chain, hash: tx_hash, createdAccounts }) =>
    createdAccounts.map((address) => ({ chain, address, tx_hash, created_at })),
  );
  await recordCreatedAccounts(db, created);
  const booked: BookedRent[] = [];
  for (const rent of rents.filter(({ lamports }) => lamports !== 0n)) {
    const { chain, hash, slot, createdMarkers, closedMarkers, lamports } = rent;
    await recordMarkers(db, { chain, hash, slot, at: created_at, markers: createdMarkers });
    const paid = await deleteClosedMarkers(db, { chain, addresses: closedMarkers });
    booked.push({ ...rent, foreignLamports: closedMarkers.length > 0 ? -lamports - paid : 0n });
  }
  if (booked.length > 0) await book(db, booked);
}
