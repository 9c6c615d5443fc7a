import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { moveRows } from "../../../db/moves.ts";
import { type Signing, storeSignings } from "../../../transfers/solana/store.ts";
import { insertTransferRow } from "../../support/rows.ts";
import { startTestSolana } from "../../support/solana.ts";
import { makeSolanaTill } from "../../support/solana-till.ts";

const solana = await startTestSolana();
const till = await makeSolanaTill(solana);
const { db, deps, chain } = till;
const merchant = { accountId: till.accountId, merchantId: till.merchantId };

const makeTransfer = async () => (await insertTransferRow(db, merchant, { asset: solana.asset })).id;
/** Bytes with one signature for some transfers; their content does not matter here. */
const signingOf = (
  transferIds: readonly string[],
  bytes = Buffer.concat([Buffer.of(1), randomBytes(200)]),
): Signing => {
  const expires = { lastHeight: 1_000 };
  return { lane: chain.lanes[0] ?? "", bytes, units: 1, unitPrice: 0n, expires, transferIds };
};
const stateOf = async (id: string) =>
  (await db.selectFrom("transfer").select("state").where("id", "=", id).executeTakeFirstOrThrow()).state;
const countStored = async () => (await till.transactions()).length;

test("signed bytes are stored for ready transfers, and left out when one of their transfers is no longer ready", async () => {
  const [ready, other, carried] = [await makeTransfer(), await makeTransfer(), await makeTransfer()];
  await moveRows(db, "transfer", { ids: [carried], from: "ready", to: "carried", at: new Date() });
  const before = await countStored();
  const [good, late] = [signingOf([ready]), signingOf([other, carried])];
  expect(await storeSignings(deps, chain, [good, late], undefined)).toEqual([good]);
  expect(await countStored()).toBe(before + 1);
  expect([await stateOf(ready), await stateOf(other)]).toEqual(["carried", "ready"]);
});

test("signed bytes that are stored already are neither stored nor sent for another transfer", async () => {
  const [first, second, third] = [await makeTransfer(), await makeTransfer(), await makeTransfer()];
  const stored = signingOf([first]);
  expect(await storeSignings(deps, chain, [stored], undefined)).toEqual([stored]);
  const [same, fresh] = [signingOf([second], Buffer.from(stored.bytes)), signingOf([third])];
  expect(await storeSignings(deps, chain, [same, fresh], undefined)).toEqual([fresh]);
  expect([await stateOf(second), await stateOf(third)]).toEqual(["ready", "carried"]);
});
