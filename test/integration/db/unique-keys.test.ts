import { randomBytes } from "node:crypto";
import { sql } from "kysely";
import { describe, expect, test } from "vitest";
import { readFamilyRow } from "../../../db/chain-families.ts";
import { moveRows } from "../../../db/moves.ts";
import { insertAttempt } from "../../../db/queries/attempts.ts";
import { claimObservation, insertObservations, orphanObservations } from "../../../db/queries/observations.ts";
import { insertOptions } from "../../../db/queries/payment-options.ts";
import type { TransferRow } from "../../../db/queries/transfers.ts";
import { newId } from "../../../payments/ids.ts";
import {
  insertMerchant,
  insertPaymentRow,
  insertSettlementRow,
  insertTransferRow,
  someAsset,
  someChain,
} from "../../support/insert-rows.ts";
import { openTestDb } from "../../support/open-test-db.ts";

const { db } = await openTestDb(20);
const merchant = await insertMerchant(db);
const at = new Date();
const hex = (bytes: number): `0x${string}` => `0x${randomBytes(bytes).toString("hex")}`;
const refused = { code: "23505" };

async function makeOption(paymentId: string, payer = hex(20), on = db) {
  const row = {
    id: newId("opt", new Date()),
    payment_id: paymentId,
    account: `${someChain}:${payer}`,
    chain: someChain,
    asset: someAsset,
    token: hex(20),
    payer,
    receiver: hex(20),
    amount: 5n,
    authorization_nonce: hex(32),
    valid_before: 1,
    number: 1,
    direct: false,
    kind: "eip3009" as const,
    allowance: null,
    rate: null,
    quoted_until: null,
    needs_data: false,
    fee: 0n,
    fee_fixed: 0n,
    fee_basis_points: 0,
    owed_asset: null,
    owed_amount: null,
    created_at: at,
  };
  return insertOptions(on, [row]).then(([option]) => option?.id ?? "");
}

const attempt = (paymentId: string, optionId: string, digest = randomBytes(32)) => ({
  id: newId("att", new Date()),
  payment_id: paymentId,
  option_id: optionId,
  digest,
  results: JSON.stringify([]),
  state: "waiting" as const,
  refusal: null,
  created_at: at,
  due_at: null,
});

test("a quote of an older release gets the default of a column that a later release has added", async () => {
  const { db } = await openTestDb();
  await sql`alter table payment_option add column more text not null default 'usual'`.execute(db);
  const id = await makeOption(await insertPaymentRow(db, await insertMerchant(db)), hex(20), db);
  const { rows } = await sql`select more from payment_option where id = ${id}`.execute(db);
  expect(rows).toEqual([{ more: "usual" }]);
});

test("one authorization makes one transfer: of ten racing rows with its nonce nine are refused", async () => {
  const facts = { token: hex(20), payer: hex(20), authorization_nonce: hex(32) };
  const ends = await Promise.allSettled(Array.from({ length: 10 }, () => insertTransferRow(db, merchant, facts)));
  expect(ends.filter((end) => end.status === "fulfilled")).toHaveLength(1);
  for (const end of ends) if (end.status === "rejected") expect(end.reason).toMatchObject(refused);
  // Another payer or another token makes another authorization.
  await insertTransferRow(db, merchant, { ...facts, payer: hex(20) });
  await insertTransferRow(db, merchant, { ...facts, token: hex(20) });
});

describe("a payment", () => {
  test("a payment has one verified attempt, and a second is refused", async () => {
    const paymentId = await insertPaymentRow(db, merchant);
    const optionId = await makeOption(paymentId);
    const rows = Array.from({ length: 6 }, () => attempt(paymentId, optionId));
    for (const row of rows) expect(await insertAttempt(db, row)).toBe(true);
    const verify = (id: string) => moveRows(db, "attempt", { ids: [id], from: "waiting", to: "verified", at });
    const ends = await Promise.allSettled(rows.map(({ id }) => verify(id)));
    expect(ends.filter((end) => end.status === "fulfilled")).toHaveLength(1);
    for (const end of ends) if (end.status === "rejected") expect(end.reason).toMatchObject(refused);
  });

  test("a payment stores the same confirm once, with one event, however many arrive at once", async () => {
    const paymentId = await insertPaymentRow(db, merchant);
    const optionId = await makeOption(paymentId);
    const digest = randomBytes(32);
    const rows = Array.from({ length: 16 }, () => attempt(paymentId, optionId, digest));
    const written = await Promise.all(rows.map((row) => db.transaction().execute((trx) => insertAttempt(trx, row))));
    expect(written.filter(Boolean)).toHaveLength(1);
    const events = await db
      .selectFrom("event")
      .select("subject")
      .where(
        "subject",
        "in",
        rows.map(({ id }) => id),
      )
      .execute();
    expect(events).toEqual([{ subject: rows[written.indexOf(true)]?.id }]);
  });

  test("a payment has one transfer that pays it, besides those that have ended", async () => {
    const { paymentId, id } = await insertTransferRow(db, merchant);
    const row = await db.selectFrom("transfer").selectAll().where("id", "=", id).executeTakeFirstOrThrow();
    const second = { ...row, id: newId("trf", new Date()), authorization_nonce: hex(32), payment_id: paymentId };
    await expect(db.insertInto("transfer").values(second).execute()).rejects.toMatchObject(refused);
    await db.updateTable("transfer").set({ state: "ended" }).where("id", "=", id).execute();
    await db.insertInto("transfer").values(second).execute();
  });

  test("a payment has one option per payer and asset, and returns the same one when it is requested again", async () => {
    const paymentId = await insertPaymentRow(db, merchant);
    const payer = hex(20);
    const ids = await Promise.all(Array.from({ length: 8 }, () => makeOption(paymentId, payer)));
    expect(new Set(ids).size).toBe(1);
    expect(await makeOption(paymentId)).not.toBe(ids[0]);
  });
});

