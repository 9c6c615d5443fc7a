import { parseGwei } from "viem";
import { expect, test } from "vitest";
import { fundBuyer, mine, startChain, type TestChain, transfersTo } from "../../support/chain.ts";
import { makeTill } from "../../support/till.ts";

const CEILING = parseGwei("200");
const nextBaseFee = (chain: TestChain, gwei: string) =>
  chain.client.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei(gwei) });

test.each(["50", "150"])(
  "a payment whose bytes no node accepts because the base fee rose to %s gwei succeeds below the ceiling",
  async (gwei) => {
    const chain = await startChain();
    const till = await makeTill(chain);
    const paymentId = await till.create();
    await till.verify(await till.attempt(paymentId, await fundBuyer(chain)));
    await till.watch();
    // The watcher has not read the block in which the base fee rises.
    await nextBaseFee(chain, gwei);
    await till.relay();
    const transactions = () => till.db.selectFrom("transaction").selectAll().orderBy("replacement").execute();
    expect((await transactions()).map((row) => row.state)).toEqual(["offered"]);
    expect(till.lines.join("")).toContain('"outcome":"underpriced"');

    await mine(chain);
    await nextBaseFee(chain, gwei);
    till.clock.advance(2_000);
    await till.watch();
    await till.watch();
    const [first, second, ...more] = await transactions();
    expect(more).toEqual([]);
    expect([first?.state, second?.state]).toEqual(["replaced", "final"]);
    expect(second?.nonce).toBe(first?.nonce);
    expect(second?.max_fee_per_gas).toBeGreaterThan(parseGwei(gwei));
    expect(second?.max_fee_per_gas).toBeLessThanOrEqual(CEILING);
    expect((await till.status(paymentId)).state).toBe("succeeded");
    expect(await transfersTo(chain, chain.keys.treasury.address)).toHaveLength(1);
  },
);

test("a payment whose bytes no node accepts is not replaced at a higher fee unless the base fee requires it", async () => {
  const chain = await startChain();
  const till = await makeTill(chain);
  const paymentId = await till.create();
  await till.verify(await till.attempt(paymentId, await fundBuyer(chain)));
  await till.watch();
  await nextBaseFee(chain, "50");
  await till.relay();
  // The base fee falls again before the watcher runs.
  await nextBaseFee(chain, "0.000000001");
  await mine(chain);
  await nextBaseFee(chain, "0.000000001");
  till.clock.advance(2_000);
  await till.watch();
  await till.watch();
  expect((await till.status(paymentId)).state).toBe("succeeded");
  const states = await till.db.selectFrom("transaction").select(["replacement", "state"]).execute();
  expect(states).toEqual([{ replacement: 0, state: "final" }]);
});
