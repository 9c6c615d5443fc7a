import { expect, test } from "vitest";
import { listCalls } from "../../../transfers/authorization.ts";
import { startAlteringProxy } from "../../support/altering-proxy.ts";
import { makeCarrier, relayByStranger } from "../../support/carry.ts";
import { fundBuyer, mine, startChain } from "../../support/chain.ts";
import { makeTill } from "../../support/till.ts";

/** Returns whether a call reads all movements of the tokens; a call that names a payer searches for one movement. */
const isReading = (method: string, params: unknown[]) =>
  method === "eth_getLogs" && (params[0] as { topics: unknown[] }).topics.length === 1;

test("a transfer that no reading showed is found when its authorization expires, and its payment succeeds", async () => {
  const chain = await startChain();
  const proxy = await startAlteringProxy({ target: chain.url });
  const till = await makeTill(chain, { rpcUrls: [proxy.url] });
  const paymentId = await till.create();
  await till.verify(await till.attempt(paymentId, await fundBuyer(chain)));
  await till.watch();
  const [transfer] = await till.transfers();
  if (!transfer) throw new Error("there is no transfer");
  const data = listCalls(till.evm, transfer)[0]?.data ?? "0x";
  proxy.alter((method, params, result) => (isReading(method, params) ? [] : result));
  const hash = await relayByStranger(chain, data);
  await till.watch();
  await till.relay();
  await mine(chain, 3);
  await till.watch();
  expect((await till.transfers()).map((row) => row.state)).toEqual(["ready"]);

  await chain.client.increaseTime({ seconds: 7_200 });
  await mine(chain, 2);
  await till.watch();
  proxy.alter(undefined);
  await till.watch();
  expect(await till.status(paymentId)).toMatchObject({ state: "succeeded", info: { txId: hash } });
  expect(await till.db.selectFrom("transaction").select("state").execute()).toEqual([]);
});

test("a transfer whose log the second reading lacks is not confirmed until a reading shows it again", async () => {
  const chain = await startChain();
  const proxy = await startAlteringProxy({ target: chain.url });
  const carrier = await makeCarrier(chain, { rpcUrls: [proxy.url], change: { finality: { blocks: 3 } } });
  const { id } = await carrier.sign(await fundBuyer(chain));
  await carrier.relay();
  await carrier.watch();
  expect(await carrier.statesOf([id])).toEqual(["included"]);
  const isRange = (params: unknown[]) => (params[0] as { fromBlock?: unknown }).fromBlock !== undefined;
  proxy.alter((method, params, result) => (method === "eth_getLogs" && isRange(params) ? [] : result));
  await mine(chain, 3);
  for (let pass = 0; pass < 2; pass += 1)
    await expect(carrier.watch()).rejects.toMatchObject({
      code: "rpc_behind",
      message: expect.stringContaining("the second reading lacks a log"),
    });
  expect(await carrier.statesOf([id])).toEqual(["included"]);
  expect(carrier.confirmed).toEqual([]);
  proxy.alter(undefined);
  await carrier.watch();
  expect(await carrier.statesOf([id])).toEqual(["confirmed"]);
});
