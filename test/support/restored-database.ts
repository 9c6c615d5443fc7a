import { expect } from "vitest";
import { listBalances } from "../../db/queries/ledger-balances.ts";
import { checkLedger } from "../../payments/accounting/check-ledger.ts";
import { fundBuyer, type TestChain, usdcBalance } from "./evm-chain.ts";
import { type MerchantFixture, makeMerchantFixture } from "./merchant-fixture.ts";
import { copyDatabase } from "./test-database.ts";
import type { DepsOptions } from "./test-deps.ts";

export const settlementsOf = (fixture: MerchantFixture, merchantId: string) =>
  fixture.db.selectFrom("settlement").selectAll().where("merchant_id", "=", merchantId).orderBy("number").execute();

export const unpaidOf = async (fixture: MerchantFixture, merchantId: string) =>
  (await settlementsOf(fixture, merchantId)).filter(({ state }) => state !== "paid" && state !== "netted");

/** Relays and watches as workers do over time, which also frees lanes whose nonces the lost database used. */
export async function work(fixture: MerchantFixture): Promise<void> {
  await fixture.relay();
  await fixture.watch();
  fixture.clock.advance(5_000);
  await fixture.watch();
}

/** Begins and relays unpaid settlements for eight rounds, as the sweep and the workers do. */
export async function payOut(fixture: MerchantFixture, merchantId: string): Promise<void> {
  for (let round = 0; round < 8; round += 1) {
    const unpaid = await unpaidOf(fixture, merchantId);
    await fixture.settle(...unpaid.map(({ id }) => id));
    await work(fixture);
  }
}

/** Backs up the database, lets a second deployment act on the original, and returns a fixture on the backup. */
export async function restoreDatabase(
  first: MerchantFixture,
  chain: TestChain,
  loseWork: (lost: MerchantFixture) => Promise<void>,
  options: Pick<DepsOptions, "also" | "change" | "memory" | "rpcUrls" | "signer"> = {},
): Promise<MerchantFixture> {
  // Another merchant's money, which a duplicate payout could spend.
  const other = await makeMerchantFixture(chain, { ...options, databaseUrl: first.databaseUrl });
  await other.pay(await fundBuyer(chain), 1_000n);
  await other.db.destroy();
  await first.db.destroy();
  const backup = await copyDatabase(first.databaseUrl);
  const lost = await makeMerchantFixture(chain, { ...options, databaseUrl: first.databaseUrl });
  await lost.watch();
  await loseWork(lost);
  await lost.db.destroy();
  const restored = await makeMerchantFixture(chain, { ...options, databaseUrl: backup });
  await restored.watch();
  return restored;
}

/** Returns the balance of a ledger account, minor units. */
export const balanceOf = async (fixture: MerchantFixture, account: string, asset: string) =>
  (await listBalances(fixture.db, { account, asset }))[0]?.amount ?? 0n;

/** Expects that the ledger agrees with the treasury and with itself, and that nothing is in transit. */
export async function expectReconciled(fixture: MerchantFixture, chain: TestChain): Promise<void> {
  expect(await balanceOf(fixture, "treasury", chain.asset)).toBe(await usdcBalance(chain, chain.keys.treasury.address));
  expect(await balanceOf(fixture, "in_transit", chain.asset)).toBe(0n);
  expect(await checkLedger(fixture.db, { since: undefined })).toEqual([]);
}
