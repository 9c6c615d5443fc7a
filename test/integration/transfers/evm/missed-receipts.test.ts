import type { Hex } from "viem";
import { expect, test } from "vitest";
import { startAlteringProxy } from "../../../support/altering-proxy.ts";
import { fundBuyer, mine, startChain, type TestChain } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { makeTransfersFixture } from "../../../support/transfers-fixture.ts";

/** Blocks that a watcher reads as a range, because it was away while they came. */
const AWAY = 60;

/** Starts a carrier whose endpoint can be made to leave receipts out. */
async function startForgetful(others: (chain: TestChain) => Promise<string[]> = async () => []) {
  const chain = await startChain();
  const proxy = await startAlteringProxy({ target: chain.url });
  const rpcUrls = [proxy.url, ...(await others(chain))];
  const fixture = await makeTransfersFixture(chain, { rpcUrls, change: { finality: { blocks: 3 } } });
  /** Makes the endpoint leave out the receipts of our transactions. */
  const forget = async () => {
    const ours = (await fixture.transactions()).map(({ hash }) => hash as string);
    proxy.alter((method, params, result) =>
      method === "eth_getTransactionReceipt" && ours.includes(String(params[0])) ? null : result,
    );
  };
  /** Makes the endpoint garble a member of what a method returns. */
  const garble = (of: string, member: string) =>
    proxy.alter((method, _params, result) => (method === of && result ? { ...result, [member]: "zz" } : result));
  /**
   * Relays a transfer whose authorization a stranger uses in the same block, before our transaction, which then has no logs. The watcher
   * reads the range of the block without the receipt of our transaction.
   */
  const missReceipt = async (call: Hex) => {
    await chain.client.setAutomine(false);
    await fixture.relay();
    const tip = 50_000_000_000n;
    const fees = { maxPriorityFeePerGas: tip, maxFeePerGas: 2n * tip };
    await chain.client.sendTransaction({ to: chain.contracts.token, data: call, gas: 200_000n, ...fees });
    await mine(chain, AWAY);
    await chain.client.setAutomine(true);
    await forget();
    await fixture.watch();
  };
  const rows = () => fixture.db.selectFrom("transaction").select(["nonce", "state"]).orderBy("nonce").execute();
  return { chain, fixture, rows, forget, missReceipt, garble, prepareReorg: () => proxy.alter(undefined) };
}

test("a range of blocks that holds a transfer of ours is read again while the endpoint has no receipt of it", async () => {
  const { chain, fixture, rows, forget, prepareReorg } = await startForgetful();
  const { id } = await fixture.sign(await fundBuyer(chain));
  await fixture.watch();
  await fixture.relay();
  await mine(chain, AWAY);
  await forget();
  await expect(fixture.watch()).rejects.toMatchObject({ code: "rpc_behind" });
  expect(await fixture.statesOf([id])).toEqual(["assigned"]);
  prepareReorg();
  await fixture.watch();
  expect(await fixture.statesOf([id])).toEqual(["confirmed"]);
  expect(await rows()).toEqual([{ nonce: 0, state: "final" }]);
});

test("a transaction without logs that a range left out is found by its receipt, and a lost transaction behind it is sent again", async () => {
  const { chain, fixture, rows, missReceipt, prepareReorg } = await startForgetful();
  const { id, call } = await fixture.sign(await fundBuyer(chain));
  await fixture.watch();
  await missReceipt(call);
  expect(await fixture.statesOf([id])).toEqual(["confirmed"]);
  expect(await rows()).toMatchObject([{ nonce: 0, state: "accepted" }]);

  prepareReorg();
  const { id: next } = await fixture.sign(await fundBuyer(chain));
  await chain.client.setAutomine(false);
  await fixture.relay();
  const [, lost] = await fixture.transactions();
  await chain.client.dropTransaction({ hash: (lost?.hash ?? "0x") as Hex });
  await chain.client.setAutomine(true);
  fixture.clock.advance(60_000);
  await fixture.watch();
  await mine(chain, 3);
  await fixture.watch();
  const final = (await rows()).filter(({ state }) => state === "final");
  expect(final.map(({ nonce }) => nonce)).toEqual([0, 1]);
  expect(await fixture.statesOf([next])).toEqual(["confirmed"]);
});

test.each([
  { what: "blocks", method: "eth_getBlockByNumber", member: "timestamp" },
  { what: "receipts", method: "eth_getTransactionReceipt", member: "gasUsed" },
])(
  "a transaction that a range left out is found by its receipt while one of two endpoints garbles $what",
  async ({ method, member }) => {
    const { chain, fixture, rows, missReceipt, garble } = await startForgetful(async ({ url }) => [url]);
    const { call } = await fixture.sign(await fundBuyer(chain));
    await fixture.watch();
    await missReceipt(call);
    expect(await rows()).toMatchObject([{ nonce: 0, state: "accepted" }]);
    garble(method, member);
    fixture.clock.advance(60_000);
    await fixture.watch().catch(() => undefined);
    expect(await rows()).toMatchObject([{ nonce: 0, state: "included" }]);
  },
);

test("a nonce is not given up while the only endpoint that has its receipt lacks the method", async () => {
  const { chain, fixture, rows, missReceipt } = await startForgetful(async ({ url }) => {
    const second = await startFaultProxy({ target: url });
    second.fail(({ method }) =>
      method === "eth_getTransactionReceipt" ? { code: -32_601, message: "method not available" } : undefined,
    );
    return [second.url];
  });
  const { call } = await fixture.sign(await fundBuyer(chain));
  await fixture.watch();
  await missReceipt(call);
  fixture.clock.advance(60_000);
  await expect(fixture.watch()).rejects.toThrow("method not available");
  expect(await rows()).toMatchObject([{ nonce: 0, state: "accepted" }]);
});
