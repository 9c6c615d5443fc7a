import { expect, test } from "vitest";
import { fundBuyer, sendUsdc, startChain } from "../../../support/evm-chain.ts";
import { makeTransfersFixture } from "../../../support/transfers-fixture.ts";

test("a transfer with two thousand retries is held once more, and the chain's other transfers are relayed", async () => {
  const chain = await startChain();
  const fixture = await makeTransfersFixture(chain);
  const poor = await fundBuyer(chain, 999_999n);
  const held = await fixture.sign(poor);
  const fine = await fixture.sign(await fundBuyer(chain));
  await fixture.db.updateTable("transfer").set({ retries: 2_000 }).where("id", "=", held.id).execute();

  await fixture.relay();
  await fixture.watch();
  expect(await fixture.statesOf([held.id, fine.id])).toEqual(["ready", "confirmed"]);
  const [row] = await fixture.rowsOf([held.id]);
  const inMs = (row?.hold_until?.getTime() ?? 0) - fixture.deps.now().getTime();
  expect(row?.retries).toBe(2_001);
  expect(row?.due_at).toEqual(row?.hold_until);
  expect(inMs).toBeGreaterThan(30_000);
  expect(inMs).toBeLessThanOrEqual(60_000);

  // It is relayed once it can succeed, a minute later at most.
  await sendUsdc(chain, await fundBuyer(chain), poor.address, 1n);
  fixture.clock.advance(60_000);
  await fixture.relay();
  await fixture.watch();
  expect(await fixture.statesOf([held.id])).toEqual(["confirmed"]);
});

test("a transfer that left no trace two thousand times is unassigned once more", async () => {
  const chain = await startChain();
  const fixture = await makeTransfersFixture(chain);
  const buyer = await fundBuyer(chain, 1_000_000n);
  const one = await fixture.sign(buyer);
  await chain.client.setBalance({ address: buyer.address, value: 10n ** 18n });
  await chain.client.setAutomine(false);
  await fixture.relay();
  await fixture.db.updateTable("transfer").set({ retries: 2_000 }).execute();
  // The buyer's own transaction pays more, lands first and takes the money away.
  await chain.client.sendTransaction({
    account: buyer,
    to: chain.contracts.token,
    data: `0xa9059cbb${"ab".repeat(20).padStart(64, "0")}${1_000_000n.toString(16).padStart(64, "0")}`,
    maxPriorityFeePerGas: 50n * 10n ** 9n,
    maxFeePerGas: 150n * 10n ** 9n,
    gas: 100_000n,
  });
  await chain.client.mine({ blocks: 1 });
  await chain.client.setAutomine(true);
  await fixture.watch();
  expect(await fixture.rowsOf([one.id])).toMatchObject([{ state: "ready", alone: true, retries: 2_001 }]);
  const other = await fixture.sign(await fundBuyer(chain));
  await fixture.relay();
  await fixture.watch();
  expect(await fixture.statesOf([one.id, other.id])).toEqual(["ready", "confirmed"]);
});
