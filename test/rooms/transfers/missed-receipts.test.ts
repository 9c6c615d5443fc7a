import type { Hex } from "viem";
import { expect, test } from "vitest";
import { startAlteringProxy } from "../../support/altering-proxy.ts";
import { makeCarrier } from "../../support/carry.ts";
import { fundBuyer, mine, startChain } from "../../support/chain.ts";

/** Blocks that a watcher reads as a range, because it was away while they came. */
const AWAY = 60;

/** Starts a carrier whose endpoint can be made to leave receipts out. */
async function startForgetful() {
  const chain = await startChain();
  const proxy = await startAlteringProxy({ target: chain.url });
  const carrier = await makeCarrier(chain, { rpcUrls: [proxy.url], change: { finality: { blocks: 3 } } });
  const forget = () =>
    proxy.alter((method, _params, result) => (method === "eth_getTransactionReceipt" ? null : result));
  const rows = () => carrier.db.selectFrom("transaction").select(["nonce", "state"]).orderBy("nonce").execute();
  return { chain, carrier, rows, forget, remember: () => proxy.alter(undefined) };
}

test("a range of blocks that holds a transfer of ours is read again while the endpoint has no receipt of it", async () => {
  const { chain, carrier, rows, forget, remember } = await startForgetful();
  const { id } = await carrier.sign(await fundBuyer(chain));
  await carrier.watch();
  await carrier.relay();
  await mine(chain, AWAY);
  forget();
  await expect(carrier.watch()).rejects.toMatchObject({ code: "rpc_behind" });
  expect(await carrier.statesOf([id])).toEqual(["carried"]);
  remember();
  await carrier.watch();
  expect(await carrier.statesOf([id])).toEqual(["confirmed"]);
  expect(await rows()).toEqual([{ nonce: 0, state: "final" }]);
});

test("a transaction without logs that a range left out is found by its receipt, and a lost transaction behind it is sent again", async () => {
  const { chain, carrier, rows, forget, remember } = await startForgetful();
  const { id, call } = await carrier.sign(await fundBuyer(chain));
  await carrier.watch();
  // A stranger uses the authorization in the same block, before our transaction, which then moves nothing.
  await chain.client.setAutomine(false);
  await carrier.relay();
  const tip = 50_000_000_000n;
  const fees = { maxPriorityFeePerGas: tip, maxFeePerGas: 2n * tip };
  await chain.client.sendTransaction({ to: chain.contracts.token, data: call, gas: 200_000n, ...fees });
  await mine(chain, AWAY);
  await chain.client.setAutomine(true);
  forget();
  await carrier.watch();
  expect(await carrier.statesOf([id])).toEqual(["confirmed"]);
  expect(await rows()).toMatchObject([{ nonce: 0, state: "accepted" }]);

  remember();
  const { id: next } = await carrier.sign(await fundBuyer(chain));
  await chain.client.setAutomine(false);
  await carrier.relay();
  const [, lost] = await carrier.transactions();
  await chain.client.dropTransaction({ hash: (lost?.hash ?? "0x") as Hex });
  await chain.client.setAutomine(true);
  carrier.clock.advance(60_000);
  await carrier.watch();
  await mine(chain, 3);
  await carrier.watch();
  const final = (await rows()).filter(({ state }) => state === "final");
  expect(final.map(({ nonce }) => nonce)).toEqual([0, 1]);
  expect(await carrier.statesOf([next])).toEqual(["confirmed"]);
});
