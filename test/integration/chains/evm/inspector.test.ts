import { randomBytes } from "node:crypto";
import { concat, type Hex, pad, toHex } from "viem";
import { expect, test, vi } from "vitest";
import { inspectAndSimulate } from "../../../../chains/evm/inspector.ts";
import { type Call, simulateCalls } from "../../../../chains/evm/multicall.ts";
import { newKey } from "../../../../local/networks-document.ts";
import { fundBuyer, startChain } from "../../../support/evm-chain.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { delegate } from "../../../support/smart-wallets.ts";
import { makeDeps } from "../../../support/test-deps.ts";

const chain = await startChain();
const proxy = await startFaultProxy({ target: chain.url });
const { evm } = await makeDeps(chain, { rpcUrls: [proxy.url] });
const at = { multicall: evm.multicall, from: evm.treasury };
const keys = Array.from({ length: 100 }, () => newKey().address.toLowerCase() as Hex);
const inspect = (accounts: readonly Hex[], calls: readonly Call[]) =>
  inspectAndSimulate(evm.rpc, at, { accounts, calls });
const isSame = async (calls: readonly Call[]) => {
  const found = await inspect(keys, calls);
  expect(found?.kinds).toEqual(keys.map(() => "key"));
  expect(found?.outcomes).toEqual(await simulateCalls(evm.rpc, at, calls));
};

/** Deploys code that returns its call data, or reverts with it. */
async function deployEcho(end: "f3" | "fd"): Promise<Hex> {
  const address = newKey().address.toLowerCase() as Hex;
  await chain.client.setCode({ address, bytecode: `0x366000600037366000${end}` });
  return address;
}
const [echo, revert] = [await deployEcho("f3"), await deployEcho("fd")];
const random = (size: number) => toHex(randomBytes(size));

test("calls have the outcomes of a multicall, whatever contracts return", async () => {
  const zeros = (size: number) => toHex(new Uint8Array(size));
  const data: Hex[] = [
    ...["0x", "0x00", "0xef", zeros(126), zeros(127), zeros(128), zeros(5_000), random(127), random(128)],
    ...[random(3_000), pad("0x01"), concat([random(31), zeros(33), random(1)])],
  ] as Hex[];
  await isSame([echo, revert].flatMap((target) => data.map((each) => ({ target, data: each }))));
  await isSame([{ target: keys[0] as Hex, data: "0x12345678" }]);
  await isSame(Array.from({ length: 300 }, () => ({ target: echo, data: concat(["0x70a08231", pad("0x01")]) })));
});

test("no call is made if an account has code", async () => {
  const delegated = await fundBuyer(chain);
  await delegate(chain, delegated, "Delegate");
  const calls = [{ target: echo, data: "0x01" }] as const;
  for (const [account, kind] of [
    [delegated.address.toLowerCase() as Hex, "delegated"],
    [revert, "contract"],
  ] as const) {
    const found = await inspect([...keys, account], calls);
    expect(found?.kinds).toEqual([...keys.map(() => "key"), kind]);
    expect(found?.outcomes).toBeUndefined();
  }
});

test("calls that are too large for init code are not sent, and an answer that is too large is left out", async () => {
  const large = { target: echo, data: random(24_700) };
  expect(await inspect(keys, [large])).toEqual({ kinds: keys.map(() => "key"), outcomes: undefined });
  const before = proxy.calls["eth_call"] ?? 0;
  expect(await inspect(keys, [large, large])).toBeUndefined();
  expect(proxy.calls["eth_call"] ?? 0).toBe(before);
});

test("an endpoint that refuses the call leaves it to the caller, and is asked again five minutes later", async () => {
  const { evm: other } = await makeDeps(chain, { rpcUrls: [proxy.url] });
  const calls = [{ target: echo, data: "0x01" }] as const;
  const ask = () => inspectAndSimulate(other.rpc, at, { accounts: keys, calls });
  proxy.refuse(true);
  await expect(ask()).rejects.toMatchObject({ code: "rpc_unreachable" });
  proxy.refuse(false);
  for (const error of [
    { code: 3, message: "execution reverted" },
    { code: -32_000, message: "out of gas" },
    { code: -32_000, message: "contract creation is not allowed" },
  ]) {
    proxy.fail(({ method }) => (method === "eth_call" ? error : undefined));
    expect(await ask()).toBeUndefined();
    proxy.fail(undefined);
    if (error.message.startsWith("contract")) break;
    expect((await ask())?.outcomes).toEqual([{ ok: true, data: "0x01" }]);
  }
  const before = proxy.calls["eth_call"] ?? 0;
  expect([await ask(), proxy.calls["eth_call"]]).toEqual([undefined, before]);
  const later = performance.now() + 5 * 60_000;
  const clock = vi.spyOn(performance, "now").mockImplementation(() => later);
  expect((await ask())?.outcomes).toEqual([{ ok: true, data: "0x01" }]);
  clock.mockRestore();
});

/** Packs words as the Inspector does: each after the number of its significant bytes. */
const packAnswer = (...words: readonly number[]): Hex =>
  concat(words.map((word) => (word === 0 ? "0x00" : concat(["0x01", toHex(word, { size: 1 })]))));
// Sizes, success and the call's answer, as ABI: two sizes, and an empty list of outcomes.
const answered = (...sizes: readonly number[]) =>
  packAnswer(96, 1, 96 + 32 + sizes.length * 32, sizes.length, ...sizes, 64, 32, 0);

test.each<[string, unknown, unknown]>([
  ["names keys, and outcomes", answered(0, 0), { kinds: ["key", "key"], outcomes: [] }],
  ["names outcomes although an account has code", answered(0, 99), { kinds: ["key", "contract"], outcomes: undefined }],
  ["has too few sizes", answered(0), undefined],
  ["has no word", "0x", undefined],
  ["ends within a word", answered(0, 0).slice(0, -1), undefined],
  ["is null", null, undefined],
])("an answer that %s is read with care", async (_what, answer, expected) => {
  const rpc = (async () => answer) as unknown as Parameters<typeof inspectAndSimulate>[0];
  expect(await inspectAndSimulate(rpc, at, { accounts: keys.slice(0, 2), calls: [] })).toEqual(expected);
});
