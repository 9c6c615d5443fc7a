import { decodeFunctionResult, encodeFunctionResult, type Hex, numberToHex, toFunctionSelector } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { AUTHORIZATION_USED_TOPIC, multicallAbi, TRANSFER_TOPIC } from "../../../../chains/evm/abi.ts";
import { listUnreadChains } from "../../../../db/epoch.ts";
import { type Alter, RpcRefusal, startAlteringProxy } from "../../../support/altering-proxy.ts";
import { fundBuyer, mine, sendUsdc, startChain } from "../../../support/evm-chain.ts";
import { makeMerchantFixture } from "../../../support/merchant-fixture.ts";
import { makeTransfersFixture, relayByThirdParty, waitUntilMined } from "../../../support/transfers-fixture.ts";

type Topics = { topics: (string[] | null)[]; blockHash?: string };
const asksFor = (topic: string, params: unknown[]) => (params[0] as Topics).topics[0]?.includes(topic) === true;

const malformed: Record<string, Alter> = {
  "results of calls": (method, _params, result) => (method === "eth_call" ? "0x12" : result),
  "results of calls that are no text": (method, _params, result) => (method === "eth_call" ? 7 : result),
  // As a node does that begins to read its chain and has no contract yet.
  "results of calls that are empty": (method, _params, result) => (method === "eth_call" ? "0x" : result),
};

test.each(Object.entries(malformed))(
  "payments whose authorizations are unused expire while one of two endpoints answers with malformed %s",
  async (_what, alter) => {
    const chain = await startChain();
    const liar = await startAlteringProxy({ target: chain.url });
    const fixture = await makeMerchantFixture(chain, { rpcUrls: [liar.url, chain.url] });
    const paymentId = await fixture.create();
    await fixture.verify(await fixture.attempt(paymentId, await fundBuyer(chain)));
    await fixture.watch();
    liar.alter(alter);
    await chain.client.increaseTime({ seconds: 7_200 });
    await mine(chain, 2);
    // What only that endpoint is asked for still fails.
    await fixture.watch().catch(() => undefined);
    expect((await fixture.status(paymentId)).state).toBe("expired");
  },
);

test("a transfer that no reading showed is found although one endpoint's search for it is malformed", async () => {
  const chain = await startChain();
  const proxies = [await startAlteringProxy({ target: chain.url }), await startAlteringProxy({ target: chain.url })];
  const fixture = await makeTransfersFixture(chain, { rpcUrls: proxies.map(({ url }) => url) });
  const { timestamp } = await chain.client.getBlock();
  const { id, call } = await fixture.sign(await fundBuyer(chain), 1n, { validBefore: Number(timestamp) + 3_600 });
  await fixture.watch();
  for (const proxy of proxies)
    proxy.alter((method, params, result) =>
      method === "eth_getLogs" && asksFor(TRANSFER_TOPIC, params) ? [] : result,
    );
  await relayByThirdParty(chain, call);
  await chain.client.increaseTime({ seconds: 7_200 });
  await mine(chain, 2);
  proxies[0]?.alter((method, params, result) => {
    if (method !== "eth_getLogs") return result;
    return asksFor(AUTHORIZATION_USED_TOPIC, params) ? [{ topics: "zz" }] : [];
  });
  await fixture.watch();
  expect(await fixture.statesOf([id])).toEqual(["included"]);
});

test.each([
  ["two endpoints", "except large ones", "ready"],
  ["three endpoints", "also large ones", "ended"],
])(
  "authorizations of a token expire although one of %s shows no result of its contract, %s",
  async (of, _except, large) => {
    const chain = await startChain();
    const [odd, third] = [
      await startAlteringProxy({ target: chain.url }),
      await startAlteringProxy({ target: chain.url }),
    ];
    const rpcUrls = [odd.url, chain.url, ...(of === "three endpoints" ? [third.url] : [])];
    const plain = await makeTransfersFixture(chain);
    const assets = plain.evm.network.assets.map((asset) => ({ ...asset, agreementThreshold: "2" }));
    const fixture = await makeTransfersFixture(chain, { rpcUrls, change: { assets } });
    const { timestamp } = await chain.client.getBlock();
    const ids: string[] = [];
    for (const amount of [1n, 2n])
      ids.push((await fixture.sign(await fundBuyer(chain), amount, { validBefore: Number(timestamp) + 3_600 })).id);
    // Only the first result of a call, the number of the block, is left.
    odd.alter((method, [call], result) => {
      const { data } = (call ?? {}) as { data?: Hex };
      if (method !== "eth_call" || !data?.startsWith(toFunctionSelector(multicallAbi[0]))) return result;
      const [abi, functionName] = [multicallAbi, "tryAggregate" as const];
      const outcomes = decodeFunctionResult({ abi, functionName, data: result as Hex });
      const altered = outcomes.map((one, index) => (index === 0 ? one : { success: true, returnData: "0x" as Hex }));
      return encodeFunctionResult({ abi, functionName, result: altered });
    });
    await chain.client.increaseTime({ seconds: 7_200 });
    await mine(chain, 2);
    for (let pass = 0; pass < 2; pass += 1) await fixture.watch().catch(() => undefined);
    expect(await fixture.statesOf(ids)).toEqual(["ended", large]);
  },
);

