import { expect, test } from "vitest";
import { openDb } from "../../../../db/open.ts";
import { listBurnedByPayer } from "../../../../db/queries/burned-gas.ts";
import { recordRequester } from "../../../../db/queries/requesters.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { insertMerchant, insertPaymentRow } from "../../../support/insert-rows.ts";
import { openTestDb } from "../../../support/open-test-db.ts";

const { db, url } = await openTestDb();
const statements = { count: 0 };
const counted = openDb(url, { max: 2, onStatement: () => void statements.count++ });
addCleanup(() => counted.destroy());

/** Returns the statements of calls that arrive at the same time. */
async function countOf(calls: readonly (() => Promise<unknown>)[]): Promise<number> {
  const before = statements.count;
  await Promise.all(calls.map((call) => call()));
  return statements.count - before;
}

test("concurrent requests for options record their requesters with one statement, and read the burned gas of all chains with one", async () => {
  const merchant = await insertMerchant(db);
  const ids = await Promise.all(Array.from({ length: 20 }, () => insertPaymentRow(db, merchant)));
  const recorded = ids.map((id) => () => {
    const payment = { id, requester: null, has_other_requesters: false };
    return recordRequester(counted, payment, { name: `wallet of ${id}`, isOne: true });
  });
  expect(await countOf(recorded)).toBe(1);
  const rows = await db.selectFrom("payment").select(["id", "requester"]).where("id", "in", ids).execute();
  expect(rows.map(({ id, requester }) => requester === `wallet of ${id}`)).toEqual(ids.map(() => true));

  const now = new Date();
  const read = ["eip155:1", "eip155:10", "eip155:1"].map(
    (chain) => () => listBurnedByPayer(counted, { chain, dayAgo: now, hourAgo: now }),
  );
  expect(await countOf(read)).toBe(1);
});
