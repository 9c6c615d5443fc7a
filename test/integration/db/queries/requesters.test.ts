import { expect, test } from "vitest";
import { recordRequester } from "../../../../db/queries/requesters.ts";
import { insertMerchant, insertPaymentRow } from "../../../support/insert-rows.ts";
import { openTestDb } from "../../../support/open-test-db.ts";

const { db } = await openTestDb();
const merchant = await insertMerchant(db);

/** Reads a payment and records requesters of it at the same time. Returns what the payment knows of them then. */
async function recordAll(id: string, names: readonly string[]) {
  const read = () =>
    db
      .selectFrom("payment")
      .select(["id", "requester", "has_other_requesters"])
      .where("id", "=", id)
      .executeTakeFirstOrThrow();
  const payment = await read();
  await Promise.all(names.map((name) => recordRequester(db, payment, { name, isOne: true })));
  const { requester, has_other_requesters: hasOthers } = await read();
  return { requester, hasOthers };
}

test("requesters who ask at the same time are recorded: the first by its name, and that there are others", async () => {
  const [one, two, three] = await Promise.all(Array.from({ length: 3 }, () => insertPaymentRow(db, merchant)));
  const ends = await Promise.all([
    recordAll(one ?? "", ["a", "a"]),
    recordAll(two ?? "", ["a", "b", "a"]),
    recordAll(three ?? "", ["c"]),
  ]);
  expect(ends).toEqual([
    { requester: "a", hasOthers: false },
    { requester: "a", hasOthers: true },
    { requester: "c", hasOthers: false },
  ]);
  expect(await recordAll(one ?? "", ["a", "d"])).toEqual({ requester: "a", hasOthers: true });
  expect(await recordAll(three ?? "", ["e"])).toEqual({ requester: "c", hasOthers: true });
});
