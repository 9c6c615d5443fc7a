import { type Insertable, sql } from "kysely";
import { expect, test } from "vitest";
import { listUnrelayable } from "../../../../db/queries/burned-gas.ts";
import { listExpiredAuthorizations, lockEndable } from "../../../../db/queries/expired-transfers.ts";
import { insertObservations } from "../../../../db/queries/observations.ts";
import { lockUnassigned } from "../../../../db/queries/transfers.ts";
import type { Tables } from "../../../../db/tables.ts";
import { insertMerchant, insertTransferRow } from "../../../support/insert-rows.ts";
import { openTestDb } from "../../../support/open-test-db.ts";

const { db } = await openTestDb(5);
const merchant = await insertMerchant(db);
const chain = `eip155:${Math.floor(Math.random() * 2 ** 48)}`;
const facts = { asset: `${chain}/erc20:0x${"a1".repeat(20)}`, valid_before: 1 };

/** Inserts an expired transfer, and returns how to record money that names its payment. */
async function makeExpired() {
  const { id } = await insertTransferRow(db, merchant, facts);
  const row = await db.selectFrom("transfer").selectAll().where("id", "=", id).executeTakeFirstOrThrow();
  const { token, payer, receiver, amount, authorization_nonce: nonce } = row;
  const movement: Insertable<Tables["observation"]> = {
    ...{ chain, token, payer, receiver, amount, authorization_nonce: nonce, observed_at: new Date() },
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
  const expired = await listExpiredAuthorizations(db, { chain, at: 2, limit: 10, after: undefined });
  expect(expired.map(({ id }) => id)).toEqual([other.id]);
  const barred = [waiting.payer, other.payer];
  const unrelayable = await listUnrelayable(db, { chain, barred, inclusions: 3, limit: 10 });
  expect(unrelayable.map(({ id }) => id)).toEqual([other.id]);
  expect(await lockEndable(db, [waiting.id, other.id])).toEqual(new Set([other.id]));
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
  const endable = lockEndable(db, [id]);
  await expect.poll(countWaiting).toBe(1);
  mayCommit.resolve();
  await recording;
  expect(await endable).toEqual(new Set());
});
