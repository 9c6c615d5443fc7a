import { expect, test } from "vitest";
import { openDb } from "../../../../db/open.ts";
import { listEvents } from "../../../../payments/webhooks/list-events.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { insertMerchant, insertPaymentRow, insertPaymentRows } from "../../../support/insert-rows.ts";
import { unwrap } from "../../../support/merchant-fixture.ts";
import { createDatabase } from "../../../support/test-database.ts";

const db = openDb(await createDatabase(), { max: 2 });
addCleanup(() => db.destroy());

const allEvents = () => db.selectFrom("webhook_event").select("id").orderBy("position").execute();

test("each call for the end of an unread list numbers a part of it, skips no event, and the latest events are one page", async () => {
  const merchant = await insertMerchant(db);
  await insertPaymentRows(db, merchant, { mode: "live", count: 3_200 });
  const args = { accountId: merchant.accountId, mode: "live", limit: 3, payload: "thin" } as const;
  const part = unwrap(await listEvents({ db }, { ...args, start: "end" }));
  expect(part).toMatchObject({ items: [], hasMore: true });
  const end = unwrap(await listEvents({ db }, { ...args, start: "end" }));
  expect(end).toMatchObject({ items: [], hasMore: false });
  const latest = unwrap(await listEvents({ db }, { ...args, start: "latest" }));
  expect(latest.items.map(({ id }) => id)).toEqual((await allEvents()).map(({ id }) => id).slice(-3));
  expect([latest.nextCursor, latest.hasMore]).toEqual([end.nextCursor, false]);
  // The payments of a page's events have ended and their events have left, but the newest.
  const left = (await allEvents()).slice(-5, -1).map(({ id }) => id);
  await db.deleteFrom("webhook_event").where("id", "in", left).execute();
  const kept = unwrap(await listEvents({ db }, { ...args, start: "latest" }));
  expect(kept.items.map(({ id }) => id)).toEqual((await allEvents()).map(({ id }) => id).slice(-3));
  expect(kept.nextCursor).toBe(end.nextCursor);
  const later = await insertPaymentRow(db, merchant);
  const readAfter = async (cursor: string | null, limit: number) =>
    unwrap(await listEvents({ db }, { ...args, cursor: cursor ?? undefined, limit })).items;
  expect(await readAfter(end.nextCursor, 3)).toMatchObject([{ data: { payment_id: later } }]);
  expect(await readAfter(part.nextCursor, 300)).toHaveLength(197);
});
