import type { Hex } from "viem";
import { expect, test } from "vitest";
import { readFinalBalance } from "../../../../chains/evm/final-balance.ts";
import { readFinalMovements } from "../../../../chains/evm/final-movements.ts";
import { type Alter, RpcRefusal, startAlteringProxy } from "../../../support/altering-proxy.ts";
import { fundBuyer, mine, sendUsdc, startChain } from "../../../support/evm-chain.ts";
import { makeDeps } from "../../../support/test-deps.ts";

const LARGE = 500_000_000n;

const chain = await startChain({ slotsInAnEpoch: 1 });
await mine(chain, 5);
const buyer = await fundBuyer(chain, 20n * LARGE);
await chain.client.setBalance({ address: buyer.address, value: 10n ** 18n });
const pay = async (amount: bigint) => (await sendUsdc(chain, buyer, chain.keys.treasury.address, amount)) as Hex;
const isTag = (method: string, [which]: unknown[]) => method === "eth_getBlockByNumber" && which === "safe";

/** Opens the chain with two endpoints, whose answers can be altered. */
async function openTwo() {
  const [first, second] = [
    await startAlteringProxy({ target: chain.url }),
    await startAlteringProxy({ target: chain.url }),
  ];
  const plain = await makeDeps(chain);
  const assets = plain.evm.network.assets.map((asset) => ({ ...asset, agreementThreshold: String(LARGE) }));
  const change = { assets, finality: "safe" };
  const { evm } = await makeDeps(chain, { rpcUrls: [first.url, second.url], change });
  return { first, second, evm };
}

const old = (await chain.client.request({
  method: "eth_getBlockByNumber",
  params: ["safe", false],
} as never)) as object;
const faults: [string, Alter][] = [
  ["an old final block", (method, params, result) => (isTag(method, params) ? old : result)],
  ["no final block", (method, params, result) => (isTag(method, params) ? null : result)],
  [
    "an error in place of its final block",
    (method, params, result) =>
      isTag(method, params) ? new RpcRefusal({ code: -39_001, message: "safe block not found" }) : result,
  ],
];

const noReceipt: (typeof faults)[number] = [
  "no receipt",
  (method, _params, result) => (method === "eth_getTransactionReceipt" ? null : result),
];

test.each([...faults, noReceipt])(
  "a small deposit is read from the second endpoint while the first one returns %s, and a large one waits",
  async (_what, fault) => {
    const { first, evm } = await openTwo();
    const [small, large] = [await pay(LARGE - 1n), await pay(LARGE)];
    await mine(chain, 20);
    first.alter(fault);
    const read = async () => {
      const found = await readFinalMovements(evm, [small, large]);
      return [small, large].map((hash) => found.get(hash)?.state);
    };
    expect(await read()).toEqual(["final", "not_final"]);
    expect((await readFinalMovements(evm, [small], { agree: "all" })).get(small)?.state).toBe("not_final");
    first.alter(undefined);
    expect(await read()).toEqual(["final", "final"]);
  },
);

test("transactions are read in vain when no endpoint reports a final block", async () => {
  const { first, second, evm } = await openTwo();
  for (const { alter } of [first, second]) alter(faults[1]?.[1]);
  await expect(readFinalMovements(evm, [await pay(1n)])).rejects.toMatchObject({ code: "rpc_behind" });
});

test.each(faults)(
  "the treasury's balance is read from the second endpoint while the first one returns %s",
  async (_what, fault) => {
    const { first, evm } = await openTwo();
    first.alter(fault);
    const read = async () => (await readFinalBalance(evm, { asset: chain.asset, nonce: undefined })).balance;
    await mine(chain, 20);
    const before = await read();
    await pay(1n);
    await mine(chain, 20);
    expect((await read()) - before).toBe(1n);
  },
);
