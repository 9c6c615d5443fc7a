import { expect, test } from "vitest";
import { checkLedger } from "../../../../payments/accounting/check-ledger.ts";
import { listExceptions } from "../../../../payments/accounting/resolve-exceptions.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { accumulatePayouts } from "../../../support/accumulate-payouts.ts";
import { fundBuyer, startChain, usdcBalance } from "../../../support/evm-chain.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import {
  balanceOf,
  expectReconciled,
  payOut,
  restoreDatabase,
  settlementsOf,
  unpaidOf,
  work,
} from "../../../support/restored-database.ts";
import { readStatementSince } from "../../../support/statement-sums.ts";
import { testActor } from "../../../support/test-actor.ts";
import { startTestSigner } from "../../../support/test-signer.ts";

const UNIT = 1_000_000n;

/** Returns the sum of what the signer has counted, minor units. */
const countedBy = ({ payouts }: Awaited<ReturnType<typeof startTestSigner>>) =>
  payouts().reduce((sum, { counted }) => sum + BigInt(String(counted)), 0n);

/** Relays and watches for a number of rounds, which also frees lanes whose nonces the lost database used. */
async function workFor(fixture: MerchantFixture, rounds: number): Promise<void> {
  for (let round = 0; round < rounds; round += 1) await work(fixture);
}

/**
 * Restores a backup after a lost payout of 1 USDC. `sent` is the payment that it has paid, and `later` one of 2 USDC that the restored
 * database adds to the same settlement.
 */
async function restoreAfterPayout() {
  const chain = await startChain();
  const signing = await startTestSigner(chain);
  const options = { signer: signing.signer };
  const first = await makeMerchantFixture(chain, options);
  const started = first.deps.now();
  await accumulatePayouts(first, { ms: 600_000 });
  const sent = await first.pay(await fundBuyer(chain), 100n);
  const later = await first.create(200n);
  const { merchantId, destination } = first;
  const restored = await restoreDatabase(
    first,
    chain,
    async (lost) => {
      const [one] = await settlementsOf(lost, merchantId);
      expect(await lost.settle(one?.id ?? "")).toEqual(["begun"]);
      await lost.relay();
    },
    options,
  );
  expect(await usdcBalance(chain, destination)).toBe(1n * UNIT);
  await restored.verify(await restored.attempt(later, await fundBuyer(chain)));
  await workFor(restored, 3);
  expect(await settlementsOf(restored, merchantId)).toMatchObject([{ number: 1, amount: 3n * UNIT }]);
  return { chain, signing, restored, merchantId, destination, sent, later, started };
}
type Restored = Awaited<ReturnType<typeof restoreAfterPayout>>;

/** Expects that the merchant has received both payments, each once, and that the signer has counted no more than that. */
async function expectPaidOut({ chain, signing, restored, merchantId, destination, sent, later }: Restored) {
  expect(await usdcBalance(chain, destination)).toBe(3n * UNIT);
  expect(await settlementsOf(restored, merchantId)).toMatchObject([
    { number: 1, amount: 1n * UNIT, state: "paid" },
    { number: 2, amount: 2n * UNIT, state: "paid" },
  ]);
  // Each payment is reported as paid out with the transaction that paid it out.
  expect([(await restored.settlementOf(sent)).number, (await restored.settlementOf(later)).number]).toEqual([1, 2]);
  expect(countedBy(signing)).toBe(3n * UNIT);
  expect(await listExceptions(restored.deps, 10)).toEqual([]);
  expect(await balanceOf(restored, `payable:${merchantId}`, chain.asset)).toBe(0n);
  await expectReconciled(restored, chain);
}

test("a restored database adopts an accumulated payout that paid less than it owes, and the signer signs the remainder", async () => {
  const made = await restoreAfterPayout();
  const { restored, merchantId } = made;
  expect(await listExceptions(restored.deps, 10)).toMatchObject([{ kind: "left", amount: -1n * UNIT }]);
  await payOut(restored, merchantId);
  await expectPaidOut(made);
  const statement = await readStatementSince({ ...restored, merchantId }, made.started);
  expect(statement).toMatchObject({ settled: 3n * UNIT, closing: 0n });
});

test("two workers that begin the same lost payout split it once", async () => {
  const made = await restoreAfterPayout();
  const { chain, restored, signing, merchantId } = made;
  const [one] = await settlementsOf(restored, merchantId);
  const { databaseUrl, clock, accountId } = restored;
  const merchant = { accountId, merchantId };
  const another = await makeMerchantFixture(chain, { databaseUrl, clock, merchant, signer: signing.signer });
  await another.watch();
  await Promise.all([restored, another, restored].map((worker) => worker.settle(one?.id ?? "")));
  const amounts = (await settlementsOf(restored, merchantId)).map(({ amount }) => amount);
  expect(amounts).toEqual([1n * UNIT, 2n * UNIT]);
  await payOut(restored, merchantId);
  await expectPaidOut(made);
});

