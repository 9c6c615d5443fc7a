import { parseGwei } from "viem";
import { expect, test } from "vitest";
import { startAlteringProxy } from "../../../support/altering-proxy.ts";
import { fundBuyers, mine, startChain, transfersTo } from "../../../support/evm-chain.ts";
import { makeTransfersFixture } from "../../../support/transfers-fixture.ts";

const BLOCK_MS = 2_000;
const CEILING = parseGwei("200");

test("a lane replaces every transaction within two blocks after the base fee rises fifty times over, below the ceiling", async () => {
  const chain = await startChain();
  const fixture = await makeTransfersFixture(chain, { change: { blockMs: BLOCK_MS, batchGas: 200_000 } });
  const nextBaseFee = (gwei: string) => chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei(gwei) });
  const signed = await fixture.signAll(await fundBuyers(chain, 5));
  await nextBaseFee("1");
  await mine(chain);
  await fixture.watch();
  await chain.client.setAutomine(false);
  await fixture.relay();
  expect((await fixture.transactions()).map(({ nonce, state }) => [nonce, state])).toEqual(
    [0, 1, 2, 3, 4].map((nonce) => [nonce, "accepted"]),
  );

  for (let blocks = 0; blocks < 2; blocks += 1) {
    await nextBaseFee("50");
    await mine(chain);
    fixture.clock.advance(BLOCK_MS);
    await fixture.watch();
  }
  const replacements = (await fixture.transactions()).filter(({ replacement }) => replacement === 1);
  expect(replacements.map(({ nonce }) => nonce)).toEqual([0, 1, 2, 3, 4]);
  for (const row of await fixture.transactions()) expect(row.max_fee_per_gas).toBeLessThanOrEqual(CEILING);

  await nextBaseFee("50");
  await mine(chain);
  await fixture.watch();
  expect(new Set(await fixture.statesOf(signed.map(({ id }) => id)))).toEqual(new Set(["confirmed"]));
  expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(5);
  const spent = (await fixture.transactions()).filter(({ state }) => state === "final");
  for (const { gas_price } of spent) expect(gas_price).toBeLessThanOrEqual(CEILING);
});

test("a lane sends, replaces and signs nothing while its endpoint reports a thousand times the base fee", async () => {
  const chain = await startChain();
  const proxy = await startAlteringProxy({ target: chain.url });
  const fixture = await makeTransfersFixture(chain, { rpcUrls: [proxy.url], change: { blockMs: BLOCK_MS } });
  const [first, second] = await fixture.signAll(await fundBuyers(chain, 2));
  await chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei("1") });
  await chain.client.setAutomine(false);
  await mine(chain);
  const reportHighBaseFee = (_method: string, _params: unknown[], result: unknown) =>
    typeof result === "object" && result !== null && "baseFeePerGas" in result
      ? { ...result, baseFeePerGas: `0x${parseGwei("1000").toString(16)}` }
      : result;
  proxy.alter(reportHighBaseFee);
  await fixture.watch();
  for (let pass = 0; pass < 4; pass += 1) {
    await fixture.relay();
    fixture.clock.advance(20_000);
    await fixture.watch();
  }
  expect(await fixture.transactions()).toEqual([]);
  expect(await fixture.statesOf([first?.id ?? "", second?.id ?? ""])).toEqual(["ready", "ready"]);

  proxy.alter(undefined);
  await mine(chain);
  await fixture.watch();
  await fixture.relay();
  await mine(chain);
  await fixture.watch();
  expect(await fixture.statesOf([first?.id ?? "", second?.id ?? ""])).toEqual(["confirmed", "confirmed"]);
});
