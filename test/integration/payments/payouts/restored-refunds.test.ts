import { sql } from "kysely";
import { expect, test } from "vitest";
import { lockNotBegun } from "../../../../db/queries/settlements.ts";
import { listExceptions } from "../../../../payments/accounting/resolve-exceptions.ts";
import { dispatchRefunds } from "../../../../payments/payouts/dispatch-payouts.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { fundBuyer, startChain, usdcBalance } from "../../../support/evm-chain.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { expectReconciled, payOut, restoreDatabase, work } from "../../../support/restored-database.ts";
import { testActor } from "../../../support/test-actor.ts";
import { startTestSigner } from "../../../support/test-signer.ts";
import { waitFor } from "../../../support/wait-for.ts";

const UNIT = 1_000_000n;

/** Makes a payment of 5 USDC, of which the lost database refunds these amounts, USDC: one of 4 if not given. It has not begun the `unsent` ones. */
async function loseRefunds({ separate = true, values = [4n], unsent = [0n] } = {}) {
  const chain = await startChain();
  const options = separate ? { signer: (await startTestSigner(chain)).signer } : {};
  const first = await makeMerchantFixture(chain, options);
  const { merchantId, destination } = first;
  const buyer = await fundBuyer(chain);
  const paymentId = await first.pay(buyer, 500n);
  const had = await usdcBalance(chain, buyer.address);
  const request = (of: MerchantFixture, value: bigint) => {
    const amount = { unit: `caip19/${chain.asset}`, value: value * UNIT };
    return refundPayment(of.deps, { actor: testActor, paymentId, mode: "live", amount });
  };
  const restored = await restoreDatabase(
    first,
    chain,
    async (lost) => {
      for (const value of values) {
        const { refundId } = unwrap(await request(lost, value));
        if (unsent.includes(value)) continue;
        expect(await lost.refund(refundId)).toEqual(["begun"]);
        await lost.relay();
        await lost.watch();
      }
    },
    options,
  );
  const refunds = () => restored.db.selectFrom("refund").selectAll().orderBy("number").execute();
  return {
    ...{ chain, restored, merchantId, destination, paymentId, refunds },
    request: (value: bigint) => request(restored, value),
    received: async () => ((await usdcBalance(chain, buyer.address)) - had) / UNIT,
    /** Begins, relays and books refunds for some rounds, as the sweep and the workers do. */
    workFor: async (rounds: number) => {
      for (let round = 0; round < rounds; round += 1) {
        await restored.refund(...(await refunds()).map(({ id }) => id));
        await work(restored);
      }
    },
  };
}

test("a refund of which more was sent before a restore counts with what was sent, so that the buyer gets no more than they paid", async () => {
  const made = await loseRefunds();
  const { chain, restored, merchantId, destination, request, refunds, workFor, received } = made;
  unwrap(await request(2n));
  await workFor(3);
  expect(await refunds()).toMatchObject([{ number: 1, amount: 4n * UNIT, state: "paid" }]);
  expect(await request(3n)).toMatchObject({ code: "params_validation" });
  unwrap(await request(1n));
  expect(await request(1n)).toMatchObject({ code: "already_refunded" });
  await workFor(3);
  await payOut(restored, merchantId);
  // The payment is reported with what was deducted from it.
  expect(await restored.db.selectFrom("settlement_deduction").select("amount").orderBy("amount").execute()).toEqual([
    { amount: 1n * UNIT },
    { amount: 4n * UNIT },
  ]);
  // The merchant's balance has paid all of it.
  expect(await received()).toBe(5n);
  expect(await usdcBalance(chain, destination)).toBe(0n);
  expect(await listExceptions(restored.deps, 10)).toEqual([]);
  await expectReconciled(restored, chain);
});

