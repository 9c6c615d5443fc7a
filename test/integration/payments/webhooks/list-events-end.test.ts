import { expect, test } from "vitest";
import { openDb } from "../../../../db/open.ts";
import { listEvents } from "../../../../payments/webhooks/list-events.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { insertMerchant, insertPaymentRow, insertPaymentRows } from "../../../support/insert-rows.ts";
import { unwrap } from "../../../support/merchant-fixture.ts";
import { createDatabase } from "../../../support/test-database.ts";

const db = openDb(await createDatabase(), { max: 2 });
addCleanup(() => db.destroy());

test("each call for the end of an unread list numbers a part of it, and skips no event behind its cursor", async () => {
  const merchant = await insertMerchant(db);
  await insertPaymentRows(db, merchant, { mode: "live", count: 3_200 });
  const args = { accountId: merchant.accountId, mode: "live", limit: 3, payload: "thin" } as const;
  const part = unwrap(await listEvents({ db }, { ...args, start: "end" }));
  expect(part).toMatchObject({ items: [], hasMore: true });
  const end = unwrap(await listEvents({ db }, { ...args, start: "end" }));
  expect(end).toMatchObject({ items: [], hasMore: false });
  const later = await insertPaymentRow(db, merchant);
  const readAfter = async (cursor: string | null, limit: number) =>
    unwrap(await listEvents({ db }, { ...args, cursor: cursor ?? undefined, limit })).items;
  expect(await readAfter(end.nextCursor, 3)).toMatchObject([{ data: { payment_id: later } }]);
  expect(await readAfter(part.nextCursor, 300)).toHaveLength(201);
});
