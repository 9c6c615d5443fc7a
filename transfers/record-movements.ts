import type { Chain } from "../chains/chain.ts";
import type { Receipt } from "../chains/evm/evm-broadcast.ts";
import type { TokenMovement } from "../chains/token-movement.ts";
import { moveRows } from "../db/moves.ts";
import { insertBurnedGas } from "../db/queries/burned-gas.ts";
import { keepBookable } from "../db/queries/failed-bookings.ts";
import { skipUsedNonces } from "../db/queries/lanes.ts";
import { insertObservations, listClaimed } from "../db/queries/observations.ts";
import { type EvmTransactionRow, markIncluded } from "../db/queries/transactions.ts";
import {
  listAssigned,
  lockByAuthorizations,
  lockUnassigned,
  type TransferRow,
  unassignTransfers,
} from "../db/queries/transfers.ts";
import { formatObservationKey } from "../db/queries/unmatched-movements.ts";
import { type RunRows, runInSavepoints } from "../db/savepoint.ts";
import type { Db } from "../db/tables.ts";
import { cleanText } from "../runtime/clean-text.ts";
import { storeFailedBooking } from "./book-each.ts";
import { listBurned } from "./list-burned.ts";
import { isProof } from "./match-movements.ts";
import { traceInclusion, traceObservation } from "./trace-transfers.ts";
import type { TransferDeps } from "./transfer-deps.ts";

/**
 * Opens attempts for unsolicited payments: movements that name a payment and arrive before or without a confirm. Those that are final
 * (`isFinal`) also pay a payment for whose accepted confirm nothing was sent. Runs in the database transaction that records or books
 * them. Returns a function to call after the commit.
 */
export type BookUnsolicited = (
  db: Db,
  chain: string,
  unsolicited: readonly TokenMovement[],
  options?: { isFinal: boolean },
) => Promise<() => void>;

/** Longest text that is kept of each member of a movement that cannot be recorded, characters. */
const MAX_TEXT_LENGTH = 200;

/** A transaction of ours with its receipt. */
export type IncludedTransaction = { row: EvmTransactionRow; receipt: Receipt };
/** What can be recorded: token movements, and our own transactions with their receipts. Only EVM chains have receipts. */
export type Recordable = { seen: readonly TokenMovement[]; landed: readonly IncludedTransaction[] };

/**
 * `runRows`: how rows are written when one of them may fail, in savepoints when unset (db/savepoint.ts). `isLate`: the movements
 * are recorded apart from the reading of their blocks. No second reading compares them, so two endpoints must show them.
 */
type RecordOptions = { unsolicited: BookUnsolicited; runRows?: RunRows; isLate?: boolean };

/** The members of a chain that this file uses. */
type Watching = Pick<Chain, "chain" | "treasury">;

/**
 * Records the content of blocks, in the database transaction that moves the cursor to the last of them. Marks our
 * transactions as included. Includes the transfers that logs prove, from any sender; a receipt alone does not prove a
 * transfer. Unassigns the members of a batch that left no log, so that each is retried alone. A movement that cannot be
 * recorded is stored as a failed booking, and the rest is recorded. Returns a function to call after the commit.
 */
export async function recordBlocks(
  db: Db,
  deps: TransferDeps,
  chain: Watching,
  { seen, landed, unsolicited, runRows = runInSavepoints, isLate = false }: Recordable & RecordOptions,
): Promise<() => void> {
  const began = deps.now();
  const failed: TokenMovement[] = [];
  const parts = await runRows(db, seen, {
    work: (some) => recordMovements(db, deps, chain, some, { unsolicited, isLate }),
    async fail(log, error) {
      failed.push(log);
      await storeFailedMovement(db, deps, chain, log, error);
    },
  });
  const proved = parts.flatMap((part) => part.proved);
  const included = await runRows(db, landed, {
    async work(some) {
      await markIncluded(
        db,
        some.map(({ row, receipt }) => ({ ...row, ...receipt })),
      );
      // Old bytes of a lane whose nonce was reset to their nonce or below.
      for (const { row } of some.filter(({ row }) => row.state === "replaced"))
        await skipUsedNonces(db, { laneId: row.lane_id, nextNonce: row.nonce + 1 });
      return some;
    },
    fail: ({ row }, error) =>
      storeFailedBooking(deps, db, { chain: chain.chain, kind: "transaction", subject: row.hash }, error),
  });
  const assigned = await listAssigned(
    db,
    landed.map(({ row }) => row),
  );
  const missing = assigned.filter((row) => !failed.some((log) => isProof(log, row)));
  const reason = "left no log in its transaction";
  const at = deps.now();
  await unassignTransfers(db, { ids: missing.map(({ id }) => id), reason, now: at });
  const burned = listBurned(landed, { proved, missing, at });
  await insertBurnedGas(
    db,
    burned.flatMap(({ purpose, ...row }) => (purpose === "payment" ? [row] : [])),
  );

  return () => reportRecorded(deps, chain, { parts, included: included.flat(), missing, burned, landed, began });
}

