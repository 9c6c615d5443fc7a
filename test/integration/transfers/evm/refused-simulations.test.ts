import { expect, test } from "vitest";
import { RpcRefusal, startAlteringProxy } from "../../../support/altering-proxy.ts";
import { fundBuyers, startChain, usdcBalance } from "../../../support/evm-chain.ts";
import { makeMerchantFixture } from "../../../support/merchant-fixture.ts";
import { makeTransfersFixture } from "../../../support/transfers-fixture.ts";

const chain = await startChain();
const proxy = await startAlteringProxy({ target: chain.url });
const rpcUrls = [proxy.url];
const refusal = new RpcRefusal({ code: -32_000, message: "the call is too large" });

/** Refuses every eth_call that calls the token more than once, as an endpoint with a small limit does. Returns how many it refused. */
function refuseCommonCalls(): { times: number } {
  const refused = { times: 0 };
  const token = chain.contracts.token.slice(2).toLowerCase();
  proxy.alter((method, [call], result) => {
    const { data = "" } = (call ?? {}) as { data?: string };
    if (method !== "eth_call" || data.split(token).length <= 2) return result;
    refused.times += 1;
    return refusal;
  });
  return refused;
}

test("payouts share a transaction although the endpoint refuses to simulate them together", async () => {
  const fixture = await makeMerchantFixture(chain, { rpcUrls });
  const [first, second] = await fundBuyers(chain, 2);
  if (!first || !second) throw new Error("there are no buyers");
  const paid = [await fixture.pay(first, 100n), await fixture.pay(second, 200n)];
  const ids = (await Promise.all(paid.map((id) => fixture.settlementOf(id)))).map(({ id }) => id);
  expect(await fixture.settle(...ids)).toEqual(["begun", "begun"]);
  const refused = refuseCommonCalls();
  await fixture.relay();
  await fixture.watch();
  expect(refused.times).toBeGreaterThan(0);
  expect(await usdcBalance(chain, fixture.destination)).toBe(3_000_000n);
  const payouts = (await fixture.transfers()).filter(({ purpose }) => purpose === "settlement");
  expect(payouts.map(({ lane_nonce }) => lane_nonce)).toEqual([payouts[0]?.lane_nonce, payouts[0]?.lane_nonce]);
});

test("payments of one account are sent one at a time while the endpoint refuses to simulate them together, the oldest first", async () => {
  const fixture = await makeTransfersFixture(chain, { rpcUrls });
  fixture.clock.stop();
  const [buyer] = await fundBuyers(chain, 1);
  if (!buyer) throw new Error("there is no buyer");
  const ids: string[] = [];
  const sign = async () => {
    ids.push((await fixture.sign(buyer)).id);
    fixture.clock.advance(1);
  };
  await sign();
  await sign();
  refuseCommonCalls();
  await fixture.relay();
  await fixture.watch();
  expect(await fixture.rowsOf(ids)).toMatchObject([
    { state: "confirmed", alone: false },
    { state: "ready", alone: true },
  ]);
  await sign();
  fixture.clock.advance(3_000);
  await fixture.relay();
  await fixture.watch();
  const rows = await fixture.rowsOf(ids);
  expect(rows).toMatchObject([{ state: "confirmed" }, { state: "confirmed" }, { state: "confirmed" }]);
  const first = rows[0]?.lane_nonce ?? 0;
  expect(rows.map(({ lane_nonce }) => lane_nonce)).toEqual([first, first + 1, first + 2]);
});