test("a refund that exceeds what an earlier one of its payment has sent before a restore waits, and is withdrawn at the adoption", async () => {
  const { chain, restored, request, refunds, workFor, received } = await loseRefunds({ separate: false });
  unwrap(await request(2n));
  const { refundId: second } = unwrap(await request(1n));
  const { refundId: third } = unwrap(await request(2n));
  const [one] = await refunds();
  expect(await restored.refund(one?.id ?? "", second, third)).toEqual(["begun", ...Array(2).fill("unrecorded_payout")]);
  await workFor(4);
  expect(await refunds()).toMatchObject([
    { number: 1, amount: 4n * UNIT, state: "paid" },
    { id: second, amount: 1n * UNIT, state: "paid" },
    { id: third, amount: 2n * UNIT, state: "withdrawn" },
  ]);
  expect(await received()).toBe(5n);
  expect(await request(1n)).toMatchObject({ code: "already_refunded" });
  await expectReconciled(restored, chain);
});

test("what a lost refund has sent beyond its merchant's balance is an exception, and counts as refunded", async () => {
  const { chain, restored, destination, request, refunds, workFor, received, paymentId, merchantId } =
    await loseRefunds({ separate: false });
  const { refundId } = unwrap(await request(2n));
  expect(await restored.refund(refundId)).toEqual(["begun"]);
  // The merchant is paid out what is left before the chain shows the refund.
  const lost = restored.db.updateTable("observation").where("transfer_id", "is", null);
  await lost.set({ orphaned: true }).execute();
  expect(await restored.settle((await restored.settlementOf(paymentId)).id)).toEqual(["begun"]);
  await lost.set({ orphaned: false }).execute();
  await workFor(3);
  expect(await usdcBalance(chain, destination)).toBe(3n * UNIT);
  expect(await refunds()).toMatchObject([{ number: 1, amount: 4n * UNIT, state: "paid" }]);
  expect(await listExceptions(restored.deps, 10)).toMatchObject([{ kind: "overpaid", amount: -2n * UNIT }]);
  expect(await request(3n)).toMatchObject({ code: "params_validation" });
  await payOut(restored, merchantId);
  expect(await received()).toBe(4n);
  await expectReconciled(restored, chain);
});

test.each([false, true])(
  "a later refund of a payment that was sent too counts with what it has sent, and its remainder is not refunded (separate signer: %s)",
  async (separate) => {
    const made = await loseRefunds({ separate, values: [4n, 1n] });
    const { chain, restored, merchantId, destination, request, refunds, workFor, received } = made;
    const { refundId } = unwrap(await request(2n));
    expect(await restored.refund(refundId)).toEqual(["begun"]);
    unwrap(await request(3n));
    // The first is adopted before the second begins.
    await work(restored);
    expect(await refunds()).toMatchObject([{ amount: 4n * UNIT }, { amount: 3n * UNIT, state: "due" }]);
    await workFor(4);
    await payOut(restored, merchantId);
    expect(await refunds()).toMatchObject([
      { number: 1, amount: 4n * UNIT, state: "paid" },
      { number: 2, amount: 1n * UNIT, state: "paid" },
    ]);
    expect(await received()).toBe(5n);
    expect(await usdcBalance(chain, destination)).toBe(0n);
    expect(await request(1n)).toMatchObject({ code: "already_refunded" });
    expect(await listExceptions(restored.deps, 10)).toEqual([]);
    await expectReconciled(restored, chain);
  },
);

test("a refund that waited for a later one of its payment can begin as soon as that one is adopted", async () => {
  const made = await loseRefunds({ separate: false, values: [1n, 4n], unsent: [1n] });
  const { restored, merchantId, request, received, workFor } = made;
  const { refundId: first } = unwrap(await request(1n));
  const { refundId: second } = unwrap(await request(4n));
  expect(await dispatchRefunds(restored.deps, [second])).toEqual(["begun"]);
  expect(await dispatchRefunds(restored.deps, [first])).toEqual(["unrecorded_payout"]);
  const queue = restored.db.selectFrom("payout_queue").select("blocked_by").where("merchant_id", "=", merchantId);
  expect(await queue.where("kind", "=", "refund").execute()).toEqual([{ blocked_by: "unrecorded_payout" }]);
  await restored.relay();
  expect(await queue.where("kind", "=", "refund").execute()).toEqual([{ blocked_by: null }]);
  expect(await dispatchRefunds(restored.deps, [first])).toEqual(["begun"]);
  await workFor(3);
  expect(await received()).toBe(5n);
});

