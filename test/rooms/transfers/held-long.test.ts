import { expect, test } from "vitest";
import { makeCarrier } from "../../support/carry.ts";
import { fundBuyer, sendUsdc, startChain } from "../../support/chain.ts";

test("a transfer with two thousand retries is held once more, and the chain's other transfers are relayed", async () => {
  const chain = await startChain();
  const carrier = await makeCarrier(chain);
  const poor = await fundBuyer(chain, 999_999n);
  const held = await carrier.sign(poor);
  const fine = await carrier.sign(await fundBuyer(chain));
  await carrier.db.updateTable("transfer").set({ troubles: 2_000 }).where("id", "=", held.id).execute();

  await carrier.relay();
  await carrier.watch();
  expect(await carrier.statesOf([held.id, fine.id])).toEqual(["ready", "confirmed"]);
  const [row] = await carrier.rowsOf([held.id]);
  const inMs = (row?.hold_until?.getTime() ?? 0) - carrier.deps.now().getTime();
  expect(row?.troubles).toBe(2_001);
  expect(row?.due_at).toEqual(row?.hold_until);
  expect(inMs).toBeGreaterThan(30_000);
  expect(inMs).toBeLessThanOrEqual(60_000);

  // It is relayed once it can succeed, a minute later at most.
  await sendUsdc(chain, await fundBuyer(chain), poor.address, 1n);
  carrier.clock.advance(60_000);
  await carrier.relay();
  await carrier.watch();
  expect(await carrier.statesOf([held.id])).toEqual(["confirmed"]);
});

test("a transfer that left no trace two thousand times is unassigned once more", async () => {
  const chain = await startChain();
  const carrier = await makeCarrier(chain);
  const buyer = await fundBuyer(chain, 1_000_000n);
  const one = await carrier.sign(buyer);
  await chain.client.setBalance({ address: buyer.address, value: 10n ** 18n });
  await chain.client.setAutomine(false);
  await carrier.relay();
  await carrier.db.updateTable("transfer").set({ troubles: 2_000 }).execute();
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
  await carrier.watch();
  expect(await carrier.rowsOf([one.id])).toMatchObject([{ state: "ready", alone: true, troubles: 2_001 }]);
  const other = await carrier.sign(await fundBuyer(chain));
  await carrier.relay();
  await carrier.watch();
  expect(await carrier.statesOf([one.id, other.id])).toEqual(["ready", "confirmed"]);
});
