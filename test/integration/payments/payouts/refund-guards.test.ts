import { sql } from "kysely";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { moveRows } from "../../../../db/moves.ts";
import { lockInventory } from "../../../../db/queries/inventory.ts";
import { debitMerchant } from "../../../../db/queries/ledger-groups.ts";
import { lockNotBegun, reduceSettlement } from "../../../../db/queries/settlements.ts";
import type { Db } from "../../../../db/tables.ts";
import { newKey } from "../../../../local/networks-document.ts";
import { listDestinations } from "../../../../payments/merchants/destinations.ts";
import { dispatchRefunds } from "../../../../payments/payouts/dispatch-payouts.ts";
import { findRefundView } from "../../../../payments/payouts/find-refunds.ts";
import { lockCovering } from "../../../../payments/payouts/lock-covering.ts";
import { setAcceptsOtherAssets } from "../../../../payments/payouts/payout-policies.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { fundBuyer } from "../../../support/evm-chain.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";
import { callTestToken, mintTestToken, startTokenKinds, tokenOf } from "../../../support/token-kinds.ts";
import { waitFor } from "../../../support/wait-for.ts";

const kinds = await startTokenKinds();
const { chain, assets } = kinds;

const requestRefund = async (of: MerchantFixture, paymentId: string, value?: bigint) => {
  const amount = value === undefined ? undefined : { unit: "iso4217/USD", value };
  return unwrap(await refundPayment(of.deps, { actor: testActor, paymentId, mode: of.mode, amount })).refundId;
};
const balanceOf = async (of: MerchantFixture) =>
  (await of.db.selectFrom("merchant_balance").select("amount").executeTakeFirstOrThrow()).amount;
/** Waits until a statement of the fixture's database waits for a lock, of the transaction `heldBy` if that is set. */
async function waitForLock({ db }: MerchantFixture, { heldBy }: { heldBy?: Db } = {}): Promise<void> {
  const holder = heldBy && (await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(heldBy)).rows[0];
  const isWaiting = async () => {
    const { rows } = await sql`
      select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
        and (${holder?.pid ?? null}::integer is null or ${holder?.pid ?? null}::integer = any(pg_blocking_pids(pid)))`.execute(
      db,
    );
    return rows.length > 0;
  };
  await waitFor(isWaiting, { within: 20_000, what: "a statement waits for a lock" });
}
const refundsSent = async (of: MerchantFixture) => (await of.transfers()).filter(({ purpose }) => purpose === "refund");

test("a refund waits if the settlements that have not begun sum to less than it, whatever the balance is", async () => {
  const fixture = await makeMerchantFixture(chain);
  const paid = await fixture.pay(await fundBuyer(chain), 500n);
  await fixture.settle((await fixture.settlementOf(paid)).id);
  const open = await fixture.pay(await fundBuyer(chain), 100n);
  // Simulates a half-finished booking.
  await fixture.db.updateTable("merchant_balance").set({ amount: sql`amount + 9000000` }).execute();
  expect(await fixture.refund(await requestRefund(fixture, paid))).toEqual(["balance_short"]);
  expect(await balanceOf(fixture)).toBe(10_000_000n);
  expect(await fixture.settlementOf(open)).toMatchObject({ state: "due", amount: 1_000_000n });
  expect(await refundsSent(fixture)).toEqual([]);
});

