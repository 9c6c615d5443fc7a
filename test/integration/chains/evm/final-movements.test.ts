import { type Hex, numberToHex, pad } from "viem";
import { expect, test } from "vitest";
import { TRANSFER_TOPIC } from "../../../../chains/evm/abi.ts";
import { readFinalMovements } from "../../../../chains/evm/final-movements.ts";
import { newKey } from "../../../../local/networks-document.ts";
import { RpcRefusal, startAlteringProxy } from "../../../support/altering-proxy.ts";
import { fundBuyer, mine, sendUsdc, startChain } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { makeDeps } from "../../../support/test-deps.ts";

const chain = await startChain();
const buyer = await fundBuyer(chain);
await chain.client.setBalance({ address: buyer.address, value: 10n ** 18n });
const pay = async () => (await sendUsdc(chain, buyer, chain.keys.treasury.address, 1_000_000n)) as Hex;

test("a final transaction is read once, and the final height only for a transaction above the last one", async () => {
  const proxy = await startAlteringProxy({ target: chain.url });
  const { evm } = await makeDeps(chain, { rpcUrls: [proxy.url], change: { finality: { blocks: 3 } } });
  const hidden = new Set<unknown>();
  let calls: string[] = [];
  proxy.alter((method, [hash], result) => {
    calls.push(method);
    return hidden.has(hash) ? null : result;
  });
  const read = async (hashes: readonly Hex[]) => {
    calls = [];
    const found = await readFinalMovements(evm, hashes);
    const count = (wanted: string) => calls.filter((method) => method === wanted).length;
    return {
      states: hashes.map((hash) => found.get(hash)?.state),
      heights: count("eth_blockNumber"),
      receipts: count("eth_getTransactionReceipt"),
    };
  };
  const [first, shared, last] = [await pay(), await pay(), await pay()];
  await mine(chain, 2);
  expect(await read([first, shared])).toEqual({ states: ["final", "final"], heights: 1, receipts: 2 });
  expect(await read([shared, last])).toEqual({ states: ["final", "final"], heights: 0, receipts: 1 });
  expect(await read([first, shared, last])).toMatchObject({ heights: 0, receipts: 0 });

  const newer = await pay();
  hidden.add(newer);
  expect((await read([newer, first])).states, "the endpoint does not have it").toEqual(["not_found", "final"]);
  hidden.clear();
  expect((await read([newer])).states, "its block is not final").toEqual(["not_final"]);
  await mine(chain, 2);
  expect(await read([newer])).toEqual({ states: ["final"], heights: 1, receipts: 2 });
});

test("the reading of one treasury is not used for another one", async () => {
  const { evm } = await makeDeps(chain);
  const hash = await pay();
  await mine(chain);
  const first = (await readFinalMovements(evm, [hash])).get(hash);
  expect((await readFinalMovements(evm, [hash])).get(hash)).toBe(first);
  const other = { ...evm, treasury: newKey().address };
  expect((await readFinalMovements(other, [hash])).get(hash)).not.toBe(first);
});

test("a large movement that one endpoint invents is never final, however often it is read", async () => {
  const first = await startAlteringProxy({ target: chain.url });
  const second = await startFaultProxy({ target: chain.url });
  const plain = await makeDeps(chain);
  const assets = plain.evm.network.assets.map((asset) => ({ ...asset, agreementThreshold: "500000000" }));
  const { evm } = await makeDeps(chain, { rpcUrls: [first.url, second.url], change: { assets } });
  const hash = await pay();
  await mine(chain);
  first.alter((method, _params, result) => {
    if (method !== "eth_getTransactionReceipt") return result;
    const receipt = result as { logs: { topics: Hex[]; data: Hex }[] };
    for (const log of receipt.logs) if (log.topics[0] === TRANSFER_TOPIC) log.data = pad(numberToHex(600_000_000n));
    return receipt;
  });
  for (const _time of [1, 2, 3])
    expect((await readFinalMovements(evm, [hash])).get(hash)).toEqual({ state: "not_final" });
  expect(second.calls["eth_getTransactionReceipt"], "the second endpoint was asked once").toBe(1);
});

