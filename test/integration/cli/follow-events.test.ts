import { expect, test } from "vitest";
import { findLastCursor } from "../../../cli/follow-events.ts";
import { PaymentClient } from "../../../client/index.ts";
import { insertPaymentRows } from "../../support/insert-rows.ts";
import { makeMerchant, makePayment, startApi } from "../api/start-api.ts";

test("pay starts behind the newest event, however many events are unread", async () => {
  const api = await startApi();
  const merchant = await makeMerchant(api);
  await insertPaymentRows(api.db, merchant, { mode: "test", count: 3_200 });
  const client = new PaymentClient({ baseUrl: api.url, apiKey: merchant.key });
  const cursor = await findLastCursor(client);
  const paymentId = await makePayment(api, merchant);
  const { data } = await readPage(client, cursor);
  expect(data).toMatchObject([{ type: "payment.created", data: { payment_id: paymentId } }]);
});

async function readPage(client: PaymentClient, cursor: string | undefined) {
  for await (const page of client.events.list({ cursor: cursor ?? null }).pages()) return page;
  throw new Error("no page");
}
