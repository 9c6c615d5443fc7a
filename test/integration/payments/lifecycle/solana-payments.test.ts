import { expect, test } from "vitest";
import { listBalances } from "../../../../db/queries/ledger-balances.ts";
import { type ReconcileLine, reconcileChain } from "../../../../payments/accounting/reconcile-chain.ts";
import { beginRefunds } from "../../../../payments/payouts/begin-refunds.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { unwrap } from "../../../support/merchant-fixture.ts";
import { makeSolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";
import { fundSolanaBuyer, sendTokens, startTestSolana, tokenBalance } from "../../../support/test-solana.ts";
import { waitFor } from "../../../support/wait-for.ts";

const solana = await startTestSolana();
const fixture = await makeSolanaMerchantFixture(solana);

test("a buyer without SOL pays, and the merchant receives the payout", async () => {
  const buyer = await fundSolanaBuyer(solana);
  const paymentId = await fixture.pay(buyer);
  const status = await fixture.status(paymentId);
  expect(status).toMatchObject({ state: "succeeded", isFinal: true });
  expect(await tokenBalance(solana, fixture.keys.treasury.address)).toBe(1_000_000n);
  const { id } = await fixture.settlementOf(paymentId);
  expect(await fixture.settle(id)).toEqual(["begun"]);
  await fixture.submit();
  await fixture.watchUntil(async () => (await fixture.settlementOf(paymentId)).state === "paid");
  expect(await tokenBalance(solana, fixture.destination)).toBe(1_000_000n);
});

test("the ledger matches the chain after a payment, its fees, rents and a refund to the payer", async () => {
  const buyer = await fundSolanaBuyer(solana);
  const before = await tokenBalance(solana, buyer.address);
  const paymentId = await fixture.pay(buyer, 300n);
  const { refundId } = unwrap(await refundPayment(fixture.deps, { actor: testActor, paymentId, mode: "live" }));
  expect(await beginRefunds(fixture.deps, [refundId])).toEqual(["begun"]);
  await fixture.submit();
  const isPaid = async () =>
    (await fixture.db.selectFrom("refund").select("state").where("id", "=", refundId).executeTakeFirst())?.state ===
    "paid";
  await fixture.watchUntil(isPaid);
  expect(await tokenBalance(solana, buyer.address)).toBe(before);
  let lines: ReconcileLine[] | undefined;
  const compared = reconcileChain(fixture.deps, { chain: solana.id }).then((result) => {
    lines = unwrap(result);
  });
  await fixture.watchUntil(async () => lines !== undefined);
  await compared;
  expect(lines?.filter(({ difference }) => difference !== 0n)).toEqual([]);
  expect(lines?.map(({ account }) => account)).toContain("treasury");
  expect(lines?.some(({ account, booked }) => account.startsWith("lane:") && booked > 0n)).toBe(true);
});

test("unsolicited money in the treasury's history is booked as an exception", async () => {
  const stranger = await fundSolanaBuyer(solana);
  await sendTokens(solana, { from: stranger, to: fixture.keys.treasury.address, amount: 7_000n });
  const exceptions = async () =>
    (await listBalances(fixture.db, { account: "exceptions", asset: solana.asset }))[0]?.amount ?? 0n;
  await fixture.watchUntil(async () => (await exceptions()) === -7_000n);
});

test("a transfer with an open payment's memo and exact amount pays it", async () => {
  const buyer = await fundSolanaBuyer(solana);
  const paymentId = await fixture.create();
  const [option] = await fixture.offer(paymentId, buyer);
  if (!option) throw new Error("there is no way to pay");
  const { authorization_nonce: memo } = await fixture.db
    .selectFrom("payment_option")
    .select("authorization_nonce")
    .where("id", "=", option.id)
    .executeTakeFirstOrThrow();
  await sendTokens(solana, { from: buyer, to: fixture.keys.treasury.address, amount: 1_000_000n, memo });
  await fixture.watchUntilState(paymentId, "succeeded");
});

test("a restored database finds a lost payout in the treasury's history and does not repeat it", async () => {
  const restored = await makeSolanaMerchantFixture(solana);
  // The treasury holds other merchants' money, enough to pay twice.
  await restored.pay(await fundSolanaBuyer(solana), 500n);
  const paymentId = await restored.pay(await fundSolanaBuyer(solana), 200n);
  const { id } = await restored.settlementOf(paymentId);
  expect(await restored.settle(id)).toEqual(["begun"]);
  const { db } = restored;
  const [transfer] = await db.selectFrom("transfer").selectAll().where("settlement_id", "=", id).execute();
  const cursors = await db.selectFrom("account_cursor").selectAll().execute();
  await restored.submit();
  await restored.watchUntil(async () => (await restored.settlementOf(paymentId)).state === "paid");
  const paid = await tokenBalance(solana, restored.destination);
  // Resets the rows to a backup from before the payout was signed.
  await db
    .updateTable("observation")
    .set({ transfer_id: null, booked: false })
    .where("transfer_id", "=", transfer?.id ?? "")
    .execute();
  await db.deleteFrom("observation").where("transfer_id", "is", null).execute();
  await db.deleteFrom("transaction").where("nonce_account", "is not", null).execute();
  await db
    .updateTable("transfer")
    .set({ state: "ready", lane_id: null, lane_nonce: null })
    .where("settlement_id", "=", id)
    .execute();
  await db.updateTable("settlement").set({ state: "paying", paid_at: null }).where("id", "=", id).execute();
  for (const { account, listing: _listing, relist_before: _places, ...place } of cursors)
    await db
      .updateTable("account_cursor")
      .set({ ...place, listing: null })
      .where("account", "=", account)
      .execute();
  await db
    .updateTable("chain_cursor")
    .set({ reached_head_at: new Date(0) })
    .execute();
  await restored.submit();
  expect((await restored.transfers()).find((row) => row.settlement_id === id)?.state).toBe("ready");
  const isFound = async () => (await restored.transfers()).find((row) => row.settlement_id === id)?.state !== "ready";
  await waitFor(
    async () => {
      // The ledger is append-only and cannot be reset, so it refuses to book the payout twice.
      await restored.watch().catch(() => undefined);
      return isFound();
    },
    { within: 30_000 },
  );
  await restored.submit();
  expect(await tokenBalance(solana, restored.destination)).toBe(paid);
});
