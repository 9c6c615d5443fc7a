import { expect, test } from "vitest";
import { evmDriver } from "../../../../chains/evm/evm-driver.ts";
import { reconcileChain } from "../../../../payments/accounting/reconcile-chain.ts";
import { fundBuyer, mine, startChain } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";

test("the ledger is compared by an endpoint that has the state of final blocks, and the others are asked first as before", async () => {
  const chain = await startChain();
  const [full, archive] = [await startFaultProxy({ target: chain.url }), await startFaultProxy({ target: chain.url })];
  const change = { finality: { blocks: 3 } };
  const fixture = await makeMerchantFixture(chain, { rpcUrls: [full.url, archive.url], change });
  await fixture.pay(await fundBuyer(chain), 500n);
  await mine(chain, 5);
  await fixture.watch();
  const lackStates = ({ method, params: [, height] }: { method: string; params: unknown[] }) =>
    (method === "eth_getBalance" || method === "eth_call") && height !== "latest"
      ? { code: -32_000, message: "historical state 5d41 is not available" }
      : undefined;
  full.fail(lackStates);
  const before = full.calls["eth_blockNumber"] ?? 0;
  const lines = unwrap(await reconcileChain(fixture.deps, { chain: chain.id }));
  expect(lines.map(({ account, difference }) => [account.split(":")[0], difference])).toEqual([
    ["treasury", 0n],
    ["lane", 0n],
  ]);
  expect(lines[0]?.held).toBe(5_000_000n);
  const wanted = { asset: chain.asset, nonce: undefined };
  expect(await evmDriver.readFinalBalance(fixture.evm, wanted)).toMatchObject({ balance: 5_000_000n });
  await fixture.evm.rpc({ method: "eth_blockNumber" });
  expect((full.calls["eth_blockNumber"] ?? 0) - before, "the endpoint is not suspended").toBeGreaterThanOrEqual(2);

  archive.fail(lackStates);
  await expect(reconcileChain(fixture.deps, { chain: chain.id })).rejects.toMatchObject({ code: "state_missing" });
  await expect(evmDriver.readFinalBalance(fixture.evm, wanted)).rejects.toMatchObject({ code: "state_missing" });
});
