import { expect, test } from "vitest";
import { TRANSFER_TOPIC } from "../../../../chains/evm/abi.ts";
import { readEvmRow } from "../../../../db/chain-families.ts";
import { listCalls } from "../../../../transfers/evm/authorization-calls.ts";
import { RpcRefusal, startAlteringProxy } from "../../../support/altering-proxy.ts";
import { fundBuyer, mine, startChain } from "../../../support/evm-chain.ts";
import { makeMerchantFixture } from "../../../support/merchant-fixture.ts";
import { makeTransfersFixture, relayByThirdParty } from "../../../support/transfers-fixture.ts";

/** Returns whether a call reads the movements of our accounts; a call that names another event searches for one movement. */
const isReading = (method: string, params: unknown[]) =>
  method === "eth_getLogs" && String((params[0] as { topics: string[][] }).topics[0]) === TRANSFER_TOPIC;

test.each([
  ["", false],
  [" in a transaction whose receipt is too large for the endpoint", true],
])(
  "a transfer%s that no reading showed is found when its authorization expires, and its payment succeeds",
  async (_where, isTooLarge) => {
    const chain = await startChain();
    const proxy = await startAlteringProxy({ target: chain.url });
    const fixture = await makeMerchantFixture(chain, { rpcUrls: [proxy.url] });
    const paymentId = await fixture.create();
    await fixture.verify(await fixture.attempt(paymentId, await fundBuyer(chain)));
    await fixture.watch();
    const [transfer] = await fixture.transfers();
    if (!transfer) throw new Error("there is no transfer");
    const data = listCalls(fixture.evm, readEvmRow(transfer))[0]?.data ?? "0x";
    proxy.alter((method, params, result) => {
      if (isReading(method, params)) return [];
      return isTooLarge && method === "eth_getTransactionReceipt"
        ? new RpcRefusal({ code: -32_008, message: "response too large" })
        : result;
    });
    const hash = await relayByThirdParty(chain, data);
    await fixture.watch();
    await fixture.relay();
    await mine(chain, 3);
    await fixture.watch();
    expect((await fixture.transfers()).map((row) => row.state)).toEqual(["ready"]);

    await chain.client.increaseTime({ seconds: 7_200 });
    await mine(chain, 2);
    await fixture.watch();
    await fixture.watch();
    expect(await fixture.status(paymentId)).toMatchObject({ state: "succeeded", info: { txId: hash } });
    expect(await fixture.db.selectFrom("transaction").select("state").execute()).toEqual([]);
  },
);

test("a transfer whose log the second reading lacks is not confirmed until a reading shows it again", async () => {
  const chain = await startChain();
  const proxy = await startAlteringProxy({ target: chain.url });
  const fixture = await makeTransfersFixture(chain, { rpcUrls: [proxy.url], change: { finality: { blocks: 3 } } });
  const { id } = await fixture.sign(await fundBuyer(chain));
  await fixture.relay();
  await fixture.watch();
  expect(await fixture.statesOf([id])).toEqual(["included"]);
  const isRange = (params: unknown[]) => (params[0] as { fromBlock?: unknown }).fromBlock !== undefined;
  proxy.alter((method, params, result) => (method === "eth_getLogs" && isRange(params) ? [] : result));
  await mine(chain, 3);
  for (let pass = 0; pass < 2; pass += 1)
    await expect(fixture.watch()).rejects.toMatchObject({
      code: "rpc_behind",
      message: expect.stringContaining("the second reading lacks a log"),
    });
  expect(await fixture.statesOf([id])).toEqual(["included"]);
  expect(fixture.confirmed).toEqual([]);
  proxy.alter(undefined);
  await fixture.watch();
  expect(await fixture.statesOf([id])).toEqual(["confirmed"]);
});
