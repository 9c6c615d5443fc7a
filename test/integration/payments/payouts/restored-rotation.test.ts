import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { newKey } from "../../../../local/networks-document.ts";
import { correctLedger } from "../../../../payments/accounting/corrections.ts";
import { reconcileChain } from "../../../../payments/accounting/reconcile-chain.ts";
import { assignException, bookException, listExceptions } from "../../../../payments/accounting/resolve-exceptions.ts";
import { claimAllDeposits } from "../../../../payments/payouts/claim-all-deposits.ts";
import { fundBuyer, networksFor, sendUsdc, startChain, transfersTo, usdcBalance } from "../../../support/evm-chain.ts";
import { execute } from "../../../support/execute-sql.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { balanceOf, payOut, settlementsOf, work } from "../../../support/restored-database.ts";
import { testActor } from "../../../support/test-actor.ts";
import { copyDatabase } from "../../../support/test-database.ts";
import { startTestSigner } from "../../../support/test-signer.ts";

const UNIT = 1_000_000n;

/** Starts a shop with a signer of its own, whose workers and signer can go over to another treasury and back. */
async function startShop() {
  const chain = await startChain();
  const next = newKey();
  const change = { treasury: { address: next.address, key: { env: "NEXT_TREASURY_KEY" } } };
  const env = { ...chain.keys.env, NEXT_TREASURY_KEY: next.privateKey };
  const signing = await startTestSigner(chain);
  const first = await makeMerchantFixture(chain, { signer: signing.signer, clock: signing.clock });
  /** Restarts the signer and then the workers with the networks file of a treasury. */
  const restart = async (which: "former" | "next", databaseUrl: string): Promise<MerchantFixture> => {
    const file = which === "next" ? { change } : {};
    await signing.reopen(await networksFor(chain, file), env);
    const given = { databaseUrl, clock: signing.clock, signer: signing.signer, merchant: first, ...file };
    return makeMerchantFixture({ ...chain, keys: { ...chain.keys, env } }, given);
  };
  const pay = async (fixture: MerchantFixture, units: bigint) => fixture.pay(await fundBuyer(chain), 100n * units);
  return { chain, next, signing, first, restart, pay };
}

/** Returns the open exceptions by kind and amount, in units. */
const openOf = async ({ deps }: MerchantFixture) =>
  (await listExceptions(deps, 20)).map(({ id, kind, amount }) => ({ id, kind, units: amount / UNIT }));

/** Closes the open exception of an amount, in units: it went to the new treasury, or it is the merchant's. */
async function close(fixture: MerchantFixture, units: bigint, paymentId?: string): Promise<void> {
  const found = (await openOf(fixture)).find((one) => one.units === units);
  const of = { actor: testActor, id: found?.id ?? 0 };
  unwrap(
    paymentId === undefined
      ? await bookException(fixture.deps, { ...of, as: "cold", note: "treasury rotated" })
      : await assignException(fixture.deps, { ...of, paymentId, unnamed: true }),
  );
}

/**
 * Backs up a shop's database, lets it make a payout, take a payment and rotate its treasury, and the new treasury make another payout and
 * take a payment that it pays out. `cursor` is how far the backup has read the chain.
 */
async function loseRotation() {
  const shop = await startShop();
  const { chain, next, signing, first, restart, pay } = shop;
  const { merchantId, destination, databaseUrl } = first;
  const other = await makeMerchantFixture(chain, { signer: signing.signer, clock: signing.clock, databaseUrl });
  await pay(other, 10n);
  await other.db.destroy();
  const [byFormer, byNext, unpaid] = [await pay(first, 1n), await pay(first, 2n), await pay(first, 4n)];
  await first.db.destroy();
  const backup = await copyDatabase(databaseUrl);
  const [cursor] = await execute(backup, "select number from chain_cursor");

  const lost = await restart("former", databaseUrl);
  await lost.watch();
  await lost.settle((await lost.settlementOf(byFormer)).id);
  await work(lost);
  await pay(lost, 8n);
  expect(await claimAllDeposits({ db: lost.db, signer: signing.signer })).toMatchObject({ refused: {} });
  await sendUsdc(chain, privateKeyToAccount(chain.keys.treasury.privateKey), next.address, 24n * UNIT);
  await lost.db.destroy();
  const rotated = await restart("next", databaseUrl);
  await rotated.watch();
  for (const id of [byNext, await pay(rotated, 16n)]) {
    expect(await rotated.settle((await rotated.settlementOf(id)).id)).toEqual(["begun"]);
    await work(rotated);
  }
  await rotated.db.destroy();
  const paid = async () =>
    (await transfersTo(chain, destination)).map(({ args }) => Number((args.value ?? 0n) / UNIT)).sort((a, b) => a - b);
  return { ...shop, backup, cursor: Number(cursor?.["number"]), merchantId, byFormer, byNext, unpaid, paid };
}