const GARBLED = [{ topics: "zz" }];
const PRUNED = new RpcRefusal({ code: -32_000, message: "pruned history unavailable" });

test.each([
  ["small", "ends", "garbles logs", { amount: 1n, state: "ended", logs: GARBLED }],
  ["small", "ends", "has deleted logs", { amount: 1n, state: "ended", logs: PRUNED }],
  ["large", "does not end", "garbles logs", { amount: 2n, state: "ready", logs: GARBLED }],
  ["large", "does not end", "has deleted logs", { amount: 2n, state: "ready", logs: PRUNED }],
])(
  "a %s transfer whose authorization was used for something else %s while one endpoint %s",
  async (_size, _ends, _what, { amount, state, logs }) => {
    const chain = await startChain();
    const proxies = [await startAlteringProxy({ target: chain.url }), await startAlteringProxy({ target: chain.url })];
    const plain = await makeTransfersFixture(chain);
    const assets = plain.evm.network.assets.map((asset) => ({ ...asset, agreementThreshold: "2" }));
    const fixture = await makeTransfersFixture(chain, { rpcUrls: proxies.map(({ url }) => url), change: { assets } });
    const { timestamp } = await chain.client.getBlock();
    const { id, call } = await fixture.sign(await fundBuyer(chain), amount, { validBefore: Number(timestamp) + 3_600 });
    await relayByThirdParty(chain, call);
    // The second endpoint shows no movement of the authorizations.
    for (const [index, proxy] of proxies.entries())
      proxy.alter((method, params, result) => {
        if (method !== "eth_getLogs") return result;
        return index === 0 && asksFor(AUTHORIZATION_USED_TOPIC, params) ? logs : [];
      });
    await chain.client.increaseTime({ seconds: 7_200 });
    await mine(chain, 2);
    for (let pass = 0; pass < 3; pass += 1) await fixture.watch().catch(() => undefined);
    expect(await fixture.statesOf([id])).toEqual([state]);
  },
);

test.each<[string, (result: object) => unknown]>([
  ["malformed", (result) => ({ ...result, gasUsed: "zz" })],
  ["without a list of logs", (result) => ({ ...result, logs: {} })],
  ["refused", () => new RpcRefusal({ code: -32_000, message: "transaction indexing is in progress" })],
])(
  "a movement that the first reading lacks is recorded although the second endpoint's receipt is %s",
  async (_what, spoil) => {
    const chain = await startChain();
    const proxies = await Promise.all([1, 2, 3].map(() => startAlteringProxy({ target: chain.url })));
    const [first, liar] = proxies;
    const rpcUrls = proxies.map(({ url }) => url);
    const fixture = await makeTransfersFixture(chain, { rpcUrls, change: { finality: { blocks: 2 } } });
    await fixture.watch();
    const hash = await sendUsdc(chain, await fundBuyer(chain), fixture.evm.treasury, 7n);
    const { id } = await fixture.sign(await fundBuyer(chain));
    first?.alter((method, params, result) =>
      method === "eth_getLogs" && (params[0] as Topics).blockHash !== undefined
        ? (result as { transactionHash: string }[]).filter((log) => log.transactionHash !== hash)
        : result,
    );
    liar?.alter((method, [of], result) =>
      method === "eth_getTransactionReceipt" && of === hash ? spoil(result as object) : result,
    );
    await fixture.relay();
    await waitUntilMined(chain);
    await mine(chain, 2);
    await fixture.watch();
    expect(await fixture.statesOf([id])).toEqual(["confirmed"]);
  },
);

test.each([
  ["the height of the newest block", "eth_blockNumber"],
  ["the nonces of accounts", "eth_getTransactionCount"],
])(
  "a transaction that a node dropped is sent again and confirmed while one of two endpoints garbles %s",
  async (_what, of) => {
    const chain = await startChain();
    const liar = await startAlteringProxy({ target: chain.url });
    const fixture = await makeTransfersFixture(chain, { rpcUrls: [liar.url, chain.url], change: { blockMs: 1_000 } });
    fixture.clock.stop();
    const { id } = await fixture.sign(await fundBuyer(chain));
    await chain.client.setAutomine(false);
    await fixture.relay();
    const [sent] = await fixture.transactions();
    await chain.client.dropTransaction({ hash: (sent?.hash ?? "0x") as Hex });
    liar.alter((method, _params, result) => (method === of ? "zz" : result));
    for (let pass = 0; pass < 3; pass += 1) {
      await mine(chain);
      await fixture.watch().catch(() => undefined);
      fixture.clock.advance(20_000);
    }
    expect(await fixture.statesOf([id])).toEqual(["confirmed"]);
  },
);