test.each([
  ["with an error of the call", 200],
  ["by its proxy", 413],
])("a transaction whose receipt the endpoint refuses as too large, %s, is read from its block", async (_by, status) => {
  const proxy = await startAlteringProxy({ target: chain.url });
  const { evm } = await makeDeps(chain, { rpcUrls: [proxy.url], change: { finality: { blocks: 2 } } });
  const { evm: plain } = await makeDeps(chain, { change: { finality: { blocks: 2 } } });
  const hash = await pay();
  proxy.alter((method, _params, result) =>
    method === "eth_getTransactionReceipt"
      ? new RpcRefusal({ code: -32_008, message: "response too large" }, status)
      : result,
  );
  expect((await readFinalMovements(evm, [hash])).get(hash)).toEqual({ state: "not_final" });
  await mine(chain, 2);
  const expected = (await readFinalMovements(plain, [hash])).get(hash);
  expect(expected).toMatchObject({ state: "final", movements: [{ amount: 1_000_000n }] });
  expect((await readFinalMovements(evm, [hash])).get(hash)).toEqual(expected);
  const unknown = newKey().privateKey;
  expect((await readFinalMovements(evm, [unknown])).get(unknown)).toEqual({ state: "not_found" });
});

test.each([
  ["first", [0, 1]],
  ["second", [1, 0]],
])(
  "a large deposit among movements of strangers is final when the %s of two endpoints refuses the receipt as too large",
  async (_which, order) => {
    const small = await startAlteringProxy({ target: chain.url });
    const whole = await startAlteringProxy({ target: chain.url });
    const assets = (await makeDeps(chain)).evm.network.assets.map((asset) => ({ ...asset, agreementThreshold: "1" }));
    const rpcUrls = order.map((index) => [small.url, whole.url][index] ?? "");
    const { evm } = await makeDeps(chain, { rpcUrls, change: { assets } });
    const hash = await pay();
    await mine(chain);
    const isReceipt = (method: string) => method === "eth_getTransactionReceipt";
    small.alter((method, _params, result) =>
      isReceipt(method) ? new RpcRefusal({ code: -32_008, message: "response too large" }) : result,
    );
    // The transaction moved a stranger's money to a stranger as well.
    whole.alter((method, _params, result) => {
      if (!isReceipt(method)) return result;
      const receipt = result as { logs: { topics: Hex[]; logIndex: Hex }[] };
      const [log] = receipt.logs;
      const [to, from] = [pad(newKey().address), pad(newKey().address)];
      const more = { ...log, topics: [TRANSFER_TOPIC, from, to], logIndex: numberToHex(99) };
      return { ...receipt, logs: [...receipt.logs, more] };
    });
    expect((await readFinalMovements(evm, [hash])).get(hash)).toMatchObject({ state: "final" });
  },
);

test.each([
  ["first", 0],
  ["second", 1],
])(
  "a large deposit is final although the %s of three endpoints answers with what cannot be read",
  async (_which, at) => {
    const odd = await startAlteringProxy({ target: chain.url });
    const assets = (await makeDeps(chain)).evm.network.assets.map((asset) => ({ ...asset, agreementThreshold: "1" }));
    const rpcUrls = [chain.url, chain.url].toSpliced(at, 0, odd.url);
    const { evm } = await makeDeps(chain, { rpcUrls, change: { assets } });
    const hash = await pay();
    await mine(chain);
    for (const change of [{ logs: null }, { logs: [null] }, { logs: "none" }, { blockNumber: "zz" }]) {
      odd.alter((method, _params, result) =>
        method === "eth_getTransactionReceipt" ? { ...(result as object), ...change } : result,
      );
      const found = await readFinalMovements(evm, [hash]);
      expect(found.get(hash), JSON.stringify(change)).toMatchObject({
        state: "final",
        movements: [{ amount: 1_000_000n }],
      });
    }
  },
);

test("a small deposit is read from the next endpoint when the first one shows its log in another block than its receipt", async () => {
  const odd = await startAlteringProxy({ target: chain.url });
  const { evm } = await makeDeps(chain, { rpcUrls: [odd.url, chain.url] });
  const hash = await pay();
  await mine(chain);
  odd.alter((method, _params, result) => {
    if (method !== "eth_getTransactionReceipt") return result;
    const receipt = result as { logs: object[] };
    return { ...receipt, logs: receipt.logs.map((log) => ({ ...log, blockNumber: "0x1" })) };
  });
  const { blockNumber } = await chain.client.getTransactionReceipt({ hash });
  expect((await readFinalMovements(evm, [hash])).get(hash)).toMatchObject({
    state: "final",
    movements: [{ blockNumber: Number(blockNumber) }],
  });
});