test("a worker that ends between the split and the signature leaves a settlement that is paid out later", async () => {
  const made = await restoreAfterPayout();
  const { restored, signing, merchantId } = made;
  const [one] = await settlementsOf(restored, merchantId);
  await signing.stop();
  expect(await restored.settle(one?.id ?? "")).toEqual(["signer_unavailable"]);
  const split = await settlementsOf(restored, merchantId);
  expect(split).toMatchObject([
    { amount: 1n * UNIT, state: "due" },
    { amount: 2n * UNIT, state: "due" },
  ]);
  // The merchant is still owed both parts, and the ledger has nothing to book.
  expect(await balanceOf(restored, `payable:${merchantId}`, made.chain.asset)).toBe(-3n * UNIT);
  expect(await checkLedger(restored.db, { since: undefined })).toEqual([]);
  // The remainder waits for the adoption, because it may be what was paid.
  expect(await restored.settle(split[1]?.id ?? "")).toEqual(["unrecorded_payout"]);
  await signing.start();
  await payOut(restored, merchantId);
  await expectPaidOut(made);
});

/** Starts a signer and a merchant with a payment of 5 USDC. `request` asks for a refund of it. */
async function payFive() {
  const chain = await startChain();
  const signing = await startTestSigner(chain);
  const options = { signer: signing.signer };
  const first = await makeMerchantFixture(chain, options);
  const buyer = await fundBuyer(chain);
  const paymentId = await first.pay(buyer, 500n);
  const request = async (fixture: MerchantFixture, value: bigint) => {
    const amount = { unit: `caip19/${chain.asset}`, value };
    return unwrap(await refundPayment(fixture.deps, { actor: testActor, paymentId, mode: "live", amount })).refundId;
  };
  const before = await usdcBalance(chain, buyer.address);
  const received = async () => (await usdcBalance(chain, buyer.address)) - before;
  return { chain, signing, options, first, paymentId, request, received };
}

const refundsOf = ({ db }: MerchantFixture) => db.selectFrom("refund").selectAll().orderBy("number").execute();

test("a restored database adopts a refund that sent less than requested, and the signer signs the remainder", async () => {
  const { chain, signing, options, first, request, received } = await payFive();
  const { merchantId } = first;
  const restored = await restoreDatabase(
    first,
    chain,
    async (lost) => {
      expect(await lost.refund(await request(lost, 2n * UNIT))).toEqual(["begun"]);
      await lost.relay();
    },
    options,
  );
  // The whole payment, so that the signer has no deposits for more.
  const refundId = await request(restored, 5n * UNIT);
  for (let round = 0; round < 8; round += 1) {
    await restored.refund(...(await refundsOf(restored)).map(({ id }) => id));
    await work(restored);
  }
  expect(await refundsOf(restored)).toMatchObject([
    { id: refundId, number: 1, amount: 2n * UNIT, state: "paid" },
    { number: 2, amount: 3n * UNIT, state: "paid" },
  ]);
  expect(await received()).toBe(5n * UNIT);
  expect(countedBy(signing)).toBe(5n * UNIT);
  expect(await listExceptions(restored.deps, 10)).toEqual([]);
  expect(await unpaidOf(restored, merchantId)).toEqual([]);
  expect(await balanceOf(restored, `payable:${merchantId}`, chain.asset)).toBe(0n);
  await expectReconciled(restored, chain);
});

test("what a lost refund took from a lost payout is not paid out, and is refunded when the refund is requested again", async () => {
  const { chain, signing, options, first, paymentId, request, received } = await payFive();
  const { merchantId, destination } = first;
  const restored = await restoreDatabase(
    first,
    chain,
    async (lost) => {
      expect(await lost.refund(await request(lost, 2n * UNIT))).toEqual(["begun"]);
      const { id } = await lost.settlementOf(paymentId);
      expect(await lost.settle(id)).toEqual(["begun"]);
      await lost.relay();
    },
    options,
  );
  expect([await usdcBalance(chain, destination), await received()]).toEqual([3n * UNIT, 2n * UNIT]);
  await payOut(restored, merchantId);
  expect(await settlementsOf(restored, merchantId)).toMatchObject([
    { number: 1, amount: 3n * UNIT, state: "paid" },
    { number: 2, amount: 2n * UNIT, state: "due" },
  ]);
  // The signer, which knows both payouts, is not asked for the rest.
  expect(signing.lines.some((line) => line.includes("funds_short"))).toBe(false);
  const refundId = await request(restored, 2n * UNIT);
  expect(await restored.refund(refundId)).toEqual(["begun"]);
  await workFor(restored, 3);
  expect(await refundsOf(restored)).toMatchObject([{ number: 1, amount: 2n * UNIT, state: "paid" }]);
  expect([await usdcBalance(chain, destination), await received()]).toEqual([3n * UNIT, 2n * UNIT]);
  expect(await unpaidOf(restored, merchantId)).toEqual([]);
  expect(countedBy(signing)).toBe(5n * UNIT);
  expect(await listExceptions(restored.deps, 10)).toEqual([]);
  await expectReconciled(restored, chain);
});