/** Reports what was recorded: opens the unsolicited payments, and writes traces, metrics and a log line. */
function reportRecorded(
  deps: TransferDeps,
  { chain }: Watching,
  {
    parts,
    included,
    missing,
    burned,
    landed,
    began,
  }: {
    parts: readonly Recorded[];
    included: readonly IncludedTransaction[];
    missing: readonly TransferRow[];
    burned: ReturnType<typeof listBurned>;
    landed: readonly IncludedTransaction[];
    began: Date;
  },
): void {
  const { metrics } = deps;
  for (const { opened } of parts) opened();
  const transfers = parts.flatMap((part) => part.included);
  traceInclusion(deps, { chain, transfers, sent: landed.map(({ row }) => row) });
  traceObservation(deps, { chain, transfers, began });
  for (const { purpose, state } of transfers)
    metrics.transferTransitions.inc({ chain, purpose, from: state, to: "included" });
  for (const { purpose } of missing) metrics.transferTransitions.inc({ chain, purpose, from: "assigned", to: "ready" });
  const proved = parts.flatMap((part) => part.proved);
  for (const { row, receipt } of included) {
    const members = [...proved, ...missing].filter(
      (member) => member.lane_id === row.lane_id && member.lane_nonce === row.nonce,
    );
    metrics.transactions.inc({ chain, state: receipt.reverted ? "reverted" : "included" });
    metrics.gasPerTransfer.observe({ chain }, Number(receipt.gasUsed) / Math.max(1, members.length));
  }
  for (const { gas } of burned) metrics.gasWithoutTransfer.inc({ chain }, Number(gas));
  if (missing.length > 0)
    deps.log.warn(
      { chain, transfers: missing.map(({ id }) => id) },
      "transfers left no log in their transaction; each is retried alone",
    );
}

/** Returns true for a movement into or out of the treasury. */
export function isOurs(chain: Pick<Chain, "treasury">, log: Pick<TokenMovement, "payer" | "receiver">): boolean {
  return log.receiver === chain.treasury || log.payer === chain.treasury;
}

/** Transfers that the recorded movements prove, those that became included, and a function to call after the commit. */
type Recorded = { proved: TransferRow[]; included: TransferRow[]; opened: () => void };

/** Stores a movement that cannot be recorded as a failed booking, with everything that a retry needs. */
async function storeFailedMovement(
  db: Db,
  deps: TransferDeps,
  { chain }: Watching,
  log: TokenMovement,
  error: unknown,
): Promise<void> {
  // A memo can hold characters that Postgres rejects, which may be the reason for the failure.
  const clean = Object.entries({ ...log, amount: String(log.amount) }).map(([name, value]) => [
    name,
    typeof value === "string" ? cleanText(value, MAX_TEXT_LENGTH) : value,
  ]);
  const of = { block_number: log.blockNumber, movement: Object.fromEntries(clean) };
  await storeFailedBooking(deps, db, { chain, kind: "movement", subject: nameMovement(log) }, error, of);
}

/** Returns the unique key of a movement among the failed bookings. */
function nameMovement({ blockId, txHash, logIndex }: TokenMovement): string {
  return formatObservationKey({ block_id: blockId, tx_hash: txHash, log_index: logIndex });
}

/** Returns the movements that are not stored as failed bookings. The others are retried when they are due. */
export function listRecordable<M extends TokenMovement>(db: Db, { chain }: Watching, seen: readonly M[]): Promise<M[]> {
  return keepBookable(db, seen, { chain, kind: "movement", subjectOf: nameMovement });
}

async function recordMovements(
  db: Db,
  deps: TransferDeps,
  chain: Watching,
  seen: readonly TokenMovement[],
  { unsolicited, isLate }: { unsolicited: BookUnsolicited; isLate: boolean },
): Promise<Recorded> {
  const { known, waiting, opened } = await matchTransfers(db, chain, seen, unsolicited);
  const claims = claim(chain, seen, { claimable: await keepClaimable(db, known), waiting });
  const assigned = await insertObservations(
    db,
    claims.map(({ log, transfer }) => ({ ...toRow(deps, chain, log, transfer), recorded_late: isLate || undefined })),
  );
  // A movement that is booked as an exception stays one and proves no transfer.
  const proved = claims.flatMap(({ transfer }) => (transfer && assigned.has(transfer.id) ? transfer : []));
  const at = deps.now();
  const set = { due_at: null, hold_until: null, last_error: null };
  const included = new Set<string>();
  for (const from of ["assigned", "ready", "awaited"] as const) {
    const ids = proved.filter((row) => row.state === from).map((row) => row.id);
    for (const id of await moveRows(db, "transfer", { ids, from, to: "included", at, set })) included.add(id);
  }
  return { proved, included: proved.filter(({ id }) => included.has(id)), opened };
}

