import { type BlockhashReport, readBlockhashReports } from "../../chains/solana/cluster-state.ts";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { parseTransaction } from "../../chains/solana/wire-format.ts";
import type { SolanaTransferRow } from "../../db/queries/transfers.ts";
import { REQUIRED_ENDPOINTS } from "./list-agreement.ts";

/** Slots by which an endpoint's final state may be behind its newest one, the lifetime of a blockhash. Usually it is some 32 behind. */
const MAX_FINAL_BEHIND = 150;

/** Transfers whose buyers' transactions may be signed, and those whose blockhash has expired. */
export type SortedByBlockhash = { signable: readonly SolanaTransferRow[]; expired: readonly SolanaTransferRow[] };

/**
 * Sorts ready transfers of buyers by whether the blockhash of their transaction has expired: bytes that cannot be included any longer
 * must not be sent, because a payment whose transfer was never sent can still be paid by its buyer's own transfer. Of three endpoints,
 * two decide. Of two that disagree, the one decides that knows the blockhash. A transfer is in neither list while no endpoint answers.
 * Never throws.
 */
export async function sortByBlockhash(
  chain: SolanaChain,
  rows: readonly SolanaTransferRow[],
): Promise<SortedByBlockhash> {
  const reports = await readReports(chain, rows, { bytesOf: ({ signature }) => signature, commitment: "processed" });
  const isExpired = (row: SolanaTransferRow) => {
    const of = reports.get(row) ?? [];
    const invalid = of.filter(({ isValid }) => !isValid).length;
    return invalid >= REQUIRED_ENDPOINTS || (invalid > 0 && invalid === of.length);
  };
  const expired = rows.filter(isExpired);
  const unknown = rows.filter((row) => reports.get(row)?.length === 0);
  return { signable: rows.filter((row) => !expired.includes(row) && !unknown.includes(row)), expired };
}

/**
 * Returns those of these transactions of whose blockhash two endpoints, or the only one, say that it is not valid, neither in the newest
 * state nor in the final one, which does not know a new blockhash. The transactions must be older than endpoints lag. An endpoint whose final
 * state is old says nothing: while a cluster makes no slots final, a blockhash can expire in the newest state and be valid again after it has
 * gone back. Never throws.
 */
export async function keepWithExpiredBlockhash<R>(
  chain: SolanaChain,
  rows: readonly R[],
  bytesOf: (row: R) => Uint8Array | null,
): Promise<R[]> {
  const required = Math.min(REQUIRED_ENDPOINTS, chain.network.rpc.length);
  const newest = await readReports(chain, rows, { bytesOf, commitment: "processed" });
  const expired = rows.filter((row) => listInvalid(newest, row).length >= required);
  const final = await readReports(chain, expired, { bytesOf, commitment: "finalized" });
  const isPast = (row: R, { by, slot }: BlockhashReport) =>
    listInvalid(newest, row).some((one) => one.by === by && one.slot - slot <= MAX_FINAL_BEHIND);
  return expired.filter((row) => listInvalid(final, row).filter((one) => isPast(row, one)).length >= required);
}

function listInvalid<R>(reports: ReadonlyMap<R, readonly BlockhashReport[]>, row: R): readonly BlockhashReport[] {
  return reports.get(row)?.filter(({ isValid }) => !isValid) ?? [];
}

async function readReports<R>(
  chain: SolanaChain,
  rows: readonly R[],
  { bytesOf, commitment }: { bytesOf: (row: R) => Uint8Array | null; commitment: "processed" | "finalized" },
): Promise<Map<R, BlockhashReport[]>> {
  const named = rows.flatMap((row) => {
    const parsed = parseTransaction(bytesOf(row) ?? new Uint8Array());
    return "error" in parsed ? [] : [{ row, blockhash: parsed.blockhash }];
  });
  const all = [...new Set(named.map(({ blockhash }) => blockhash))];
  const reports = await readBlockhashReports(chain, all, commitment);
  return new Map(
    named.flatMap(({ row, blockhash }): [R, BlockhashReport[]][] => {
      const report = reports.get(blockhash);
      return report ? [[row, report]] : [];
    }),
  );
}
