import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { moveRows } from "../../../../db/moves.ts";
import type { TransferCall } from "../../../../db/queries/transfers.ts";
import { type Signing, storeSignings } from "../../../../transfers/solana/store-transactions.ts";
import { insertTransferRow } from "../../../support/insert-rows.ts";
import { makeSolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { startTestSolana } from "../../../support/test-solana.ts";

const solana = await startTestSolana();
const fixture = await makeSolanaMerchantFixture(solana);
const { db, deps, chain } = fixture;
const merchant = { accountId: fixture.accountId, merchantId: fixture.merchantId };

const makeTransfer = async (): Promise<TransferCall> => {
  const { id } = await insertTransferRow(db, merchant, { asset: solana.asset });
  return db.selectFrom("transfer").selectAll().where("id", "=", id).executeTakeFirstOrThrow();
};
/** Bytes with one signature for some transfers; their content does not matter here. */
const signingOf = (
  transfers: readonly TransferCall[],
  bytes = Buffer.concat([Buffer.of(1), randomBytes(200)]),
): Signing => {
  const expires = { lastValidHeight: 1_000 };
  return { lane: chain.lanes[0] ?? "", bytes, units: 1, unitPrice: 0n, expires, transfers };
};
const stateOf = async ({ id }: TransferCall) =>
  (await db.selectFrom("transfer").select("state").where("id", "=", id).executeTakeFirstOrThrow()).state;
const countStored = async () => (await fixture.transactions()).length;

test("signed bytes are stored for ready transfers, and left out when one of their transfers is no longer ready", async () => {
  const [ready, other, assigned] = [await makeTransfer(), await makeTransfer(), await makeTransfer()];
  await moveRows(db, "transfer", { ids: [assigned.id], from: "ready", to: "assigned", at: new Date() });
  const before = await countStored();
  const [good, late] = [signingOf([ready]), signingOf([other, assigned])];
  expect(await storeSignings(deps, chain, [good, late], undefined)).toEqual([good]);
  expect(await countStored()).toBe(before + 1);
  expect([await stateOf(ready), await stateOf(other)]).toEqual(["assigned", "ready"]);
});

test("signed bytes that are stored already are neither stored nor sent for another transfer", async () => {
  const [first, second, third] = [await makeTransfer(), await makeTransfer(), await makeTransfer()];
  const stored = signingOf([first]);
  expect(await storeSignings(deps, chain, [stored], undefined)).toEqual([stored]);
  const [same, fresh] = [signingOf([second], Buffer.from(stored.bytes)), signingOf([third])];
  expect(await storeSignings(deps, chain, [same, fresh], undefined)).toEqual([fresh]);
  expect([await stateOf(second), await stateOf(third)]).toEqual(["ready", "assigned"]);
});
