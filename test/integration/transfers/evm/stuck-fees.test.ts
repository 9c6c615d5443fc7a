import { parseGwei } from "viem";
import { expect, test } from "vitest";
import { fundBuyer, mine, startChain, type TestChain, transfersTo } from "../../../support/evm-chain.ts";
import { makeMerchantFixture } from "../../../support/merchant-fixture.ts";

const CEILING = parseGwei("200");
const nextBaseFee = (chain: TestChain, gwei: string) =>
  chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei(gwei) });

test.each(["50", "150"])(
  "a payment whose bytes no node accepts because the base fee rose to %s gwei succeeds below the ceiling",
  async (gwei) => {
    const chain = await startChain();
    const fixture = await makeMerchantFixture(chain);
    const paymentId = await fixture.create();
    await fixture.verify(await fixture.attempt(paymentId, await fundBuyer(chain)));
    await fixture.watch();
    // The watcher has not read the block in which the base fee rises.
    await nextBaseFee(chain, gwei);
    await fixture.relay();
    const transactions = () => fixture.db.selectFrom("transaction").selectAll().orderBy("replacement").execute();
    expect((await transactions()).map((row) => row.state)).toEqual(["broadcast"]);
    expect(fixture.lines.join("")).toContain('"outcome":"underpriced"');

    await mine(chain);
    await nextBaseFee(chain, gwei);
    fixture.clock.advance(2_000);
    await fixture.watch();
    await fixture.watch();
    const [first, second, ...more] = await transactions();
    expect(more).toEqual([]);
    expect([first?.state, second?.state]).toEqual(["replaced", "final"]);
    expect(second?.nonce).toBe(first?.nonce);
    expect(second?.max_fee_per_gas).toBeGreaterThan(parseGwei(gwei));
    expect(second?.max_fee_per_gas).toBeLessThanOrEqual(CEILING);
    expect((await fixture.status(paymentId)).state).toBe("succeeded");
    expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
  },
);

test("a payment whose bytes no node accepts is not replaced at a higher fee unless the base fee requires it", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const paymentId = await fixture.create();
  await fixture.verify(await fixture.attempt(paymentId, await fundBuyer(chain)));
  await fixture.watch();
  await nextBaseFee(chain, "50");
  await fixture.relay();
  // The base fee falls again before the watcher runs.
  await nextBaseFee(chain, "0.000000001");
  await mine(chain);
  await nextBaseFee(chain, "0.000000001");
  fixture.clock.advance(2_000);
  await fixture.watch();
  await fixture.watch();
  expect((await fixture.status(paymentId)).state).toBe("succeeded");
  const states = await fixture.db.selectFrom("transaction").select(["replacement", "state"]).execute();
  expect(states).toEqual([{ replacement: 0, state: "final" }]);
});
