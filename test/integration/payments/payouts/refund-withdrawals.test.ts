import { sql } from "kysely";
import { describe, expect, test } from "vitest";
import { deriveNonce, refundKey } from "../../../../chains/natural-key.ts";
import { moveRows } from "../../../../db/moves.ts";
import { listRefundViews } from "../../../../payments/payouts/find-refunds.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { withdrawRefund } from "../../../../payments/payouts/withdraw-refunds.ts";
import { fundBuyer, fundBuyers, sendUsdc, startChain, usdcBalance } from "../../../support/evm-chain.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { plantRefundState } from "../../../support/plant-state.ts";
import { testActor } from "../../../support/test-actor.ts";
import { waitFor } from "../../../support/wait-for.ts";

const chain = await startChain();
const fixture = await makeMerchantFixture(chain);
const UNIT = 1_000_000n;

const requestRefund = async (of: MerchantFixture, paymentId: string, cents?: bigint) => {
  const amount = cents === undefined ? undefined : { unit: "iso4217/USD", value: cents };
  return unwrap(await refundPayment(of.deps, { actor: testActor, paymentId, mode: of.mode, amount })).refundId;
};
const withdraw = (of: MerchantFixture, refundId: string) => withdrawRefund(of.deps, { actor: testActor, refundId });
const stateOf = async (of: MerchantFixture, id: string) =>
  (await of.db.selectFrom("refund").select("state").where("id", "=", id).executeTakeFirstOrThrow()).state;
const movesOf = async (of: MerchantFixture, id: string) =>
  (await of.db.selectFrom("event").select("to_state").where("subject", "=", id).orderBy("id").execute()).map(
    ({ to_state: to }) => to,
  );
async function settle(of: MerchantFixture, paymentId: string) {
  const outcome = await of.settle((await of.settlementOf(paymentId)).id);
  await of.relay();
  await of.watch();
  return outcome;
}