test("a raise draws on the merchant's balance only what was sent, while a later refund of the payment is yet to be split", async () => {
  const made = await loseRefunds({ separate: false, values: [2n, 2n, 1n] });
  const { chain, restored, merchantId, destination, request, refunds, workFor, received } = made;
  const { refundId: one } = unwrap(await request(1n));
  const { refundId: two } = unwrap(await request(1n));
  expect(await restored.refund(one, two)).toEqual(["begun", "begun"]);
  unwrap(await request(3n));
  await work(restored);
  await workFor(4);
  await payOut(restored, merchantId);
  expect(await refunds()).toMatchObject([2n, 2n, 1n].map((value) => ({ amount: value * UNIT, state: "paid" })));
  expect(await received()).toBe(5n);
  expect(await usdcBalance(chain, destination)).toBe(0n);
  expect(await listExceptions(restored.deps, 10)).toEqual([]);
  await expectReconciled(restored, chain);
});

test("a raise and another refund of the payment that begins meanwhile do not deadlock", async () => {
  const made = await loseRefunds({ separate: false, values: [2n] });
  const { chain, restored, paymentId, request, refunds, workFor, received } = made;
  const { refundId: first } = unwrap(await request(1n));
  expect(await restored.refund(first)).toEqual(["begun"]);
  const { refundId: second } = unwrap(await request(1n));
  const { id: settlement } = await restored.settlementOf(paymentId);
  const waitForLocks = async (count: number) => {
    const read = sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    const isWaiting = async () => (await read.execute(restored.db)).rows.length === count;
    await waitFor(isWaiting, { within: 20_000, what: `${count} statements wait for locks` });
  };
  const { beginning, raising } = await restored.db.transaction().execute(async (db) => {
    await lockNotBegun(db, [settlement]);
    // The second refund is locked and waits for the settlement; the raise has locked the payment and waits for the second refund.
    const beginning = restored.refund(second);
    await waitForLocks(1);
    const raising = restored.relay();
    await waitForLocks(2);
    return { beginning, raising };
  });
  expect(await beginning).toEqual(["begun"]);
  await raising;
  expect(restored.lines.filter((line) => line.includes("cannot be processed"))).toEqual([]);
  expect(await refunds()).toMatchObject([{ amount: 2n * UNIT }, { amount: 1n * UNIT, state: "paying" }]);
  await workFor(4);
  expect(await received()).toBe(3n);
  await expectReconciled(restored, chain);
});

test("a raise withdraws no refund that was sent too, but the one before it that was not", async () => {
  const made = await loseRefunds({ separate: false, values: [2n, 1n, 2n], unsent: [1n] });
  const { chain, restored, merchantId, destination, request, refunds, workFor, received } = made;
  const { refundId } = unwrap(await request(1n));
  unwrap(await request(2n));
  unwrap(await request(2n));
  expect(await restored.refund(refundId)).toEqual(["begun"]);
  await work(restored);
  expect(await refunds()).toMatchObject([{ state: "paid" }, { state: "withdrawn" }, { state: "due" }]);
  await workFor(3);
  await payOut(restored, merchantId);
  expect(await refunds()).toMatchObject([{ state: "paid" }, { state: "withdrawn" }, { state: "paid" }]);
  expect(await received()).toBe(4n);
  expect(await usdcBalance(chain, destination)).toBe(1n * UNIT);
  await expectReconciled(restored, chain);
});
