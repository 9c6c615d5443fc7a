import { expect, test } from "vitest";
import { listBalances } from "../../../../db/queries/ledger-balances.ts";
import { listDueEvents } from "../../../../db/queries/webhook-deliveries.ts";
import { listPaymentViews } from "../../../../payments/lifecycle/list-payments.ts";
import { findPaymentDetail } from "../../../../payments/lifecycle/read-payment.ts";
import { clearFee, setFee } from "../../../../payments/merchants/fee-policies.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { createEndpoint } from "../../../../payments/webhooks/change-endpoints.ts";
import { readPayloads } from "../../../../payments/webhooks/event-payloads.ts";
import { writeSettledEvents } from "../../../../payments/webhooks/settled-events.ts";
import { fundBuyer, startChain, usdcBalance } from "../../../support/evm-chain.ts";
import { type MerchantFixture, makeMerchantFixture, signOption, unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";

const chain = await startChain();
const fixture = await makeMerchantFixture(chain);
const { accountId, merchantId, deps } = fixture;
const booked = async (account: string, of: MerchantFixture = fixture) =>
  (await listBalances(of.db, { account }))[0]?.amount ?? 0n;
const settle = async (paymentId: string) => {
  await fixture.settle((await fixture.settlementOf(paymentId)).id);
  await fixture.relay();
  await fixture.watch();
};

test("no fee is taken unless a fee policy is set", async () => {
  const paymentId = await fixture.pay(await fundBuyer(chain), 1_000n);
  expect((await fixture.settlementOf(paymentId)).amount).toBe(10_000_000n);
  expect(await booked("fees")).toBe(0n);
  await settle(paymentId);
});

test("a fee is booked separately, the merchant is paid the rest, and lists and webhooks show both", async () => {
  unwrap(
    await createEndpoint(
      { ...deps, validateUrl: () => undefined },
      { actor: testActor, accountId, mode: "live", url: "https://shop.example/hooks" },
    ),
  );
  await setFee(deps, { actor: testActor, accountId, merchantId: null, basisPoints: 150, fixedMicros: 100_000n });
  const before = await usdcBalance(chain, fixture.destination);
  const buyer = await fundBuyer(chain);
  const paymentId = await fixture.pay(buyer, 1_000n);
  expect(await usdcBalance(chain, buyer.address)).toBe(990_000_000n);
  expect(await booked("fees")).toBe(-250_000n);
  expect((await fixture.settlementOf(paymentId)).amount).toBe(9_750_000n);
  await settle(paymentId);
  expect((await usdcBalance(chain, fixture.destination)) - before).toBe(9_750_000n);
  expect(await booked(`payable:${merchantId}`)).toBe(0n);
  expect(await booked("treasury")).toBe(250_000n);

  const query = { accountId, mode: "live", sortBy: "date", sortDir: "desc", limit: 1 } as const;
  expect(unwrap(await listPaymentViews(deps, query)).items[0]).toMatchObject({
    tokenAmount: { value: 10_000_000n },
    fees: { total: { value: 250_000n }, fixed: { value: 100_000n }, basisPoints: 150 },
    settlement: { settled: true, amount: { value: 9_750_000n } },
  });
  const detail = unwrap(
    await findPaymentDetail(deps, { paymentId, mode: "live", merchant: { accountId, merchantId } }),
  );
  expect(detail.settlement?.amount.value).toBe(9_750_000n);

  const [endpoint] = await fixture.db.selectFrom("webhook_endpoint").select("id").execute();
  await writeSettledEvents(deps);
  const events = await listDueEvents(fixture.db, {
    endpointId: endpoint?.id ?? "",
    now: deps.now(),
    without: [],
    limit: 50,
  });
  const own = events.filter((one) => one.payment_id === paymentId);
  const payloads = JSON.parse(JSON.stringify(await readPayloads(deps, own, "full")));
  const dataByType = Object.fromEntries(payloads.map(({ type, data }: { type: string; data: object }) => [type, data]));
  const unit = `caip19/${chain.asset}`;
  const fee = {
    kind: "percent_and_fixed",
    base_amount: { unit, value: "10000000" },
    percent: { numerator: 150, denominator: 10_000 },
    percent_amount: { unit, value: "150000" },
    fixed_amount: { unit, value: "100000" },
    total_amount: { unit, value: "250000" },
  };
  expect(dataByType["payment.processing"].processing).toMatchObject({
    fee,
    settlement_amount: { unit, value: "9750000" },
  });
  expect(dataByType["payment.settled"]).toMatchObject({
    processing: { fee, option_amount: { unit, value: "10000000" } },
    settled: { amount: { unit, value: "9750000" } },
  });
});

test("a merchant's own fee policy replaces its account's, and an option keeps the fee it was created with", async () => {
  await setFee(deps, { actor: testActor, accountId, merchantId, basisPoints: 1_000, fixedMicros: 0n });
  const paymentId = await fixture.create(1_000n);
  const buyer = await fundBuyer(chain);
  const [option] = await fixture.offer(paymentId, buyer);
  if (!option) throw new Error("there is no way to pay");
  expect(option.amount.value).toBe(10_000_000n);
  await setFee(deps, { actor: testActor, accountId, merchantId, basisPoints: 5_000, fixedMicros: 0n });
  const { attemptId } = unwrap(await fixture.confirm(paymentId, option.id, await signOption(option, buyer)));
  await fixture.verify(attemptId ?? "");
  await fixture.relay();
  await fixture.watch();
  expect((await fixture.settlementOf(paymentId)).amount).toBe(9_000_000n);
  await settle(paymentId);
  expect(await clearFee(deps, { actor: testActor, accountId, merchantId })).toBe(true);
  expect(await clearFee(deps, { actor: testActor, accountId, merchantId })).toBe(false);
  const next = await fixture.pay(await fundBuyer(chain), 1_000n);
  expect((await fixture.settlementOf(next)).amount).toBe(9_750_000n);
  await settle(next);
});

test("a refund returns the buyer's full amount, and the merchant bears the fee", async () => {
  const buyer = await fundBuyer(chain);
  const paymentId = await fixture.pay(buyer, 1_000n);
  const { refundId } = unwrap(await refundPayment(deps, { actor: testActor, paymentId, mode: "live" }));
  expect(await fixture.refund(refundId)).toEqual(["balance_short"]);
  await fixture.pay(await fundBuyer(chain), 100n);
  expect(await fixture.refund(refundId)).toEqual(["begun"]);
  await fixture.relay();
  await fixture.watch();
  expect(await usdcBalance(chain, buyer.address)).toBe(1_000_000_000n);
});