/**
 * Returns the transfers that movements can belong to. Opens the transfers of unsolicited payments first. `waiting`: nonces of
 * payments whose transfers may give way to money that went to a merchant, once it is final.
 */
async function matchTransfers(
  db: Db,
  chain: Watching,
  seen: readonly TokenMovement[],
  unsolicited: BookUnsolicited,
): Promise<{ known: TransferRow[]; waiting: ReadonlySet<string>; opened: () => void }> {
  const keyed = seen.filter((log) => log.authorizationNonce !== null);
  const nonces = keyed.flatMap(({ authorizationNonce }) => authorizationNonce ?? []);
  // Locked, because a lane may end a transfer at this moment: its movement would belong to it and never be booked.
  const lock = () => lockByAuthorizations(db, { chain: chain.chain, nonces });
  const known = await lock();
  const taken = new Set<string>(known.map((row) => row.authorization_nonce));
  const waiting = await listUnsent(db, chain, { keyed, known });
  // Not only movements to the treasury: a payer can pay a merchant directly.
  const fresh = keyed.filter(({ authorizationNonce }) => authorizationNonce !== null && !taken.has(authorizationNonce));
  if (fresh.length === 0) return { known, waiting, opened: () => undefined };
  const opened = await unsolicited(db, chain.chain, fresh);
  return { known: await lock(), waiting, opened };
}

/** Returns the nonces of payments for whose accepted confirms nothing was sent, and that money to a merchant names. */
async function listUnsent(
  db: Db,
  chain: Watching,
  { keyed, known }: { keyed: readonly TokenMovement[]; known: readonly TransferRow[] },
): Promise<ReadonlySet<string>> {
  const others = keyed.filter((log) => !isOurs(chain, log) && !known.some((row) => isProof(log, row)));
  const nonces = others.flatMap(({ authorizationNonce }) => authorizationNonce ?? []);
  const unsent = nonces.length === 0 ? [] : await lockUnassigned(db, nonces);
  return new Set(unsent.map((row) => row.authorization_nonce));
}

type Claim = { log: TokenMovement; transfer: TransferRow | undefined };

/**
 * Returns the transfers that a movement can prove: those that have not ended and whose movement is not recorded yet. (A
 * confirmed transfer that a deep reorg removed is made again by the same authorization.)
 */
async function keepClaimable(db: Db, known: readonly TransferRow[]): Promise<TransferRow[]> {
  const made = known.filter(({ state }) => state === "included" || state === "confirmed");
  const standing = await listClaimed(
    db,
    made.map(({ id }) => id),
  );
  return known.filter(({ id, state }) => state !== "ended" && !standing.has(id));
}

/**
 * Assigns movements to transfers. A transfer takes one movement; a second one is kept without a transfer and becomes an
 * exception. Movements that neither prove a transfer nor involve the treasury are dropped, except those that can pay a payment once
 * they are final: a payer can pay a merchant directly.
 */
function claim(
  chain: Watching,
  seen: readonly TokenMovement[],
  { claimable, waiting }: { claimable: readonly TransferRow[]; waiting: ReadonlySet<string> },
): Claim[] {
  const open = new Set(claimable);
  return seen.flatMap((log) => {
    const transfer = [...open].find((row) => isProof(log, row));
    if (transfer) open.delete(transfer);
    const isKept = isOurs(chain, log) || waiting.has(log.authorizationNonce ?? "");
    return transfer || isKept ? [{ log, transfer }] : [];
  });
}

function toRow(deps: TransferDeps, chain: Watching, log: TokenMovement, transfer: TransferRow | undefined) {
  return {
    chain: chain.chain,
    block_id: log.blockId,
    block_number: log.blockNumber,
    log_index: log.logIndex,
    tx_hash: log.txHash,
    token: log.token,
    payer: log.payer,
    receiver: log.receiver,
    amount: log.amount,
    authorization_nonce: log.authorizationNonce,
    transfer_id: transfer?.id ?? null,
    observed_at: deps.now(),
    moved_at: log.at ?? null,
  };
}