describe("an observation", () => {
  const observation = (transfer: TransferRow | undefined, more: object = {}) => ({
    chain: someChain,
    block_id: hex(32),
    block_number: 5,
    log_index: 3,
    tx_hash: hex(32),
    token: transfer?.token ?? hex(20),
    payer: transfer?.payer ?? hex(20),
    receiver: transfer?.receiver ?? hex(20),
    amount: transfer?.amount ?? 1n,
    authorization_nonce: transfer?.authorization_nonce ?? null,
    transfer_id: null as string | null,
    observed_at: at,
    ...more,
  });
  const makeTransfer = async () => {
    const { id } = await insertTransferRow(db, merchant);
    return readFamilyRow(await db.selectFrom("transfer").selectAll().where("id", "=", id).executeTakeFirstOrThrow());
  };

  test("one observation proves a transfer: a second live one that claims it is refused until the first is orphaned", async () => {
    const transfer = await makeTransfer();
    const first = observation(transfer, { transfer_id: transfer.id, block_number: 1_000_000 });
    await insertObservations(db, [first]);
    const second = observation(transfer, { transfer_id: transfer.id, block_number: 1_000_001 });
    await expect(insertObservations(db, [second])).rejects.toMatchObject(refused);
    expect(await orphanObservations(db, { chain: someChain, above: 999_999 })).toEqual([transfer.id]);
    await insertObservations(db, [second]);
    expect(await orphanObservations(db, { chain: someChain, above: 1_000_000 })).toEqual([transfer.id]);
  });

  test("the same log observed twice is stored once, and is live again when its block returns", async () => {
    const transfer = await makeTransfer();
    const row = observation(transfer, { transfer_id: transfer.id, block_number: 2_000_000 });
    await insertObservations(db, [row]);
    await orphanObservations(db, { chain: someChain, above: 1_999_999 });
    await insertObservations(db, [row]);
    const rows = await db.selectFrom("observation").selectAll().where("block_id", "=", row.block_id).execute();
    expect(rows).toMatchObject([{ orphaned: false, transfer_id: transfer.id }]);
    await orphanObservations(db, { chain: someChain, above: 1_999_999 });
  });

  test("a live observation keeps its transfer when a later reading stores it without one", async () => {
    const transfer = await makeTransfer();
    const row = observation(transfer, { transfer_id: transfer.id, block_number: 3_000_000 });
    await insertObservations(db, [row]);
    await insertObservations(db, [{ ...row, transfer_id: null }]);
    const rows = await db.selectFrom("observation").selectAll().where("block_id", "=", row.block_id).execute();
    expect(rows).toMatchObject([{ orphaned: false, transfer_id: transfer.id }]);
  });

  test.each([
    ["another amount", { amount: 2n }],
    ["another receiver", { receiver: hex(20) }],
    ["another payer", { payer: hex(20) }],
    ["another token", { token: hex(20) }],
    ["an orphaned block", { orphaned: true }],
  ])("an observation of %s does not prove the transfer", async (_what, more) => {
    const transfer = await makeTransfer();
    await insertObservations(db, [observation(transfer, more)]);
    expect(await claimObservation(db, transfer)).toBe(false);
  });

  test("an observation that another transfer has claimed is not claimed again", async () => {
    const [mine, other] = [await makeTransfer(), await makeTransfer()];
    await insertObservations(db, [observation(mine, { transfer_id: other.id })]);
    expect(await claimObservation(db, mine)).toBe(false);
  });

  test("an observation that was stored before its transfer can be claimed any number of times", async () => {
    const transfer = await makeTransfer();
    await insertObservations(db, [observation(transfer)]);
    expect(await claimObservation(db, transfer)).toBe(true);
    expect(await claimObservation(db, transfer)).toBe(true);
  });
});

test("two settlements of a merchant and asset never share a number", async () => {
  const own = await insertMerchant(db);
  await insertSettlementRow(db, own, { number: 1 });
  await expect(insertSettlementRow(db, own, { number: 1 })).rejects.toMatchObject(refused);
  await insertSettlementRow(db, own, { number: 2 });
  await insertSettlementRow(db, own, { number: 1, asset: "another" });
});
