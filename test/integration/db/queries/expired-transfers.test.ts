import { type Insertable, sql } from "kysely";
import { expect, test } from "vitest";
import { listUnrelayable } from "../../../../db/queries/burned-gas.ts";
import { listExpiredAuthorizations, lockEndable } from "../../../../db/queries/expired-transfers.ts";
import { insertObservations } from "../../../../db/queries/observations.ts";
import { lockUnassigned } from "../../../../db/queries/transfers.ts";
import type { Tables } from "../../../../db/tables.ts";
import { insertMerchant, insertOptionRow, insertTransferRow } from "../../../support/insert-rows.ts";
import { openTestDb } from "../../../support/open-test-db.ts";

const { db } = await openTestDb(5);
const merchant = await insertMerchant(db);
const chain = `eip155:${Math.floor(Math.random() * 2 ** 48)}`;
const now = new Date();
const DAY_MS = 86_400_000;
const facts = { asset: `${chain}/erc20:0x${"a1".repeat(20)}`, valid_before: 1 };

/** Inserts an expired transfer and a quote of another payer, and returns the movement of that quote. */
async function makeExpired() {
  const { id, paymentId } = await insertTransferRow(db, merchant, facts);
  const row = await db.selectFrom("transfer").selectAll().where("id", "=", id).executeTakeFirstOrThrow();
  const { token, payer, receiver, amount, authorization_nonce: nonce } = row;
  const quote = { chain, token, payer: `0x${"b2".repeat(20)}`, receiver, amount, authorization_nonce: nonce };
  await insertOptionRow(db, paymentId, "eip3009", { asset: facts.asset, ...quote });
  const movement: Insertable<Tables["observation"]> = {
    ...{ ...quote, observed_at: new Date() },
    ...{ block_number: 1, block_id: "0x01", tx_hash: id, log_index: 0, transfer_id: null },
  };
  return { id, payer, nonce, movement };
}

async function countWaiting(): Promise<number> {
  const { rows } = await sql`
    select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`.execute(db);
  return rows.length;
}

test("transfers whose payments wait for money to be final take no place of those that end", async () => {
  const [waiting, other] = [await makeExpired(), await makeExpired()];
  await insertObservations(db, [waiting.movement]);
  const expired = await listExpiredAuthorizations(db, { chain, at: 2, now, limit: 10, after: undefined });
  expect(expired.map(({ id }) => id)).toEqual([other.id]);
  const barred = [waiting.payer, other.payer];
  const unrelayable = await listUnrelayable(db, { chain, barred, inclusions: 3, now, limit: 10 });
  expect(unrelayable.map(({ id }) => id)).toEqual([other.id]);
  expect(await lockEndable(db, [waiting.id, other.id], now)).toEqual(new Set([other.id]));
});

test("a transfer does not end when money that names its payment is recorded at the same moment", async () => {
  const { id, nonce, movement } = await makeExpired();
  const isLocked = Promise.withResolvers<void>();
  const mayCommit = Promise.withResolvers<void>();
  const recording = db.transaction().execute(async (tx) => {
    await lockUnassigned(tx, [nonce]);
    await insertObservations(tx, [movement]);
    isLocked.resolve();
    await mayCommit.promise;
  });
  await isLocked.promise;
  const endable = lockEndable(db, [id], now);
  await expect.poll(countWaiting).toBe(1);
  mayCommit.resolve();
  await recording;
  expect(await endable).toEqual(new Set());
});

test.each<[string, Partial<Insertable<Tables["observation"]>>]>([
  ["another amount", { amount: 2n }],
  ["another receiver", { receiver: `0x${"c3".repeat(20)}` }],
  ["another payer than its quotes", { payer: `0x${"c3".repeat(20)}` }],
  ["another token", { token: `0x${"c3".repeat(20)}` }],
  ["another chain", { chain: "eip155:1" }],
])("money that names a payment and has %s does not keep its transfer from ending", async (_, other) => {
  const { id, movement } = await makeExpired();
  await insertObservations(db, [{ ...movement, ...other }]);
  expect(await lockEndable(db, [id], now)).toEqual(new Set([id]));
});

test("money that does not become final keeps a transfer from ending until a day after the payment's deadline", async () => {
  const { id, movement } = await makeExpired();
  await insertObservations(db, [movement]);
  const { expires_at: deadline } = await db
    .selectFrom("payment")
    .innerJoin("transfer", "transfer.payment_id", "payment.id")
    .select("payment.expires_at")
    .where("transfer.id", "=", id)
    .executeTakeFirstOrThrow();
  const isEndable = async (afterMs: number) =>
    (await lockEndable(db, [id], new Date(deadline.getTime() + afterMs))).has(id);
  expect(await isEndable(DAY_MS - 1)).toBe(false);
  expect(await isEndable(DAY_MS)).toBe(true);
});

test("money that workers find only days after the payment's deadline keeps a transfer from ending for a day, however much names it later", async () => {
  const { id, movement } = await makeExpired();
  const found = new Date(now.getTime() + 9 * DAY_MS);
  const isEndable = async (afterMs: number) =>
    (await lockEndable(db, [id], new Date(found.getTime() + afterMs))).has(id);
  await insertObservations(db, [{ ...movement, observed_at: found }]);
  expect(await isEndable(DAY_MS - 1)).toBe(false);
  const later = new Date(found.getTime() + DAY_MS / 2);
  await insertObservations(db, [{ ...movement, observed_at: later, log_index: 1 }]);
  expect(await isEndable(DAY_MS - 1)).toBe(false);
  expect(await isEndable(DAY_MS)).toBe(true);
});
