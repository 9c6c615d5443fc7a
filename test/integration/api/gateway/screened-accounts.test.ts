import { expect, test } from "vitest";
import { ensureCursor } from "../../../../db/queries/chain-cursors.ts";
import { makeMerchant, makePayment, startApi } from "../start-api.ts";

test("a wallet whose only account is sanctioned gets 403", async () => {
  const api = await startApi();
  // Only chains that a worker has begun to read are offered.
  await ensureCursor(api.db, { chain: "eip155:31337", number: 1, blockId: "0x01", dueAt: new Date(), assets: [] });
  const merchant = await makeMerchant(api, { mode: "live" });
  const address = `0x${"5a".repeat(20)}`;
  api.screened.add(address);
  const id = await makePayment(api, merchant);
  const accounts = [`eip155:31337:${address}`];
  const answer = await api.post(`/v1/gateway/payment/${id}/options`, merchant.wallet, { accounts });
  expect([answer.status, answer.body["code"]]).toEqual([403, "sanctioned_user"]);
});
