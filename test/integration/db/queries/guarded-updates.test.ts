import { randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import { readFamilyRow } from "../../../../db/chain-families.ts";
import { moveRows } from "../../../../db/moves.ts";
import { beginAccumulating } from "../../../../db/queries/accumulating-settlements.ts";
import { confirmTransfers } from "../../../../db/queries/confirmable-transfers.ts";
import { claimObservation, insertObservations, orphanObservations } from "../../../../db/queries/observations.ts";
import { listUsedNonces } from "../../../../db/queries/payout-nonces.ts";
import { insertSettlements, lockNotBegun } from "../../../../db/queries/settlements.ts";
import {
  expireTransactions,
  finishByHash,
  keepFreeNonceAccounts,
  listUnsettled,
  lockWaiting,
  markLanded,
  storeTransactions,
} from "../../../../db/queries/solana-transactions.ts";
import {
  finishTransactions,
  insertTransaction,
  markIncluded,
  recordBroadcast,
  revertIncluded,
} from "../../../../db/queries/transactions.ts";
import {
  assignTransfers,
  holdTransfer,
  lockReady,
  separateTransfers,
  type TransferRow,
  unassignTransfers,
} from "../../../../db/queries/transfers.ts";
import { listUnmatched, lockOrphanedBookings, lockUnmatched } from "../../../../db/queries/unmatched-movements.ts";
import { renewPayout } from "../../../../db/queries/unsent-payouts.ts";
import { insertLaneRow, insertMerchant, insertTransferRow } from "../../../support/insert-rows.ts";
import { openTestDb } from "../../../support/open-test-db.ts";

const { db } = await openTestDb();
const merchant = await insertMerchant(db);
const at = new Date();
const hex = (bytes: number): `0x${string}` => `0x${randomBytes(bytes).toString("hex")}`;
const newChain = () => `eip155:${Math.floor(Math.random() * 2 ** 48)}`;

const readTransfer = async (id: string) =>
  readFamilyRow(await db.selectFrom("transfer").selectAll().where("id", "=", id).executeTakeFirstOrThrow());
async function makeTransfer(chain = newChain()): Promise<TransferRow> {
  const asset = `${chain}/erc20:0x${"a1".repeat(20)}`;
  return readTransfer((await insertTransferRow(db, merchant, { asset })).id);
}
const move = (id: string, to: "assigned" | "included") =>
  moveRows(db, "transfer", { ids: [id], from: "ready", to, at });

const movementOf = (
  transfer: TransferRow,
  more: { transfer_id?: string; block_number?: number; booked?: boolean },
) => ({
  ...{ chain: transfer.chain, block_id: hex(32), block_number: 10, log_index: 1, tx_hash: hex(32) },
  ...{ token: transfer.token, payer: transfer.payer, receiver: transfer.receiver, amount: transfer.amount },
  ...{ authorization_nonce: transfer.authorization_nonce, transfer_id: null as string | null, observed_at: at },
  ...more,
});

const renewTransfer = (
  { id, asset, amount, payer, receiver }: TransferRow,
  signed: { treasury: string; receiver?: string; signature: string },
) => {
  const of = { settlement_id: null, merchant_id: merchant.merchantId, payment_id: null, number: 1 };
  const payout = { id, asset, amount, payer, receiver, ...of, registered: null, held: false, was_assigned: false };
  return renewPayout(db, { payout, receiver, ...signed });
};

describe("a transfer", () => {
  test("a transfer is assigned only by the lane that claimed it", async () => {
    const { id, chain } = await makeTransfer();
    const [mine, other] = [await insertLaneRow(db, chain), await insertLaneRow(db, chain)];
    await db.updateTable("transfer").set({ lane_id: mine.id }).where("id", "=", id).execute();
    const until = new Date(Date.now() + 60_000);
    await db.updateTable("lane").set({ lease_until: until }).where("id", "=", mine.id).execute();
    expect(await assignTransfers(db, { calls: [await readTransfer(id)], laneId: other.id, nonce: 0, at })).toEqual([]);
    expect(await readTransfer(id)).toMatchObject({ state: "ready", lane_id: mine.id });
    expect(await assignTransfers(db, { calls: [await readTransfer(id)], laneId: mine.id, nonce: 0, at })).toEqual([id]);
  });

  test("a transfer that was claimed by a lane which no worker holds any more is assigned by another lane", async () => {
    const { id, chain } = await makeTransfer();
    const [former, present] = [await insertLaneRow(db, chain), await insertLaneRow(db, chain)];
    await db.updateTable("transfer").set({ lane_id: former.id }).where("id", "=", id).execute();
    expect(await assignTransfers(db, { calls: [await readTransfer(id)], laneId: present.id, nonce: 0, at })).toEqual([
      id,
    ]);
  });

  test("an assigned transfer keeps its lane when a slow process holds it", async () => {
    const { id, chain } = await makeTransfer();
    const lane = await insertLaneRow(db, chain);
    await db.updateTable("transfer").set({ lane_id: lane.id }).where("id", "=", id).execute();
    await assignTransfers(db, { calls: [await readTransfer(id)], laneId: lane.id, nonce: 3, at });
    await holdTransfer(db, { id, error: "it would fail", now: at });
    await separateTransfers(db, { ids: [id], error: "it would fail beside another one", now: at });
    expect(await readTransfer(id)).toMatchObject({ state: "assigned", lane_id: lane.id, lane_nonce: 3, retries: 0 });
  });

  test("a transfer is locked for a Solana transaction only while it is ready", async () => {
    const [ready, assigned] = [await makeTransfer(), await makeTransfer()];
    await move(assigned.id, "assigned");
    expect(await lockReady(db, [ready, assigned])).toEqual(new Set([ready.id]));
  });

  test("a payout changes its treasury only if no transaction has ever made it", async () => {
    const [unsent, omitted] = [await makeTransfer(), await makeTransfer()];
    const { id: laneId } = await insertLaneRow(db, omitted.chain);
    await assignTransfers(db, { calls: [omitted], laneId, nonce: 0, at });
    await unassignTransfers(db, { ids: [omitted.id], reason: "no trace", now: at });
    const treasury = hex(20);
    const renew = (transfer: TransferRow) => renewTransfer(transfer, { treasury, signature: hex(65) });
    expect([await renew(unsent), await renew(omitted)]).toEqual([true, false]);
    expect([(await readTransfer(unsent.id)).payer, await readTransfer(omitted.id)]).toMatchObject([
      treasury,
      { payer: omitted.payer, signature: omitted.signature },
    ]);
  });

  test("a payout is renewed only if nothing has changed it since it was signed again, and only by what changes it", async () => {
    const read = await makeTransfer();
    const { id, payer: treasury, receiver } = read;
    const signed = { treasury, receiver: hex(20), signature: hex(65) };
    expect(await renewTransfer({ ...read, receiver: hex(20) }, signed)).toBe(false);
    expect(await renewTransfer({ ...read, amount: read.amount + 1n }, signed)).toBe(false);
    expect(await readTransfer(id)).toMatchObject({ receiver, signature: read.signature });
    expect(await renewTransfer(read, signed)).toBe(true);
    expect(await renewTransfer(await readTransfer(id), signed)).toBe(false);
  });

  test("a transfer is not locked for a Solana transaction that pays another amount than the transfer now says", async () => {
    const signed = await makeTransfer();
    await db.updateTable("transfer").set({ amount: 2n }).where("id", "=", signed.id).execute();
    expect(await lockReady(db, [signed])).toEqual(new Set());
    expect(await lockReady(db, [await readTransfer(signed.id)])).toEqual(new Set([signed.id]));
  });

  test("a transfer does not claim a movement that is booked as an exception", async () => {
    const transfer = await makeTransfer();
    await insertObservations(db, [movementOf(transfer, { booked: true })]);
    expect(await claimObservation(db, transfer)).toBe(false);
  });

  test("a transfer is not confirmed by a movement above the final height", async () => {
    const transfer = await makeTransfer();
    const { id } = transfer;
    await insertObservations(db, [movementOf(transfer, { transfer_id: id, block_number: 10 })]);
    await move(id, "included");
    expect(await confirmTransfers(db, { ids: [id], upTo: 9, at })).toEqual([]);
    expect((await readTransfer(id)).state).toBe("included");
    expect(await confirmTransfers(db, { ids: [id], upTo: 10, at })).toMatchObject([{ id, block_number: 10 }]);
  });

  test("a transfer is not confirmed by a movement that a reorg removed", async () => {
    const transfer = await makeTransfer();
    const { id, chain } = transfer;
    await insertObservations(db, [movementOf(transfer, { transfer_id: id, block_number: 10 })]);
    await move(id, "included");
    await orphanObservations(db, { chain, above: 9 });
    expect(await confirmTransfers(db, { ids: [id], upTo: 10, at })).toEqual([]);
    expect((await readTransfer(id)).state).toBe("included");
  });
});

describe("a movement", () => {
  test("a booked movement stays booked when it is observed again as a transfer's", async () => {
    const transfer = await makeTransfer();
    const row = movementOf(transfer, { booked: true });
    await insertObservations(db, [row]);
    await insertObservations(db, [{ ...row, booked: false, transfer_id: transfer.id }]);
    const stored = await db.selectFrom("observation").selectAll().where("block_id", "=", row.block_id).execute();
    expect(stored).toMatchObject([{ booked: true, transfer_id: null }]);
  });

  test("a booked movement stays booked when its block returns after a reorg, and belongs to no transfer", async () => {
    const transfer = await makeTransfer();
    const row = movementOf(transfer, { booked: true, block_number: 10 });
    await insertObservations(db, [row]);
    await orphanObservations(db, { chain: transfer.chain, above: 9 });
    await insertObservations(db, [{ ...row, booked: false, transfer_id: transfer.id }]);
    const stored = await db.selectFrom("observation").selectAll().where("block_id", "=", row.block_id).execute();
    expect(stored).toMatchObject([{ orphaned: false, booked: true, transfer_id: null }]);
  });

  test("only a booked movement of the same chain that a reorg removed has a booking to move", async () => {
    const [transfer, elsewhere] = [await makeTransfer(), await makeTransfer()];
    const { chain } = transfer;
    const removed = movementOf(transfer, { booked: true, block_number: 11 });
    const { tx_hash } = removed;
    const open = { ...movementOf(transfer, { block_number: 11 }), tx_hash };
    const current = { ...movementOf(transfer, { booked: true, block_number: 10 }), tx_hash };
    const foreign = { ...movementOf(elsewhere, { booked: true, block_number: 11 }), tx_hash };
    const other = movementOf(transfer, { booked: true, block_number: 11 });
    for (const row of [removed, open, current, foreign, other]) await insertObservations(db, [row]);
    for (const one of [chain, elsewhere.chain]) await orphanObservations(db, { chain: one, above: 10 });
    const found = await lockOrphanedBookings(db, { chain, hashes: [tx_hash] });
    expect(found.map(({ block_id }) => block_id)).toEqual([removed.block_id]);
  });

  test("a movement that a reorg removed is not booked as an exception", async () => {
    const transfer = await makeTransfer();
    const { chain } = transfer;
    await insertObservations(db, [movementOf(transfer, { block_number: 10 })]);
    expect(await listUnmatched(db, { chain, upTo: 10, limit: 10 })).toHaveLength(1);
    await orphanObservations(db, { chain, above: 9 });
    expect(await listUnmatched(db, { chain, upTo: 10, limit: 10 })).toEqual([]);
  });

  test("a movement that was claimed or booked since it was listed is not locked for booking", async () => {
    const [mine, booked, open] = [await makeTransfer(), await makeTransfer(), await makeTransfer()];
    const rows = [
      movementOf(mine, { transfer_id: mine.id }),
      movementOf(booked, { booked: true }),
      movementOf(open, {}),
    ];
    await insertObservations(db, rows);
    expect((await lockUnmatched(db, rows)).map(({ chain }) => chain)).toEqual([open.chain]);
  });

  test("a movement that a reorg removed is not evidence of a payout", async () => {
    const payout = await makeTransfer();
    await insertObservations(db, [movementOf(payout, { block_number: 10 })]);
    expect(await listUsedNonces(db, [payout])).toEqual(new Set([payout.authorization_nonce]));
    await orphanObservations(db, { chain: payout.chain, above: 9 });
    expect(await listUsedNonces(db, [payout])).toEqual(new Set());
  });
});

/** A signed transaction with a lane's nonce. */
const signed = (
  chain: string,
  lane_id: string,
  more: { replacement?: number; nonce?: number; account?: string } = {},
) => ({
  ...{ lane_id, nonce: more.nonce ?? 0, replacement: more.replacement ?? 0, chain, hash: hex(32) },
  ...{ bytes: randomBytes(8), gas_limit: 1n, max_fee_per_gas: 1n, max_priority_fee_per_gas: 1n },
  ...{ state: "signed" as const, created_at: at, broadcast_at: null, block_number: null, block_id: null },
  ...{ gas_used: null, gas_price: null, fee: null, reverted: null },
  nonce_account: more.account ?? null,
  nonce_value: more.account ? "a nonce" : null,
  nonce_slot: more.account ? 1 : null,
});
type Signed = ReturnType<typeof signed>;
const include = (row: Signed, blockNumber: number) =>
  markIncluded(db, [{ ...row, blockNumber, blockHash: hex(32), gasUsed: 1n, gasPrice: 1n, fee: 1n, reverted: false }]);
const statesOf = async (rows: readonly Signed[]) => {
  const found = await db.selectFrom("transaction").select(["hash", "state"]).execute();
  return rows.map(({ hash }) => found.find((row) => row.hash === hash)?.state);
};

describe("a transaction", () => {
  test("a transaction that is in a block already is not recorded as broadcast by the process that sent it", async () => {
    const chain = newChain();
    const row = signed(chain, (await insertLaneRow(db, chain)).id);
    await insertTransaction(db, row);
    await include(row, 10);
    await recordBroadcast(db, row, { state: "accepted", at });
    expect(await statesOf([row])).toEqual(["included"]);
  });

  test("a final transaction replaces the others with its nonce, and after a reorg all of them can land again", async () => {
    const chain = newChain();
    const { id } = await insertLaneRow(db, chain);
    const [first, second] = [signed(chain, id), signed(chain, id, { replacement: 1 })];
    const other = signed(chain, id, { nonce: 1 });
    for (const row of [first, second, other]) await insertTransaction(db, row);
    await include(second, 10);
    await finishTransactions(db, { chain, upTo: 10, hashes: [second.hash] });
    expect(await statesOf([first, second, other])).toEqual(["replaced", "final", "signed"]);
    await revertIncluded(db, { chain, above: 9 });
    expect(await statesOf([first, second, other])).toEqual(["accepted", "accepted", "signed"]);
  });

  test("a Solana transaction that landed is not declared expired", async () => {
    const chain = newChain();
    const row = signed(chain, (await insertLaneRow(db, chain)).id);
    await storeTransactions(db, [row]);
    await markLanded(db, { chain, landings: [{ hash: row.hash, slot: 10, fee: 1n, failed: false }] });
    expect(await expireTransactions(db, { chain, hashes: [row.hash] })).toEqual([]);
    expect(await statesOf([row])).toEqual(["included"]);
  });

  /** Stores a payout's transaction and one that replaces it. */
  async function storeReplaced() {
    const chain = newChain();
    const { id } = await insertLaneRow(db, chain);
    const account = hex(32);
    const [first, second] = [signed(chain, id, { account }), signed(chain, id, { account, replacement: 1 })];
    expect(await storeTransactions(db, [first])).toBe(1);
    expect(await storeTransactions(db, [second])).toBe(1);
    const land = (row: Signed) =>
      markLanded(db, { chain, landings: [{ hash: row.hash, slot: 10, fee: 1n, failed: false }] });
    return { chain, id, account, first, second, land };
  }

  test("a final Solana transaction replaces the others with its durable nonce, and only its fee is returned", async () => {
    const { chain, first, second, land } = await storeReplaced();
    await land(first);
    expect(await finishByHash(db, { chain, hashes: [first.hash] })).toMatchObject([{ hash: first.hash }]);
    expect(await statesOf([first, second])).toEqual(["final", "replaced"]);
  });

  test("a Solana transaction is declared expired only together with all others of its durable nonce, and not when one has landed", async () => {
    const { chain, first, second, land } = await storeReplaced();
    expect(await expireTransactions(db, { chain, hashes: [first.hash] })).toEqual([]);
    await land(second);
    expect(await expireTransactions(db, { chain, hashes: [first.hash, second.hash] })).toEqual([]);
    expect(await statesOf([first, second])).toEqual(["signed", "included"]);
    const both = await storeReplaced();
    const hashes = [both.first.hash, both.second.hash];
    expect(await expireTransactions(db, { chain: both.chain, hashes })).toHaveLength(2);
  });

  test("a durable nonce account is used by the transactions of one nonce, each with a replacement number of its own", async () => {
    const { chain, id, account } = await storeReplaced();
    expect(await storeTransactions(db, [signed(chain, id, { account, nonce: 1 })])).toBe(0);
    expect(await storeTransactions(db, [signed(chain, id, { account, replacement: 1 })])).toBe(0);
  });

  test("a Solana transaction that is included or has ended is not replaced", async () => {
    const { chain, first, second, land } = await storeReplaced();
    expect(await lockWaiting(db, second)).toBe(true);
    await land(first);
    expect(await lockWaiting(db, first)).toBe(false);
    await finishByHash(db, { chain, hashes: [first.hash] });
    expect(await lockWaiting(db, second)).toBe(false);
  });

  test("an included Solana transaction is read in every pass while another one with its durable nonce may land", async () => {
    const { chain, first, second, land } = await storeReplaced();
    await land(first);
    const rows = await listUnsettled(db, { chain, includedUpTo: 0, unconfirmed: false });
    expect(new Set(rows.map(({ hash }) => hash))).toEqual(new Set([first.hash, second.hash]));
  });

  test("a Solana transaction keeps its durable nonce until it is final", async () => {
    const chain = newChain();
    const [used, free] = [hex(32), hex(32)];
    const row = signed(chain, (await insertLaneRow(db, chain)).id, { account: used });
    await storeTransactions(db, [row]);
    await markLanded(db, { chain, landings: [{ hash: row.hash, slot: 10, fee: 1n, failed: false }] });
    expect(await keepFreeNonceAccounts(db, { chain, accounts: [used, free] })).toEqual([free]);
  });
});

describe("a settlement", () => {
  const settlement = (id: string, asset: string, amount: bigint, number: number) => ({
    id,
    merchantId: merchant.merchantId,
    mode: "live" as const,
    asset,
    number,
    amount,
    dueAt: at,
  });

  test("two bookings that start an accumulating settlement at the same moment share one, with the money of both", async () => {
    const asset = `${newChain()}/erc20:0x${"a1".repeat(20)}`;
    const first = await beginAccumulating(db, settlement(hex(8), asset, 5n, 1), at);
    const second = await beginAccumulating(db, settlement(hex(8), asset, 7n, 1), at);
    expect(second.id).toBe(first.id);
    const rows = await db.selectFrom("settlement").select("amount").where("asset", "=", asset).execute();
    expect(rows).toEqual([{ amount: 12n }]);
  });

  test("a settlement that has begun meanwhile is not locked for a refund", async () => {
    const asset = `${newChain()}/erc20:0x${"a1".repeat(20)}`;
    const [due, begun] = [hex(8), hex(8)];
    await insertSettlements(db, [settlement(due, asset, 5n, 1), settlement(begun, asset, 7n, 2)], at);
    await moveRows(db, "settlement", { ids: [begun], from: "due", to: "paying", at });
    expect((await lockNotBegun(db, [begun, due])).map(({ id }) => id)).toEqual([due]);
  });
});
