import type { SeenTransfer } from "../chains/movements.ts";
import type { Chain } from "../chains/open.ts";
import { insertBurnedGas } from "../db/burned-gas.ts";
import { keepBookable } from "../db/failed-bookings.ts";
import { skipUsedNonces } from "../db/lanes.ts";
import { moveRows } from "../db/moves.ts";
import { workInSavepoints } from "../db/savepoint.ts";
import { insertSightings, listClaimed, nameSighting } from "../db/sightings.ts";
import type { Db } from "../db/tables.ts";
import { markIncluded } from "../db/transactions.ts";
import { listByAuthorizations, listCarried, type TransferRow, uncarryTransfers } from "../db/transfers.ts";
import { cleanText } from "../ops/clean-text.ts";
import type { TransferDeps } from "./deps.ts";
import { storeFailure } from "./failed-bookings.ts";
import { isProof, settleNonces } from "./proof.ts";
import { isOurs, type Reading } from "./reading.ts";

/**
 * Opens attempts for money that was bound to payments which still wait for their buyers: it came by itself, before or
 * without a confirm. In the transaction that records it. Gives what is to be done after the commit.
 */
export type BoundBook = (db: Db, chain: string, bound: readonly SeenTransfer[]) => Promise<() => void>;

/** What is kept of each text of a movement that cannot be written down, characters. */
const LONGEST_TEXT = 200;

/** What of a chain matters here. */
type Watching = Pick<Chain, "chain" | "treasury">;

/**
 * Writes down what blocks say, in the transaction that moves the cursor onto the last of them: our transactions are
 * included, transfers are proved by what their logs show (whoever sent them), and members of a batch that left no trace
 * are taken out of it to be tried alone. A receipt alone proves nothing about a transfer. A movement that cannot be
 * written down is stored as a failed booking, and everything else goes on.
 * Gives what is to be done after the commit.
 */
export async function recordBlocks(
  db: Db,
  deps: TransferDeps,
  chain: Watching,
  { seen, landed, bound }: Pick<Reading, "seen" | "landed"> & { bound: BoundBook },
): Promise<() => void> {
  const failed: SeenTransfer[] = [];
  const parts = await workInSavepoints(db, seen, {
    work: (some) => recordMovements(db, deps, chain, some, bound),
    async fail(log, error) {
      failed.push(log);
      await storeFailedMovement(db, deps, chain, log, error);
    },
  });
  const proved = parts.flatMap((part) => part.proved);
  const included = await workInSavepoints(db, landed, {
    async work(some) {
      await markIncluded(
        db,
        some.map(({ row, receipt }) => ({ ...row, ...receipt })),
      );
      // Old bytes of a lane that was led back: it stands at or below their nonce.
      for (const { row } of some.filter(({ row }) => row.state === "replaced"))
        await skipUsedNonces(db, { laneId: row.lane_id, nextNonce: row.nonce + 1 });
      return some;
    },
    fail: ({ row }, error) =>
      storeFailure(deps, db, { chain: chain.chain, kind: "transaction", subject: row.hash }, error),
  });
  const carried = await listCarried(
    db,
    landed.map(({ row }) => row),
  );
  const missing = carried.filter((row) => !failed.some((log) => isProof(log, row)));
  const reason = "left no trace in its transaction";
  const at = deps.now();
  await uncarryTransfers(db, { ids: missing.map(({ id }) => id), reason, now: at });
  const burned = listBurned(landed, { proved, missing, at });
  await insertBurnedGas(
    db,
    burned.flatMap(({ purpose, ...row }) => (purpose === "payment" ? [row] : [])),
  );

  return () => {
    const { metrics } = deps;
    for (const { opened } of parts) opened();
    for (const { included } of parts)
      for (const { purpose, state } of included)
        metrics.transferMoves.inc({ chain: chain.chain, purpose, from: state, to: "included" });
    for (const { purpose } of missing)
      metrics.transferMoves.inc({ chain: chain.chain, purpose, from: "carried", to: "ready" });
    for (const { row, receipt } of included.flat()) {
      const members = [...proved, ...missing].filter(
        (member) => member.lane_id === row.lane_id && member.lane_nonce === row.nonce,
      );
      metrics.transactions.inc({ chain: chain.chain, state: receipt.reverted ? "reverted" : "included" });
      metrics.gasPerTransfer.observe({ chain: chain.chain }, Number(receipt.gasUsed) / Math.max(1, members.length));
    }
    for (const { gas } of burned) metrics.gasWithoutTransfer.inc({ chain: chain.chain }, Number(gas));
    if (missing.length > 0)
      deps.log.warn(
        { chain: chain.chain, transfers: missing.map(({ id }) => id) },
        `transfers ${reason}; each is tried alone`,
      );
  };
}

/** Transfers that movements have proved, those of them that moved, and what is to be done after the commit. */
type Recorded = { proved: TransferRow[]; included: TransferRow[]; opened: () => void };

