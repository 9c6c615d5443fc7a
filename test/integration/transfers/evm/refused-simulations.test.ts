import { decodeFunctionResult, encodeFunctionResult, type Hex } from "viem";
import { expect, test } from "vitest";
import { multicallAbi } from "../../../../chains/evm/abi.ts";
import { RpcRefusal, startAlteringProxy } from "../../../support/altering-proxy.ts";
import { fundBuyers, startChain, usdcBalance } from "../../../support/evm-chain.ts";
import { makeMerchantFixture } from "../../../support/merchant-fixture.ts";
import { makeTransfersFixture } from "../../../support/transfers-fixture.ts";

const chain = await startChain();
const proxy = await startAlteringProxy({ target: chain.url });
const rpcUrls = [proxy.url];
const refusal = new RpcRefusal({ code: -32_000, message: "the call is too large" });

/** Alters every answer to an eth_call that calls the token more than once. Returns how many answers it altered. */
function alterCommonCalls(answer: (result: Hex) => unknown): { times: number } {
  const altered = { times: 0 };
  const token = chain.contracts.token.slice(2).toLowerCase();
  proxy.alter((method, [call], result) => {
    const { data = "" } = (call ?? {}) as { data?: string };
    if (method !== "eth_call" || data.split(token).length <= 2) return result;
    altered.times += 1;
    return answer(result as Hex);
  });
  return altered;
}

/** As an endpoint with a small limit does. */
const refuse = () => refusal;

function failAll(result: Hex): Hex {
  const common = { abi: multicallAbi, functionName: "tryAggregate" } as const;
  const outcomes = decodeFunctionResult({ ...common, data: result });
  const failed = outcomes.map(() => ({ success: false, returnData: "0x" as const }));
  return encodeFunctionResult({ ...common, result: failed });
}

test.each([
  ["refuses to simulate them together", refuse],
  ["answers that all of them fail together", failAll],
])("payouts share a transaction although the endpoint %s", async (_what, answer) => {
  const fixture = await makeMerchantFixture(chain, { rpcUrls });
  const [first, second] = await fundBuyers(chain, 2);
  if (!first || !second) throw new Error("there are no buyers");
  const paid = [await fixture.pay(first, 100n), await fixture.pay(second, 200n)];
  const ids = (await Promise.all(paid.map((id) => fixture.settlementOf(id)))).map(({ id }) => id);
  expect(await fixture.settle(...ids)).toEqual(["begun", "begun"]);
  const altered = alterCommonCalls(answer);
  await fixture.relay();
  await fixture.watch();
  expect(altered.times).toBeGreaterThan(0);
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
  alterCommonCalls(refuse);
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