test("a refund that cannot be screened does not hide why another one of its batch waits", async () => {
  const fixture = await makeMerchantFixture(chain);
  const [unscreened, other] = [await fundBuyer(chain), await fundBuyer(chain)];
  const paid = [await fixture.pay(unscreened, 100n), await fixture.pay(other, 100n)];
  for (const id of paid) await fixture.settle((await fixture.settlementOf(id)).id);
  const ids: string[] = [];
  for (const id of paid) ids.push(await requestRefund(fixture, id));
  const reasons = async () =>
    Promise.all(ids.map(async (refundId) => unwrap(await findRefundView(fixture.deps, { refundId })).reason));
  const screeningList: typeof fixture.deps.screeningList = (id, accounts) => {
    if (accounts.includes(unscreened.address.toLowerCase())) throw new Error("no list");
    return fixture.deps.screeningList(id, accounts);
  };
  const run = () => dispatchRefunds({ ...fixture.deps, screeningList }, ids);
  await expect(run()).rejects.toMatchObject({ code: "screening_down" });
  expect(await reasons()).toEqual(["balance_short", "balance_short"]);
  const queue = fixture.db.selectFrom("payout_queue").select("due_at").where("kind", "=", "refund");
  const { due_at: dueAt } = await queue.executeTakeFirstOrThrow();
  // What went wrong may be over within a minute, so the queue is not blocked for longer.
  expect(dueAt?.getTime()).toBeLessThanOrEqual(fixture.deps.now().getTime() + 60_000);

  await fixture.pay(await fundBuyer(chain), 300n);
  await expect(run()).rejects.toMatchObject({ code: "screening_down" });
  expect(await refundsSent(fixture)).toMatchObject([{ refund_id: ids[1] }]);
  expect(await reasons()).toEqual([null, null]);
  expect(await dispatchRefunds(fixture.deps, ids)).toEqual(["begun", "begun"]);
});

test("a refund whose settlement begins while it waits for the lock deducts from another settlement", async () => {
  const fixture = await makeMerchantFixture(chain);
  const first = await fixture.pay(await fundBuyer(chain), 1_000n);
  const second = await fixture.pay(await fundBuyer(chain), 1_000n);
  const { id, asset } = await fixture.settlementOf(first);
  const refundId = await requestRefund(fixture, first, 400n);
  const waiting = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<void>();
  const beginning = fixture.db.transaction().execute(async (db) => {
    await sql`select from settlement where id = ${id} for update`.execute(db);
    locked.resolve();
    await waiting.promise;
    await moveRows(db, "settlement", { ids: [id], from: "due", to: "paying", at: new Date() });
    await debitMerchant(db, { merchantId: fixture.merchantId, asset, amount: 10_000_000n });
  });
  await locked.promise;
  const refunding = fixture.refund(refundId);
  await waitForLock(fixture);
  waiting.resolve();
  await beginning;
  expect(await refunding).toEqual(["begun"]);
  expect(await fixture.settlementOf(second)).toMatchObject({ state: "due", amount: 6_000_000n });
  expect(await balanceOf(fixture)).toBe(6_000_000n);
});

test("a settlement that is reduced before it is locked is covered by another one", async () => {
  const fixture = await makeMerchantFixture(chain);
  const { id: own, asset } = await fixture.settlementOf(await fixture.pay(await fundBuyer(chain), 1_000n));
  await fixture.pay(await fundBuyer(chain), 1_000n);
  const of = { merchantId: fixture.merchantId, asset, own, converted: false, amount: 8_000_000n };
  const { locking } = await fixture.db.transaction().execute(async (db) => {
    await lockNotBegun(db, [own]);
    const locking = fixture.db.transaction().execute((another) => lockCovering(another, of));
    await waitForLock(fixture);
    await reduceSettlement(db, { id: own, by: 7_000_000n });
    return { locking };
  });
  expect((await locking).map(({ amount }) => amount)).toEqual([3_000_000n, 10_000_000n]);
});

