import { expect, test } from "vitest";
import { newSolanaKeys } from "../../../local/solana-entry.ts";
import { claimAllDeposits } from "../../../payments/payouts/claim-all-deposits.ts";
import { parseNetworks } from "../../../runtime/networks/read-networks.ts";
import { rebuildPayouts } from "../../../signer/rebuild.ts";
import { startAlteringProxy } from "../../support/altering-proxy.ts";
import {
  describeSolanaDeployment,
  makeSolanaMerchantFixture,
  type SolanaMerchantFixture,
} from "../../support/solana-merchant-fixture.ts";
import { startSignerFor } from "../../support/test-signer.ts";
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

test("a treasury that replaces another one pays out with nonce accounts of its own, and leaves the former one's markers; a lost store is rebuilt from both histories", async () => {
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
  await fixture.watchUntil(async () => (await markers()).length === 0);
  await fixture.watchUntil(async () => (await fixture.transactions()).every(({ state }) => state === "final"));
  expect((await fixture.transactions()).filter(({ reverted }) => reverted)).toEqual([]);
  const reconciled = await fixture.reconcile();
  expect(reconciled.ok && reconciled.value.filter(({ difference }) => difference !== 0n)).toEqual([]);

  // The signer of the present treasury has lost its store. Its records come from the histories of both.
  const endpoint = await startAlteringProxy({ target: solana.url });
  const rpcUrls = [endpoint.url, solana.url];
  const networks = parseNetworks(await describeSolanaDeployment(solana, replaced, { rpcUrls }));
  const rebuilt = await startSignerFor(networks, replaced.env);
  const named = { former: new Map([[solana.id, [keys.treasury.address]]]) };
  const options = { ...named, from: new Map(), accepted: new Set<string>(), left: new Map() };
  await expect(rebuildPayouts(rebuilt.deps, options)).rejects.toThrow("has no deposits");
  const claimed = await claimAllDeposits({ db: fixture.db, signer: rebuilt.signer });
  expect(claimed).toEqual({ verified: 2, refused: {} });
  // An endpoint that lists all transactions as failed hides none: each is read.
  endpoint.alter((method, _params, result) =>
    method === "getSignaturesForAddress" ? (result as object[]).map((one) => ({ ...one, err: {} })) : result,
  );
  expect(await rebuildPayouts(rebuilt.deps, options)).toEqual({ recorded: 2, unattributed: [], held: [] });
  expect(rebuilt.payouts()).toMatchObject([{ amount: "3000000" }, { amount: "3000000" }]);
});
