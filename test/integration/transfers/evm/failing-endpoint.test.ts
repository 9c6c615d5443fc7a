import { expect, test } from "vitest";
import { getEvmChain } from "../../../../chains/open-chains.ts";
import { fundBuyer, startChain, usdcBalance } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { makeMerchantFixture } from "../../../support/merchant-fixture.ts";

test.each([
  { what: "an internal error", error: { code: -32_603, message: "internal error" } },
  { what: "that it lacks the method", error: { code: -32_601, message: "the method does not exist/is not available" } },
])("payments are made and paid out while the first endpoint returns to every call $what", async ({ error }) => {
  const chain = await startChain();
  const first = await startFaultProxy({ target: chain.url });
  const fixture = await makeMerchantFixture(chain, { rpcUrls: [first.url, chain.url] });
  first.fail(() => error);
  const paymentId = await fixture.pay(await fundBuyer(chain));
  const { id } = await fixture.settlementOf(paymentId);
  expect(await fixture.settle(id)).toEqual(["begun"]);
  await fixture.relay();
  await fixture.watch();
  expect(await usdcBalance(chain, fixture.destination)).toBe(1_000_000n);
});

test("a call that reverts is made at one endpoint, whatever code the node gives it", async () => {
  const chain = await startChain();
  const [first, second] = [await startFaultProxy({ target: chain.url }), await startFaultProxy({ target: chain.url })];
  const fixture = await makeMerchantFixture(chain, { rpcUrls: [first.url, second.url] });
  first.fail(({ method }) =>
    method === "eth_call" ? { code: -32_603, message: "execution reverted: paused" } : undefined,
  );
  const before = second.calls["eth_call"] ?? 0;
  const { rpc } = getEvmChain(fixture.deps.chains, chain.id);
  const call = { to: chain.contracts.token, data: "0x18160ddd" } as const;
  await expect(rpc({ method: "eth_call", params: [call, "latest"] })).rejects.toThrow("execution reverted");
  expect(second.calls["eth_call"] ?? 0).toBe(before);
});
