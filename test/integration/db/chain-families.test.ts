import { expect, test } from "vitest";
import { insertMerchant, insertTransferRow } from "../../support/insert-rows.ts";
import { openTestDb } from "../../support/open-test-db.ts";

const { db } = await openTestDb();
const merchant = await insertMerchant(db);

test.each([
  ["an EVM transfer without an end of its authorization", { valid_before: null }],
  ["an EVM transfer with a last block height", { last_valid_height: 5 }],
  ["a Solana transfer with the end of an authorization", { kind: "spl" as const }],
])("the database refuses %s", async (_what, columns) => {
  const { id } = await insertTransferRow(db, merchant);
  const changed = db.updateTable("transfer").set(columns).where("id", "=", id).execute();
  await expect(changed).rejects.toMatchObject({ code: "23514" });
});

test("the database accepts a Solana transfer with a last block height", async () => {
  const { id } = await insertTransferRow(db, merchant);
  const columns = { kind: "spl" as const, valid_before: null, last_valid_height: 5 };
  await db.updateTable("transfer").set(columns).where("id", "=", id).execute();
});
