import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { type EndpointStatus, readEndpointStatuses, readStatuses } from "../../chains/solana/signature-statuses.ts";
import type { SolanaTransactionRow } from "../../db/queries/solana-transactions.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import type { TrackedTransaction } from "./tracked-transaction.ts";

/** Statuses of older transactions are searched in the full history, because nodes cache only recent ones, milliseconds. */
const RECENT_MS = 45_000;

/**
 * Reads the statuses of transactions, 256 per call. With the final slot, also asks every endpoint about those that the
 * answering one should know and does not (it may have lost their slots), and about those in final slots that it does not show as
 * final (its own final slot may stand still). Throws ChainError.
 */
export async function readTrackedTransactions(
  deps: TransferDeps,
  chain: SolanaChain,
  rows: readonly SolanaTransactionRow[],
  { final }: { final?: number | undefined } = {},
): Promise<TrackedTransaction[]> {
  const isRecent = (row: SolanaTransactionRow) => deps.now().getTime() - row.created_at.getTime() < RECENT_MS;
  const [recent, old] = [rows.filter(isRecent), rows.filter((row) => !isRecent(row))];
  const ask = async (some: readonly SolanaTransactionRow[], history: boolean): Promise<TrackedTransaction[]> => {
    if (some.length === 0) return [];
    const hashes = some.map(({ hash }) => hash);
    const { slot, statuses } = await readStatuses(chain, hashes, { history });
    return some.map((row, index) => ({ row, status: statuses[index], slot }));
  };
  const tracked = (await Promise.all([ask(recent, false), ask(old, true)])).flat();
  const isMissing = ({ row, status }: TrackedTransaction, upTo: number) =>
    status ? status.depth !== "finalized" && status.slot <= upTo : row.state === "included" || !isRecent(row);
  const missing = final === undefined ? [] : tracked.filter((one) => isMissing(one, final));
  if (missing.length === 0) return tracked;
  const hashes = missing.map(({ row }) => row.hash);
  const reports = await readEndpointStatuses(chain, hashes);
  return tracked.map((one) => {
    const report = findReport(one, reports.get(one.row.hash) ?? []);
    return report ? { row: one.row, status: report.status, slot: report.slot } : one;
  });
}

/**
 * Returns the endpoint's report that replaces the status of a transaction: a final one with the slot and outcome that are known, or that
 * two endpoints show. Where the answering endpoint knows nothing, any report. One endpoint alone moves no transaction that another one shows.
 */
function findReport(
  { row, status }: TrackedTransaction,
  reports: readonly EndpointStatus[],
): EndpointStatus | undefined {
  const describe = (one: { slot: number | null; error?: string | undefined }) =>
    `${one.slot} ${one.error !== undefined}`;
  const shown = reports.flatMap((one) => (one.status ? [{ ...one, status: one.status }] : []));
  const final = shown.filter((one) => one.status.depth === "finalized");
  const known = describe(status ?? { slot: row.slot, error: row.reverted ? "" : undefined });
  const all = final.map((one) => describe(one.status));
  const agreed = final.find((_, index) => all[index] === known || all.filter((one) => one === all[index]).length > 1);
  return agreed ?? (status ? undefined : (final[0] ?? shown[0]));
}