test("a transaction that chooses its settlements again does not deadlock with one that locks the same settlements", async () => {
  const fixture = await makeMerchantFixture(chain);
  const { id: one, asset } = await fixture.settlementOf(await fixture.pay(await fundBuyer(chain), 1_000n));
  const { id: other } = await fixture.settlementOf(await fixture.pay(await fundBuyer(chain), 1_000n));
  // Settlements are locked in the order of their ids.
  const [first = "", own = ""] = [one, other].sort();
  const of = { merchantId: fixture.merchantId, asset, own, converted: false, amount: 8_000_000n };
  const { choosing, locked } = await fixture.db.transaction().execute(async (db) => {
    await lockNotBegun(db, [first]);
    const { choosing } = await fixture.db.transaction().execute(async (another) => {
      await lockNotBegun(another, [own]);
      const choosing = fixture.db.transaction().execute((third) => lockCovering(third, of));
      await waitForLock(fixture);
      await reduceSettlement(another, { id: own, by: 7_000_000n });
      return { choosing };
    });
    // It has locked `own`, which is too little, and waits for the first one too.
    await waitForLock(fixture, { heldBy: db });
    return { choosing, locked: await lockNotBegun(db, [own]) };
  });
  expect(locked).toMatchObject([{ id: own, amount: 3_000_000n }]);
  expect((await choosing).map(({ amount }) => amount)).toEqual([3_000_000n, 10_000_000n]);
});

test("a refund that several processes begin concurrently is reported as begun to each and deducted once", async () => {
  const fixture = await makeMerchantFixture(chain);
  const other = await makeMerchantFixture(chain, { databaseUrl: fixture.databaseUrl, clock: fixture.clock });
  const paymentId = await fixture.pay(await fundBuyer(chain), 400n);
  await fixture.pay(await fundBuyer(chain), 100n);
  await other.watch();
  const refundId = await requestRefund(fixture, paymentId);
  const outcomes = await Promise.all([fixture, other, fixture, other].map((one) => one.refund(refundId)));
  expect(outcomes.flat()).toEqual(Array(4).fill("begun"));
  expect(await balanceOf(fixture)).toBe(1_000_000n);
  expect(await refundsSent(fixture)).toHaveLength(1);
});

test.each([
  // First: a later test's watcher also reads the outflow of the test before it.
  ["while it begins", true],
  ["before it begins", false],
])("a refund in another asset waits if that asset leaves the treasury %s", async (_when, isBeginning) => {
  const fixture = await makeMerchantFixture(chain, { change: kinds.change, assets: [assets.usdc] });
  const { accountId, merchantId, mode, deps } = fixture;
  const [destination] = unwrap(await listDestinations(deps, { accountId, merchantId, mode }));
  unwrap(
    await setAcceptsOtherAssets(deps, {
      actor: testActor,
      accountId,
      merchantId,
      mode,
      id: destination?.id ?? "",
      accept: true,
    }),
  );
  const buyer = privateKeyToAccount(newKey().privateKey);
  await mintTestToken(chain, assets.permit, buyer.address);
  const paymentId = await fixture.pay(buyer, 200n);
  const treasury = privateKeyToAccount(chain.keys.treasury.privateKey);
  await chain.client.setBalance({ address: treasury.address, value: 10n ** 18n });
  const moveElsewhere = async () => {
    await callTestToken(chain, {
      token: tokenOf(assets.permit),
      functionName: "transfer",
      args: [newKey().address, 2_000_000n],
      by: treasury,
    });
    await fixture.watch();
  };
  const refundId = await requestRefund(fixture, paymentId);
  if (!isBeginning) await moveElsewhere();
  const { outcomes } = await fixture.db.transaction().execute(async (db) => {
    await lockInventory(db, assets.permit);
    const refunding = fixture.refund(refundId);
    if (!isBeginning) return { outcomes: refunding };
    const isWaiting = async () => {
      const { rows } = await sql`
        select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`.execute(
        fixture.db,
      );
      return rows.length > 0;
    };
    await waitFor(isWaiting, { within: 20_000, what: "the refund waits for the inventory" });
    await moveElsewhere();
    return { outcomes: refunding };
  });
  expect(await outcomes).toEqual(["inventory_short"]);
  expect(await balanceOf(fixture)).toBe(2_000_000n);
  expect(await refundsSent(fixture)).toEqual([]);
});
