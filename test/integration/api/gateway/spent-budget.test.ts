import { expect, test } from "vitest";
import { ensureCursor } from "../../../../db/queries/chain-cursors.ts";
import { makeMerchant, makePayment, startApi } from "../start-api.ts";

test("options whose only chain has no budget of RPC calls left are refused with 503 and the time after which to retry", async () => {
  const api = await startApi({ callsPerMinute: 30 });
  // Only chains that a worker has begun to read are offered.
  await ensureCursor(api.db, { chain: "eip155:31337", number: 1, blockId: "0x01", dueAt: new Date(), assets: [] });
  const merchant = await makeMerchant(api, { mode: "live" });
  const id = await makePayment(api, merchant);
  const accounts = [`eip155:31337:0x${"ab".repeat(20)}`];
  const ask = () => api.post(`/v1/gateway/payment/${id}/options`, merchant.wallet, { accounts });
  // No endpoint answers, which costs calls as well.
  const unanswered = await ask();
  expect(unanswered).toMatchObject({ status: 503, body: { code: "chain_unavailable" } });
  expect(unanswered.headers.get("retry-after")).toBe("5");
  const refused = await ask();
  expect(refused).toMatchObject({ status: 503, body: { code: "chain_unavailable" } });
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
});
