import { expect, test } from "vitest";
import { readDatabaseStatus } from "../../../../db/epoch.ts";
import { assignException, listExceptions } from "../../../../payments/accounting/resolve-exceptions.ts";
import { fundBuyer, mine, startChain, usdcBalance } from "../../../support/evm-chain.ts";
import { isCaughtUp } from "../../../support/is-caught-up.ts";
import { makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { expectReconciled, payOut, settlementsOf } from "../../../support/restored-database.ts";
import { testActor } from "../../../support/test-actor.ts";
import { copyDatabase } from "../../../support/test-database.ts";
import { makeEpochMemory } from "../../../support/test-deps.ts";

const UNIT = 1_000_000n;

test("a database restored to before a chain was added finds the money and the payout of that chain, and pays nothing twice", async () => {
  const one = await startChain();
  const added = await startChain({ chainId: 31_400 });
  const memory = makeEpochMemory();
  const first = await makeMerchantFixture(one, { memory });
  const { merchantId, accountId } = first;
  const known = await first.create(300n);
  await first.deps.epoch.tick();
  await first.db.destroy();
  const backup = await copyDatabase(first.databaseUrl);

  const both = { also: [{ chain: one }], merchant: { accountId, merchantId }, assets: [added.asset], memory };
  const lost = await makeMerchantFixture(added, { ...both, databaseUrl: first.databaseUrl });
  unwrap(await lost.addDestination());
  const forgotten = await lost.pay(await fundBuyer(added), 100n);
  await lost.settle((await lost.settlementOf(forgotten)).id);
  await lost.relay();
  await lost.watch();
  expect((await lost.settlementOf(forgotten)).state).toBe("paid");
  await lost.verify(await lost.attempt(known, await fundBuyer(added)));
  await lost.relay();
  await lost.watch();
  expect((await lost.status(known)).state).toBe("succeeded");
  await lost.db.destroy();
  await mine(added, 100);

  await memory.raise(1_000);
  const restored = await makeMerchantFixture(added, { ...both, databaseUrl: backup });
  expect((await readDatabaseStatus(restored.db)).rewoundAt).toBeDefined();
  expect(await isCaughtUp(restored.deps, added.id)).toBe(false);
  unwrap(await restored.addDestination(lost.destination));
  await restored.watch();
  expect(await isCaughtUp(restored.deps, added.id)).toBe(true);
  const exceptions = await listExceptions(restored.deps, 10);
  expect(exceptions.map(({ kind, amount }) => [kind, amount]).toSorted()).toEqual([
    ["left", -UNIT],
    ["unknown", UNIT],
    ["unknown", 3n * UNIT],
  ]);

  // Both deposits are assigned to the merchant, as the drill says.
  const paymentId = await restored.pay(await fundBuyer(added), 200n);
  for (const { id, kind } of exceptions)
    if (kind === "unknown")
      unwrap(await assignException(restored.deps, { actor: testActor, id, paymentId, unnamed: true }));
  await payOut(restored, merchantId);
  expect((await settlementsOf(restored, merchantId)).map(({ state }) => state)).not.toContain("paying");
  // The forgotten payout of 1 is adopted, and of the 6 that are owed, 5 are paid.
  expect(await usdcBalance(added, lost.destination)).toBe(6n * UNIT);
  await expectReconciled(restored, added);
});