/** A movement that cannot be written down has no row of its own: what is needed to try it again is kept. */
async function storeFailedMovement(
  db: Db,
  deps: TransferDeps,
  { chain }: Watching,
  log: SeenTransfer,
  error: unknown,
): Promise<void> {
  // A memo may hold what Postgres refuses, which may be why it failed.
  const clean = Object.entries({ ...log, amount: String(log.amount) }).map(([name, value]) => [
    name,
    typeof value === "string" ? cleanText(value, LONGEST_TEXT) : value,
  ]);
  const of = { block_number: log.blockNumber, movement: Object.fromEntries(clean) };
  await storeFailure(deps, db, { chain, kind: "movement", subject: nameMovement(log) }, error, of);
}

/** The natural key of a movement among the failed bookings. */
function nameMovement({ blockHash, txHash, logIndex }: SeenTransfer): string {
  return nameSighting({ block_hash: blockHash, tx_hash: txHash, log_index: logIndex });
}

/** Those of some movements that did not fail to be written down a moment ago; the others are tried again when due. */
export function keepRecordable(db: Db, { chain }: Watching, seen: readonly SeenTransfer[]): Promise<SeenTransfer[]> {
  return keepBookable(db, seen, { chain, kind: "movement", subjectOf: nameMovement });
}

async function recordMovements(
  db: Db,
  deps: TransferDeps,
  chain: Watching,
  seen: readonly SeenTransfer[],
  bound: BoundBook,
): Promise<Recorded> {
  const { known, opened } = await matchTransfers(db, chain, seen, bound);
  const claims = claim(chain, seen, await keepClaimable(db, known));
  await insertSightings(
    db,
    claims.map(({ log, transfer }) => toRow(deps, chain, log, transfer)),
  );
  const proved = claims.flatMap(({ transfer }) => transfer ?? []);
  const at = deps.now();
  const set = { due_at: null, hold_until: null, last_trouble: null };
  const included = new Set<string>();
  for (const from of ["carried", "ready", "awaited"] as const) {
    const ids = proved.filter((row) => row.state === from).map((row) => row.id);
    for (const id of await moveRows(db, "transfer", { ids, from, to: "included", at, set })) included.add(id);
  }
  return { proved, included: proved.filter(({ id }) => included.has(id)), opened };
}

/** The transfers that movements may belong to; bound money that has none yet gets one first. */
async function matchTransfers(
  db: Db,
  chain: Watching,
  seen: readonly SeenTransfer[],
  bound: BoundBook,
): Promise<{ known: TransferRow[]; opened: () => void }> {
  const nonces = seen.flatMap(({ authorizationNonce, usedNonces = [] }) =>
    [...usedNonces, authorizationNonce ?? []].flat(),
  );
  const list = () => listByAuthorizations(db, { chain: chain.chain, nonces });
  const known = await list();
  settleNonces(seen, known);
  const keyed = seen.filter((log) => log.authorizationNonce !== null);
  // Not those to the treasury alone: a merchant may be paid directly.
  const fresh = keyed.filter((log) => !known.some((row) => row.authorization_nonce === log.authorizationNonce));
  if (fresh.length === 0) return { known, opened: () => undefined };
  const opened = await bound(db, chain.chain, fresh);
  return { known: await list(), opened };
}

/** What each transfer that left no trace has cost; members of one transaction share its gas. */
function listBurned(
  landed: Reading["landed"],
  found: { proved: readonly TransferRow[]; missing: readonly TransferRow[]; at: Date },
) {
  return landed.flatMap(({ row, receipt }) => {
    const isIn = (member: TransferRow) => member.lane_id === row.lane_id && member.lane_nonce === row.nonce;
    const missing = found.missing.filter(isIn);
    const members = missing.length + found.proved.filter(isIn).length;
    return missing.map(({ id, chain, payer, code_hash, purpose }) => ({
      ...{ transfer_id: id, lane_id: row.lane_id, nonce: row.nonce, chain, payer, code_hash, purpose },
      ...{ gas: receipt.gasUsed / BigInt(members), alone: members === 1 },
      ...{ block_number: receipt.blockNumber, at: found.at },
    }));
  });
}

type Claim = { log: SeenTransfer; transfer: TransferRow | undefined };

/**
 * Transfers that a movement may stand for: not those that have ended, and none that stands in the chain already. (One
 * that was confirmed and that a deep reorg has taken away is made again by the same authorization.)
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
 * Which movements are kept, and for which transfer each stands. A transfer takes one movement: a second one's money is
 * somebody's, and goes to the exceptions. Movements between strangers are nobody's business here.
 */
function claim(chain: Watching, seen: readonly SeenTransfer[], claimable: readonly TransferRow[]): Claim[] {
  const open = new Set(claimable);
  return seen.flatMap((log) => {
    const transfer = [...open].find((row) => isProof(log, row));
    if (transfer) open.delete(transfer);
    return transfer || isOurs(chain, log) ? [{ log, transfer }] : [];
  });
}

function toRow(deps: TransferDeps, chain: Watching, log: SeenTransfer, transfer: TransferRow | undefined) {
  return {
    chain: chain.chain,
    block_hash: log.blockHash,
    block_number: log.blockNumber,
    log_index: log.logIndex,
    tx_hash: log.txHash,
    token: log.token,
    payer: log.payer,
    receiver: log.receiver,
    amount: log.amount,
    authorization_nonce: log.authorizationNonce,
    transfer_id: transfer?.id ?? null,
    seen_at: deps.now(),
  };
}
