import { expect, test } from "vitest";
import { newSolanaKeys } from "../../../local/solana-entry.ts";
import { makeSolanaMerchantFixture, type SolanaMerchantFixture } from "../../support/solana-merchant-fixture.ts";
import { fundSolanaBuyer, makeSolanaKeys, startTestSolana, tokenBalance } from "../../support/test-solana.ts";

const DAY_MS = 86_400_000;
const solana = await startTestSolana();

/** Makes a payment and pays it out. */
async function payAndSettle(fixture: SolanaMerchantFixture): Promise<void> {
  const paymentId = await fixture.pay(await fundSolanaBuyer(solana), 300n);
  const { id } = await fixture.settlementOf(paymentId);
  expect(await fixture.settle(id)).toEqual(["begun"]);
  await fixture.watchUntil(async () => {
    await fixture.submit();
    return (await fixture.settlementOf(paymentId)).state === "paid";
  });
  await fixture.watchUntil(async () => (await fixture.transactions()).every(({ state }) => state === "final"));
}

test("a treasury that replaces another one pays out with nonce accounts of its own, and leaves the former one's markers", async () => {
  const keys = await makeSolanaKeys(solana);
  const former = await makeSolanaMerchantFixture(solana, { keys });
  await payAndSettle(former);
  const { db, databaseUrl, clock, accountId, merchantId, destination } = former;
  await db.destroy();

  const { treasury, env } = newSolanaKeys(1);
  const replaced = { ...keys, treasury, env: { ...keys.env, SOLANA_TREASURY_KEY: env["SOLANA_TREASURY_KEY"] ?? "" } };
  const of = { keys: replaced, accountId, merchantId, destination };
  const fixture = await makeSolanaMerchantFixture(solana, { of, databaseUrl, clock });
  await payAndSettle(fixture);
  expect(await tokenBalance(solana, destination)).toBe(6_000_000n);

  const markers = () => fixture.db.selectFrom("payout_marker").selectAll().execute();
  expect(await markers()).toHaveLength(2);
  clock.advance(41 * DAY_MS);
  await fixture.watchUntil(async () => (await markers()).length === 0, 40_000);
  await fixture.watchUntil(async () => (await fixture.transactions()).every(({ state }) => state === "final"));
  expect((await fixture.transactions()).filter(({ reverted }) => reverted)).toEqual([]);
  const reconciled = await fixture.reconcile();
  expect(reconciled.ok && reconciled.value.filter(({ difference }) => difference !== 0n)).toEqual([]);
});