test("a database from before a rotation of the treasury is restored by way of the former treasury, and pays everything once", async () => {
  const { chain, next, signing, restart, backup, cursor, merchantId, byFormer, byNext, unpaid, paid } =
    await loseRotation();
  const signed = signing.payouts();

  // First the former treasury's file, while the signer signs only what it has signed before.
  await signing.setLimits({ asset: { perPayout: "0" } });
  const former = await restart("former", backup);
  await former.watch();
  await payOut(former, merchantId);
  expect(await former.settlementOf(byFormer)).toMatchObject({ state: "paid" });
  expect(await former.settle((await former.settlementOf(byNext)).id)).toEqual(["treasury_changed"]);
  expect(await former.settle((await former.settlementOf(unpaid)).id)).toEqual(["limit_payout"]);
  expect((await openOf(former)).map(({ kind, units }) => [kind, units]).sort()).toEqual([
    ["left", -24n],
    ["unknown", 8n],
  ]);
  await close(former, -24n);
  await close(former, 8n, byFormer);
  expect(await balanceOf(former, "treasury", chain.asset)).toBe(0n);
  await former.db.destroy();

  // Then the new treasury's file. Its movements are read from the restored moment on.
  await execute(
    backup,
    `insert into asset_backfill (chain, asset, number, until, since)
      select chain, unnest(assets), ${cursor}, null, now() from chain_cursor where chain = '${chain.id}'
      on conflict (chain, asset) do update set number = excluded.number, until = null`,
    `update chain_cursor set assets = '{}' where chain = '${chain.id}'`,
  );
  const restored = await restart("next", backup);
  const backfills = () => restored.db.selectFrom("asset_backfill").selectAll().execute();
  for (let round = 0; round < 4 && (await backfills()).length > 0; round += 1) await restored.watch();
  expect(await backfills()).toEqual([]);
  await restored.watch();
  const moved = { debit: "treasury", credit: "cold", asset: chain.asset, amount: 24n * UNIT, note: "treasury rotated" };
  unwrap(await correctLedger(restored.deps, { actor: testActor, reference: "ROTATION-1", ...moved }));
  await close(restored, 16n, byFormer);
  await payOut(restored, merchantId);
  expect(await restored.settlementOf(byNext)).toMatchObject({ state: "paid" });
  expect(signing.payouts(), "nothing new was signed").toEqual(signed);
  await signing.setLimits();
  await payOut(restored, merchantId);

  expect(await paid()).toEqual([1, 2, 4, 8, 16]);
  expect((await settlementsOf(restored, merchantId)).map(({ state }) => state)).toEqual(Array(5).fill("paid"));
  expect(await openOf(restored)).toEqual([]);
  expect(await usdcBalance(chain, next.address)).toBe(10n * UNIT);
  const lines = unwrap(await reconcileChain(restored.deps, { chain: chain.id }));
  expect(lines.filter(({ account, difference }) => account === "treasury" && difference !== 0n)).toEqual([]);
  expect(await balanceOf(restored, "in_transit", chain.asset)).toBe(0n);
});

test("a restored database whose workers begin with the new treasury pays nothing twice, and what the former one paid waits", async () => {
  const { restart, backup, merchantId, byFormer, byNext, unpaid, paid } = await loseRotation();
  const restored = await restart("next", backup);
  await restored.watch();
  await payOut(restored, merchantId);
  expect(await paid()).toEqual([1, 2, 4, 16]);
  expect(await restored.settlementOf(byNext)).toMatchObject({ state: "paid" });
  expect(await restored.settlementOf(unpaid)).toMatchObject({ state: "paid" });
  expect(await restored.settle((await restored.settlementOf(byFormer)).id)).toEqual(["treasury_changed"]);
});