test("a chain is read again after a restore while one of two endpoints garbles the height of the newest block", async () => {
  const chain = await startChain();
  const liar = await startAlteringProxy({ target: chain.url });
  const fixture = await makeTransfersFixture(chain, { rpcUrls: [liar.url, chain.url] });
  await fixture.watch();
  await fixture.db.updateTable("chain_cursor").set({ epoch: "before the restore" }).execute();
  expect(await listUnreadChains(fixture.db)).toEqual([chain.id]);
  liar.alter((method, _params, result) => (method === "eth_blockNumber" ? "zz" : result));
  await mine(chain);
  for (let pass = 0; pass < 2; pass += 1) await fixture.watch().catch(() => undefined);
  expect(await listUnreadChains(fixture.db)).toEqual([]);
});

test("a nonce that an endpoint garbles at a block is not taken for one that a foreign transaction has used", async () => {
  const chain = await startChain();
  const proxy = await startAlteringProxy({ target: chain.url });
  const fixture = await makeTransfersFixture(chain, { rpcUrls: [proxy.url], change: { blockMs: 1_000 } });
  fixture.clock.stop();
  const { id } = await fixture.sign(await fundBuyer(chain));
  await chain.client.setAutomine(false);
  await fixture.relay();
  await fixture.watch();
  // The endpoint counts the transaction, and shows neither its block nor its receipt yet.
  const { number } = await fixture.cursor();
  proxy.alter((method, [, block], result) => {
    if (method === "eth_blockNumber") return numberToHex(number);
    if (method === "eth_getTransactionReceipt") return null;
    return method === "eth_getTransactionCount" && block !== "latest" ? "zz" : result;
  });
  await mine(chain);
  fixture.clock.advance(20_000);
  for (let pass = 0; pass < 2; pass += 1) await fixture.watch().catch(() => undefined);
  expect(await fixture.statesOf([id])).toEqual(["assigned"]);
  proxy.alter(undefined);
  await fixture.watch();
  expect(await fixture.statesOf([id])).toEqual(["confirmed"]);
});

test("a lane skips the nonces that another program has used although one of two endpoints garbles nonces", async () => {
  const chain = await startChain();
  const liar = await startAlteringProxy({ target: chain.url });
  const fixture = await makeTransfersFixture(chain, { rpcUrls: [liar.url, chain.url] });
  const lane = privateKeyToAccount(chain.keys.lanes[0]?.privateKey as Hex);
  for (let count = 0; count < 3; count += 1) {
    await chain.client.sendTransaction({ account: lane, to: lane.address, value: 1n });
    await mine(chain);
  }
  liar.alter((method, _params, result) => (method === "eth_getTransactionCount" ? "zz" : result));
  await fixture.sign(await fundBuyer(chain));
  await fixture.relay();
  expect((await fixture.lane()).next_nonce).toBe(3);
});

test("a payment is sent on a chain without EIP-1559 while one of two endpoints garbles the gas price", async () => {
  const chain = await startChain();
  const liar = await startAlteringProxy({ target: chain.url });
  const rpcUrls = [liar.url, chain.url];
  const fixture = await makeTransfersFixture(chain, { rpcUrls, change: { feeModel: "legacy" } });
  liar.alter((method, _params, result) => (method === "eth_gasPrice" ? "zz" : result));
  const { id } = await fixture.sign(await fundBuyer(chain));
  await fixture.relay();
  await fixture.watch();
  expect(await fixture.statesOf([id])).toEqual(["confirmed"]);
});

test.each([
  ["nothing", null],
  ["a text that is no number", "zz"],
  ["an error", new RpcRefusal({ code: -32_000, message: "the node is starting" })],
])("a first endpoint that returns %s for its chain id is skipped, and no payment fails", async (_what, answer) => {
  const chain = await startChain();
  const odd = await startAlteringProxy({ target: chain.url });
  odd.alter((method, _params, result) => (method === "eth_chainId" ? answer : result));
  const fixture = await makeMerchantFixture(chain, { rpcUrls: [odd.url, chain.url] });
  const paymentId = await fixture.pay(await fundBuyer(chain));
  expect(await fixture.status(paymentId)).toMatchObject({ state: "succeeded" });
});
