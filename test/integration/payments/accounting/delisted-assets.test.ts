import { expect, test } from "vitest";
import { writeAssetUnits } from "../../../../db/queries/asset-units.ts";
import { readBalances, readStatementPage } from "../../../../payments/accounting/read-statements.ts";
import { listPaymentViews } from "../../../../payments/lifecycle/list-payments.ts";
import { findPaymentDetail } from "../../../../payments/lifecycle/read-payment.ts";
import { setFee } from "../../../../payments/merchants/fee-policies.ts";
import { fundBuyer, networksFor, startChain } from "../../../support/evm-chain.ts";
import { makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";
import { makeDeps } from "../../../support/test-deps.ts";

const chain = await startChain();
const usdc = (await networksFor(chain)).chains[0]?.assets[0];

test("a payout, fees, balances and statements have the decimals of an asset that has left the networks file", async () => {
  const fixture = await makeMerchantFixture(chain);
  const { accountId, merchantId, databaseUrl, clock, mode } = fixture;
  await setFee(fixture.deps, { actor: testActor, accountId, merchantId: null, basisPoints: 100, fixedMicros: 0n });
  const paymentId = await fixture.pay(await fundBuyer(chain), 1_000n);
  const { id: settlementId } = await fixture.settlementOf(paymentId);
  await fixture.settle(settlementId);
  await fixture.relay();
  await fixture.watch();
  await fixture.pay(await fundBuyer(chain), 500n);

  const other = { ...usdc, asset: `${chain.id}/erc20:0x${"99".repeat(20)}`, symbol: "OTHER" };
  const startWithoutAsset = async () =>
    (await makeDeps(chain, { databaseUrl, clock, change: { assets: [other] } })).deps;
  const scope = { accountId, mode, limit: 10 } as const;
  const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);
  const period = { from: dayOf(clock.now().getTime() - 86_400_000), until: dayOf(clock.now().getTime()) };
  const expectUnit = async (deps: typeof fixture.deps, unit: { symbol: string; decimals: number | null }) => {
    expect(unwrap(await readBalances(deps, scope)).items).toMatchObject([unit]);
    const { items } = unwrap(await readStatementPage(deps, { ...scope, ...period }));
    expect(items).toMatchObject(Array(5).fill(unit));
  };
  await expectUnit(await startWithoutAsset(), { symbol: chain.asset, decimals: null });

  // As a worker does when it starts.
  await writeAssetUnits(fixture.db, [{ asset: chain.asset, symbol: "USDC", decimals: 6 }]);
  const deps = await startWithoutAsset();
  await expectUnit(deps, { symbol: "USDC", decimals: 6 });
  const of = (value: bigint) => ({ value, display: { assetSymbol: "USDC", decimals: 6 } });
  const merchant = { accountId, merchantId };
  expect(unwrap(await findPaymentDetail(deps, { paymentId, mode, merchant }))).toMatchObject({
    info: { optionAmount: of(10_000_000n) },
    settlement: { amount: of(9_900_000n) },
  });
  const listed = unwrap(await listPaymentViews(deps, { ...scope, sortBy: "date", sortDir: "asc" }));
  expect(listed.items[0]).toMatchObject({
    tokenAmount: of(10_000_000n),
    fees: { total: of(100_000n), fixed: of(0n) },
    settlement: { amount: of(9_900_000n) },
  });
});
