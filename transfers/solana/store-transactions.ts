import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { firstSignature } from "../../chains/solana/wire-format.ts";
import { commitIfOk } from "../../db/in-transaction.ts";
import { lockWaiting, storeTransactions, takeNumbers } from "../../db/queries/solana-transactions.ts";
import type { TransactionKey } from "../../db/queries/transactions.ts";
import { assignToLanes, lockReady, type TransferCall } from "../../db/queries/transfers.ts";
import type { Db } from "../../db/tables.ts";
import type { TransferDeps } from "../transfer-deps.ts";

/** Signed bytes, the lane that pays for them, when they expire, and the transfers that they make, as they were read. */
export type Signing = {
  lane: string;
  bytes: Uint8Array;
  units: number;
  unitPrice: bigint;
  expires: { lastValidHeight: number } | { nonceAccount: string; nonce: string; slot: number };
  transfers: readonly TransferCall[];
};

/**
 * What was stored, and a function to await before the broadcast. `overtaken`: another worker has used the bytes or the
 * durable nonce of one of the transactions. `lost_commits`: the bytes were signed in an earlier epoch of the database.
 */
type StoreResult =
  | { ok: true; stored: Signing[]; afterCommit?: () => Promise<void> }
  | { ok: false; why: "overtaken" | "lost_commits" };

/**
 * Stores signed bytes and assigns their transfers to them, in one database transaction. Skips those whose transfers, bytes or
 * durable nonce another worker has taken. Stores nothing when the database has lost commits since the decision to
 * sign. Returns what was stored; nothing else may be broadcast.
 * @param also writes further rows in the same database transaction
 * @param epoch the database's epoch in which the decision to sign was made, undefined for transactions without transfers
 */
export async function storeSignings(
  deps: TransferDeps,
  chain: SolanaChain,
  signings: readonly Signing[],
  epoch: string | undefined,
  also?: (db: Db) => Promise<void>,
): Promise<Signing[]> {
  if (signings.length === 0) return [];
  const together = await storeInEpoch(deps, chain, epoch, async (db) => {
    const stored = await storeTogether(deps, db, chain, signings);
    if (stored) await also?.(db);
    return stored;
  });
  if (together) return together;
  if (signings.length === 1) return [];
  const stored: Signing[] = [];
  for (const one of signings) stored.push(...(await storeSignings(deps, chain, [one], epoch, also)));
  return stored;
}

/**
 * Stores the bytes that replace a transaction: they have its durable nonce and make the same transfers. Returns false, and stores
 * nothing, when the transaction is included, has ended or has a replacement already, and when the database has lost commits since the
 * decision to sign. The bytes may not be broadcast then.
 * @param of.row the newest transaction with the nonce
 */
export async function storeReplacement(
  deps: TransferDeps,
  chain: SolanaChain,
  { row, signing }: { row: TransactionKey; signing: Signing },
  epoch: string,
): Promise<boolean> {
  const next = { laneId: row.lane_id, nonce: row.nonce, replacement: row.replacement + 1, at: deps.now() };
  const stored = await storeInEpoch(deps, chain, epoch, async (db) => {
    if (!(await lockWaiting(db, row))) return undefined;
    return (await storeTransactions(db, [toRow(chain, { signing, ...next })])) === 1 ? [signing] : undefined;
  });
  return stored?.length === 1;
}

/**
 * Runs work that stores signed bytes, in a database transaction. Returns what the work returns: what was stored, or undefined when
 * another worker was faster. Returns nothing, and rolls back, when the database has lost commits since `epoch`.
 */
async function storeInEpoch(
  deps: TransferDeps,
  chain: SolanaChain,
  epoch: string | undefined,
  work: (db: Db) => Promise<Signing[] | undefined>,
): Promise<Signing[] | undefined> {
  const result = await commitIfOk(deps.db, async (db): Promise<StoreResult> => {
    const stored = await work(db);
    if (!stored) return { ok: false, why: "overtaken" };
    if (epoch === undefined) return { ok: true, stored };
    const passed = await deps.epoch.pass(db, epoch);
    return passed.ok ? { ...passed, stored } : { ok: false, why: "lost_commits" };
  });
  if (result.ok) {
    await result.afterCommit?.();
    return result.stored;
  }
  if (result.why === "overtaken") return undefined;
  deps.log.error({ chain: chain.chain }, "signed transactions are discarded because the database lost commits");
  return [];
}

/** Returns what was stored, or undefined when the bytes or the durable nonce of one of the transactions exist already. */
async function storeTogether(
  deps: TransferDeps,
  db: Db,
  chain: SolanaChain,
  signings: readonly Signing[],
): Promise<Signing[] | undefined> {
  const at = deps.now();
  const ready = await lockReady(
    db,
    signings.flatMap(({ transfers }) => transfers),
  );
  const ours = signings.filter(({ transfers }) => transfers.every(({ id }) => ready.has(id)));
  if (ours.length === 0) return [];
  const byLane = Map.groupBy(ours, ({ lane }) => `${chain.chain}:${lane}`);
  const first = await takeNumbers(db, new Map([...byLane].map(([id, all]) => [id, all.length])));
  const numbered = [...byLane].flatMap(([laneId, all]) =>
    all.map((signing, index) => ({ signing, laneId, nonce: (first.get(laneId) ?? 0) + index })),
  );
  const rows = numbered.map((one) => toRow(chain, { ...one, replacement: 0, at }));
  if ((await storeTransactions(db, rows)) !== rows.length) return undefined;
  const slots = numbered.flatMap(({ signing, laneId, nonce }) =>
    signing.transfers.map(({ id }) => ({ id, laneId, nonce })),
  );
  if (slots.length > 0) await assignToLanes(db, { slots, at });
  return ours;
}

function toRow(
  chain: SolanaChain,
  args: { signing: Signing; laneId: string; nonce: number; replacement: number; at: Date },
) {
  const { signing, laneId: lane_id, nonce, replacement, at: created_at } = args;
  const { bytes, units, unitPrice, expires } = signing;
  const durable = "nonceAccount" in expires;
  return {
    lane_id,
    nonce,
    replacement,
    chain: chain.chain,
    hash: firstSignature(bytes),
    bytes: Buffer.from(bytes),
    gas_limit: BigInt(units),
    max_fee_per_gas: unitPrice,
    max_priority_fee_per_gas: unitPrice,
    last_valid_height: durable ? null : expires.lastValidHeight,
    nonce_account: durable ? expires.nonceAccount : null,
    nonce_value: durable ? expires.nonce : null,
    nonce_slot: durable ? expires.slot : null,
    state: "signed" as const,
    created_at,
    broadcast_at: null,
    block_number: null,
    block_id: null,
    gas_used: null,
    gas_price: null,
    fee: null,
    reverted: null,
  };
}