describe("refund withdrawals", () => {
  test("a withdrawn refund is not sent, frees its amount for another refund and unblocks the payouts behind it", async () => {
    const own = await makeMerchantFixture(chain, { databaseUrl: fixture.databaseUrl });
    const [buyer, next] = await fundBuyers(chain, 2);
    if (!buyer || !next) throw new Error("no buyers");
    const paid = await own.pay(buyer, 300n);
    await settle(own, paid);
    const refundId = await requestRefund(own, paid);
    expect(await own.refund(refundId)).toEqual(["balance_short"]);
    const small = await own.pay(next, 100n);
    expect(await settle(own, small)).toEqual(["refund_pending"]);
    const listWaiting = async () =>
      unwrap(
        await listRefundViews(own.deps, { merchantIds: [own.merchantId], statuses: ["pending", "held"], limit: 10 }),
      ).items;
    expect(await listWaiting()).toMatchObject([
      { refundId, paymentId: paid, status: "pending", amount: 3n * UNIT, txId: null },
    ]);
    const block = { blocked_by: "refund_pending", blocked_at: new Date(), due_at: new Date(Date.now() + 600_000) };
    await own.db.updateTable("payout_queue").set(block).where("merchant_id", "=", own.merchantId).execute();

    expect(await withdraw(own, refundId)).toMatchObject({ ok: true, value: { refundId, paymentId: paid } });
    expect(await withdraw(own, refundId)).toMatchObject({ ok: true });
    expect(await movesOf(own, refundId)).toEqual(["due", "withdrawn"]);
    expect(await listWaiting()).toEqual([]);
    const queues = await own.db
      .selectFrom("payout_queue")
      .select(["kind", "blocked_by"])
      .where("merchant_id", "=", own.merchantId)
      .orderBy("kind")
      .execute();
    expect(queues).toEqual([
      { kind: "refund", blocked_by: null },
      { kind: "settlement", blocked_by: null },
    ]);
    expect(await own.refund(refundId)).toEqual(["begun"]);
    expect(await settle(own, small)).toEqual(["begun"]);
    expect(await usdcBalance(chain, own.destination)).toBe(4n * UNIT);
    expect(await usdcBalance(chain, buyer.address)).toBe(997n * UNIT);

    const secondRefundId = await requestRefund(own, paid, 100n);
    const numbers = await own.db
      .selectFrom("refund")
      .select("number")
      .where("payment_id", "=", paid)
      .orderBy("number")
      .execute();
    expect(numbers).toEqual([{ number: 1 }, { number: 2 }]);
    const listed = unwrap(await listRefundViews(own.deps, { paymentId: paid, limit: 10 })).items;
    expect(listed).toMatchObject([
      { refundId: secondRefundId, status: "pending", reason: null, amount: UNIT },
      { refundId, status: "failed", reason: "withdrawn", amount: 3n * UNIT },
    ]);
  });

  test("a refund that is held because of its screened receiver can be withdrawn", async () => {
    const paymentId = await fixture.pay(await fundBuyer(chain));
    const refundId = await requestRefund(fixture, paymentId);
    await fixture.db.updateTable("refund").set({ state: "held", due_at: null }).where("id", "=", refundId).execute();
    expect(await withdraw(fixture, refundId)).toMatchObject({ ok: true });
    expect(await stateOf(fixture, refundId)).toBe("withdrawn");
  });

  test("a refund that races its own withdrawal is either sent or withdrawn, never both", async () => {
    const own = await makeMerchantFixture(chain, { databaseUrl: fixture.databaseUrl });
    const other = await makeMerchantFixture(chain, { databaseUrl: fixture.databaseUrl, clock: fixture.clock });
    await other.watch();
    const buyers = await fundBuyers(chain, 8);
    const refunds: { refundId: string; buyer: (typeof buyers)[number] }[] = [];
    for (const buyer of buyers) refunds.push({ refundId: await requestRefund(own, await own.pay(buyer)), buyer });
    const withdrawn = await Promise.all(
      refunds.map(async ({ refundId }, index) => {
        const both = [() => other.refund(refundId), () => withdraw(own, refundId)];
        // In every other pair the refund begins first.
        const [first, second] = index % 2 === 0 ? both : both.toReversed();
        const ends = await Promise.all([first?.(), second?.()]);
        return ends.some((end) => typeof end === "object" && "ok" in end && end.ok);
      }),
    );
    await own.relay();
    await own.watch();
    for (const [index, { refundId, buyer }] of refunds.entries()) {
      const transfers = await own.db.selectFrom("transfer").select("id").where("refund_id", "=", refundId).execute();
      const back = withdrawn[index] ? 999n * UNIT : 1_000n * UNIT;
      expect([await stateOf(own, refundId), transfers.length, await usdcBalance(chain, buyer.address)]).toEqual(
        withdrawn[index] ? ["withdrawn", 0, back] : ["paid", 1, back],
      );
    }
    const { rows } = await sql<{ owed: bigint; settling: bigint }>`
      select b.amount as owed, coalesce((select sum(amount) from settlement s
        where s.merchant_id = b.merchant_id and s.asset = b.asset and s.state in ('due', 'accumulating')), 0) as settling
      from merchant_balance b where b.merchant_id = ${own.merchantId}`.execute(own.db);
    for (const { owed, settling } of rows) expect(settling).toBe(owed);
  });

  test("a withdrawal that waits for a beginning refund is refused once the refund has begun", async () => {
    const refundId = await requestRefund(fixture, await fixture.pay(await fundBuyer(chain)));
    const isBlocked = async () => {
      const { rows } = await sql`select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`.execute(fixture.db);
      return rows.length > 0;
    };
    const { promise, resolve } = Promise.withResolvers<{ withdrawal: ReturnType<typeof withdraw> }>();
    await fixture.db.transaction().execute(async (db) => {
      const at = fixture.clock.now();
      await moveRows(db, "refund", { ids: [refundId], from: "due", to: "paying", at, set: { due_at: null } });
      resolve({ withdrawal: withdraw(fixture, refundId) });
      await waitFor(isBlocked, { within: 30_000, what: "the withdrawal to wait for the beginning" });
    });
    const { withdrawal } = await promise;
    expect(await withdrawal).toMatchObject({ code: "invalid_state", message: "the refund is processing" });
    expect(await stateOf(fixture, refundId)).toBe("paying");
  });

  test("a begun or unknown refund cannot be withdrawn", async () => {
    const paymentId = await fixture.pay(await fundBuyer(chain));
    const refundId = await requestRefund(fixture, paymentId);
    await fixture.refund(refundId);
    expect(await withdraw(fixture, refundId)).toMatchObject({
      code: "invalid_state",
      message: "the refund is processing",
    });
    expect(await withdraw(fixture, "rfnd_0")).toMatchObject({ code: "refund_not_found" });
  });

  test("a refund cannot be withdrawn while a restored database reads the chain again, nor when the chain shows that it was sent", async () => {
    const own = await makeMerchantFixture(chain);
    const paymentId = await own.pay(await fundBuyer(chain));
    const refundId = await requestRefund(own, paymentId);
    await own.refund(refundId);
    await own.relay();
    await own.watch();
    // Simulates a backup from before the refund began.
    const transfer = await own.db
      .selectFrom("transfer")
      .selectAll()
      .where("refund_id", "=", refundId)
      .executeTakeFirstOrThrow();
    await sql`update observation set transfer_id = null where transfer_id = ${transfer.id}`.execute(own.db);
    await plantRefundState(own.db, refundId, "due");
    await own.db.updateTable("chain_cursor").set({ epoch_height: 1_000_000 }).where("chain", "=", chain.id).execute();
    expect(await withdraw(own, refundId)).toMatchObject({
      code: "invalid_state",
      message: "the chain is being reread after a restore: try again later",
    });
    await own.db.updateTable("chain_cursor").set({ epoch_height: null }).where("chain", "=", chain.id).execute();
    expect(await withdraw(own, refundId)).toMatchObject({
      code: "invalid_state",
      message: "the chain shows that the refund was sent",
    });
    expect(await stateOf(own, refundId)).toBe("due");
  });

  test("a refund can be withdrawn although a stranger's deposit carries its nonce, if the treasury's address is known", async () => {
    const own = await makeMerchantFixture(chain);
    const [buyer, stranger] = await fundBuyers(chain, 2);
    if (!buyer || !stranger) throw new Error("no buyers");
    const paymentId = await own.pay(buyer);
    const refundId = await requestRefund(own, paymentId);
    await sendUsdc(chain, stranger, chain.keys.treasury.address, 7n);
    await own.watch();
    const { deployment } = own.deps.networks;
    const nonce = deriveNonce(deployment, refundKey({ merchantId: own.merchantId, paymentId, number: 1 }));
    const { numUpdatedRows } = await own.db
      .updateTable("observation")
      .set({ authorization_nonce: nonce })
      .where("payer", "=", stranger.address.toLowerCase())
      .executeTakeFirstOrThrow();
    expect(numUpdatedRows).toBe(1n);
    const elsewhere = { ...own, deps: { ...own.deps, networks: { ...own.deps.networks, chains: [] } } };
    expect(await withdraw(elsewhere, refundId)).toMatchObject({ code: "invalid_state" });
    expect(await withdraw(own, refundId)).toMatchObject({ ok: true });
    expect(await stateOf(own, refundId)).toBe("withdrawn");
  });
});
