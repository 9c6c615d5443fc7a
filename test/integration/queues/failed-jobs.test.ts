import { expect, test } from "vitest";
import { moveRows } from "../../../db/moves.ts";
import { listOpenRows } from "../../../db/queries/open-rows.ts";
import { removeSuperseded } from "../../../queues/failed-jobs.ts";
import { insertMerchant, insertPaymentRow } from "../../support/insert-rows.ts";
import { openTestDb } from "../../support/open-test-db.ts";
import { openQueues } from "../../support/test-queues.ts";
import { waitFor } from "../../support/wait-for.ts";

const within = { within: 20_000 };

test("a row that fails in each sweep keeps one failed job, which leaves when the row is done", async () => {
  const { db } = await openTestDb(2);
  const merchant = await insertMerchant(db);
  const [failing, other] = [await insertPaymentRow(db, merchant), await insertPaymentRow(db, merchant)];
  const queues = await openQueues();
  await queues.ready();
  const queue = queues.queue("expire-payment");
  queues.serve("expire-payment", async () => {
    throw Object.assign(new Error("the row is odd"), { code: "odd_row" });
  });
  for (const retry of [0, 1, 2]) {
    await queues.enqueue("expire-payment", [
      { data: { paymentId: failing }, retry },
      { data: { paymentId: other }, retry },
    ]);
    await waitFor(async () => (await queue.getFailedCount()) === (retry + 1) * 2, within);
  }
  const tidy = () => removeSuperseded([queue], { now: new Date(), listOpen: (rows) => listOpenRows(db, rows) });
  const kept = async () => (await queue.getFailed()).map(({ data }) => data.paymentId).sort();
  expect(await tidy()).toBe(4);
  expect(await kept()).toEqual([failing, other].sort());
  expect(await tidy()).toBe(0);
  const job = (await queue.getFailed()).find(({ data }) => data.paymentId === failing);
  expect(job?.failedReason).toBe("Error [odd_row]: the row is odd");
  expect(job?.stacktrace?.at(-1), "the place where the handler has thrown").toContain("failed-jobs.test.ts");
  await moveRows(db, "payment", { ids: [other], from: "requires_action", to: "expired", at: new Date() });
  expect(await tidy()).toBe(1);
  expect(await kept()).toEqual([failing]);
  const listOpen = async () => {
    await job?.retry("failed");
    return new Set<string>();
  };
  const removed = await removeSuperseded([queue], { now: new Date(), listOpen });
  expect(removed, "a job that an operator retries meanwhile stays").toBe(0);
  await waitFor(async () => (await queue.getFailedCount()) === 1, within);
});
