import { PublicKey, SystemProgram } from "@solana/web3.js";
import { expect, test } from "vitest";
import { findMarker } from "../../../../chains/solana/payout-markers.ts";
import { listBalances } from "../../../../db/queries/ledger-balances.ts";
import { fundSol, keypairOf, newSolanaKey, sendAll } from "../../../../local/solana-client.ts";
import { listExceptions } from "../../../../payments/accounting/resolve-exceptions.ts";
import { addDestinations } from "../../../../payments/merchants/destinations.ts";
import { createMerchant } from "../../../../payments/merchants/merchants.ts";
import { beginRefunds } from "../../../../payments/payouts/begin-refunds.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { parseNetworks } from "../../../../runtime/networks/read-networks.ts";
import type { TreasurySigner } from "../../../../signer/treasury-signer.ts";
import { accumulatePayouts } from "../../../support/accumulate-payouts.ts";
import { isCaughtUp } from "../../../support/is-caught-up.ts";
import { unwrap } from "../../../support/merchant-fixture.ts";
import {
  describeSolanaDeployment,
  makeSolanaMerchantFixture,
  type SolanaMerchantFixture,
} from "../../../support/solana-merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";
import { copyDatabase } from "../../../support/test-database.ts";
import { startSignerFor } from "../../../support/test-signer.ts";
import { fundSolanaBuyer, makeSolanaKeys, startTestSolana, tokenBalance } from "../../../support/test-solana.ts";

const UNIT = 1_000_000n;
const DAY_MS = 86_400_000;
const solana = await startTestSolana({ slotMs: 100 });
const native = `${solana.id}/slip44:501`;
const balanceOf = (owner: string) => tokenBalance(solana, owner);

const settlementsOf = (fixture: SolanaMerchantFixture) =>
  fixture.db
    .selectFrom("settlement")
    .selectAll()
    .where("merchant_id", "=", fixture.merchantId)
    .orderBy("number")
    .execute();
const sumOf = async (fixture: SolanaMerchantFixture, account: string, asset: string) =>
  (await listBalances(fixture.db, { account, asset }))[0]?.amount ?? 0n;

/** Makes passes until one of them was a full one, which the watcher makes every five slots, and some more. */
async function watchFully(fixture: SolanaMerchantFixture): Promise<void> {
  const slot = () => solana.client.connection.getSlot("confirmed");
  for (const end = (await slot()) + 12; (await slot()) < end; ) await fixture.watch(new AbortController().signal);
}

/** Begins and submits unpaid settlements, as the sweep and the workers do, until none is left. */
async function payOut(fixture: SolanaMerchantFixture): Promise<void> {
  const unpaid = async () =>
    (await settlementsOf(fixture)).filter(({ state }) => state !== "paid" && state !== "netted");
  for (let round = 0; (await unpaid()).length > 0; round += 1) {
    if (round > 30) throw new Error(`not paid out: ${JSON.stringify(await fixture.transfers(), (_, v) => String(v))}`);
    await fixture.settle(...(await unpaid()).map(({ id }) => id));
    await fixture.submit();
    await watchFully(fixture);
    fixture.clock.advance(65_000);
  }
}

async function expectReconciled(fixture: SolanaMerchantFixture) {
  await fixture.watchUntil(async () =>
    (await fixture.transactions()).every(({ state }) => state === "final" || state === "expired"),
  );
  const lines = unwrap(await fixture.reconcile());
  expect(lines.filter(({ difference }) => difference !== 0n)).toEqual([]);
  expect(await sumOf(fixture, "in_transit", solana.asset)).toBe(0n);
  // Reconciliation books a lane's surplus as capital, which would hide a mismatch: compare the lane's balance here.
  const lane = fixture.keys.lanes[0]?.address ?? "";
  expect(await sumOf(fixture, `lane:${lane}`, native)).toBe(
    BigInt(await solana.client.connection.getBalance(new PublicKey(lane), "finalized")),
  );
}

/** Waits until the history has shown what the lost deployment sent, which is an exception then. */
const findLost = (restored: SolanaMerchantFixture) =>
  restored.watchUntil(async () => (await listExceptions(restored.deps, 10)).length > 0);

/** Backs up the database, lets a second deployment act on the original, and returns a fixture on the backup. */
async function restore(
  first: SolanaMerchantFixture,
  signer: TreasurySigner,
  loseWork: (lost: SolanaMerchantFixture) => Promise<void>,
): Promise<SolanaMerchantFixture> {
  await first.db.destroy();
  const backup = await copyDatabase(first.databaseUrl);
  const more = { of: first, clock: first.clock, signer };
  const lost = await makeSolanaMerchantFixture(solana, { ...more, databaseUrl: first.databaseUrl });
  await loseWork(lost);
  await lost.db.destroy();
  return makeSolanaMerchantFixture(solana, { ...more, databaseUrl: backup });
}

/** Starts a signer, and a merchant whose payouts it signs. `counted` returns the sum of what it has counted, minor units. */
async function startSigned() {
  const keys = await makeSolanaKeys(solana);
  const { SOLANA_TREASURY_KEY = "" } = keys.env;
  const networks = parseNetworks(await describeSolanaDeployment(solana, keys));
  const { signer, payouts } = await startSignerFor(networks, { SOLANA_TREASURY_KEY });
  const first = await makeSolanaMerchantFixture(solana, { keys, signer });
  const counted = () => payouts().reduce((sum, one) => sum + BigInt(String(one["counted"])), 0n);
  return { first, signer, counted };
}

/** Gives the treasury another merchant's money, which a duplicate payout could spend. */
async function fundTreasury(fixture: SolanaMerchantFixture): Promise<void> {
  const { accountId, mode, deps } = fixture;
  const { id: merchantId } = await createMerchant(deps, {
    actor: testActor,
    accountId,
    mode,
    name: "Other",
    email: "o@example.test",
  });
  const asset = { asset: solana.asset, destination: `${solana.id}:${newSolanaKey().address}` };
  unwrap(await addDestinations(deps, { actor: testActor, accountId, mode, merchantId, settlements: [asset] }));
  const paymentId = await fixture.create(1_000n, { merchantId });
  await fixture.verify(await fixture.attempt(paymentId, await fundSolanaBuyer(solana)));
  await fixture.submit();
  await fixture.watchUntilState(paymentId, "succeeded");
}

test("a restored database adopts a lost accumulated payout, and the signer signs exactly the rest of what is owed", async () => {
  const { first, signer, counted } = await startSigned();
  await accumulatePayouts(first, { ms: 600_000 });
  unwrap(await first.reconcile());
  await fundTreasury(first);
  await first.pay(await fundSolanaBuyer(solana), 100n);
  const restored = await restore(first, signer, async (lost) => {
    const [one] = await settlementsOf(lost);
    expect(await lost.settle(one?.id ?? "")).toEqual(["begun"]);
    await lost.submit();
    await lost.watchUntil(async () => (await settlementsOf(lost))[0]?.state === "paid");
  });
  expect(await balanceOf(first.destination)).toBe(1n * UNIT);
  await restored.pay(await fundSolanaBuyer(solana), 200n);
  expect(await settlementsOf(restored)).toMatchObject([{ number: 1, amount: 3n * UNIT }]);

  await findLost(restored);
  await payOut(restored);
  expect(await balanceOf(first.destination)).toBe(3n * UNIT);
  expect(await settlementsOf(restored)).toMatchObject([
    { number: 1, amount: 1n * UNIT, state: "paid" },
    { number: 2, amount: 2n * UNIT, state: "paid" },
  ]);
  expect(counted()).toBe(3n * UNIT);
  expect(await listExceptions(restored.deps, 10)).toEqual([]);
  await expectReconciled(restored);
});

test("a restored database adopts a refund that sent less than requested, and the signer signs exactly the rest", async () => {
  const { first, signer, counted } = await startSigned();
  unwrap(await first.reconcile());
  await fundTreasury(first);
  const buyer = await fundSolanaBuyer(solana);
  const paymentId = await first.pay(buyer, 500n);
  const before = await balanceOf(buyer.address);
  const refundsOf = ({ db }: SolanaMerchantFixture) => db.selectFrom("refund").selectAll().orderBy("number").execute();
  const request = async ({ deps }: SolanaMerchantFixture, value: bigint) => {
    const amount = { unit: `caip19/${solana.asset}`, value };
    return unwrap(await refundPayment(deps, { actor: testActor, paymentId, mode: "live", amount })).refundId;
  };
  /** Begins and submits refunds, as the sweep and the workers do, until all are paid. */
  const refundAll = async (fixture: SolanaMerchantFixture) => {
    const isPaid = async () => (await refundsOf(fixture)).every(({ state }) => state === "paid");
    for (let round = 0; !(await isPaid()); round += 1) {
      if (round > 30) throw new Error("the refunds are not paid");
      await fixture.watchUntil(() => isCaughtUp(fixture.deps, solana.id));
      await beginRefunds(
        fixture.deps,
        (await refundsOf(fixture)).map(({ id }) => id),
      );
      await fixture.submit();
      await watchFully(fixture);
      fixture.clock.advance(65_000);
    }
  };
  const restored = await restore(first, signer, async (lost) => {
    await request(lost, 2n * UNIT);
    await refundAll(lost);
  });
  await findLost(restored);
  // Until it is requested again, its payment is not paid out.
  await restored.watchUntil(() => isCaughtUp(restored.deps, solana.id));
  const { id } = await restored.settlementOf(paymentId);
  expect(await restored.settle(id)).toEqual(["unrecorded_payout"]);
  await request(restored, 5n * UNIT);
  await refundAll(restored);
  expect(await refundsOf(restored)).toMatchObject([
    { number: 1, amount: 2n * UNIT },
    { number: 2, amount: 3n * UNIT },
  ]);
  expect(await balanceOf(buyer.address)).toBe(before + 5n * UNIT);
  expect(counted()).toBe(5n * UNIT);
  expect(await listExceptions(restored.deps, 10)).toEqual([]);
  await expectReconciled(restored);
});

test("a lost payout that the history does not show yet is stopped by its marker, and adopted once the history shows it", async () => {
  const first = await makeSolanaMerchantFixture(solana);
  unwrap(await first.reconcile());
  await fundTreasury(first);
  const paymentId = await first.pay(await fundSolanaBuyer(solana));
  await first.pay(await fundSolanaBuyer(solana));
  const { id } = await first.settlementOf(paymentId);
  await first.settle(id);
  await first.db.destroy();
  const backup = await copyDatabase(first.databaseUrl);
  const lost = await makeSolanaMerchantFixture(solana, { of: first, databaseUrl: first.databaseUrl });
  const restored = await makeSolanaMerchantFixture(solana, { of: first, databaseUrl: backup });
  await restored.watchUntil(() => isCaughtUp(restored.deps, solana.id));
  await lost.watchUntil(() => isCaughtUp(lost.deps, solana.id));
  await solana.knobs.pause();
  await lost.submit();
  await solana.knobs.jump(1);
  expect(await balanceOf(first.destination)).toBe(1n * UNIT);

  // The process still counts as caught up, like a process that keeps running through a failover.
  await restored.submit();
  await solana.knobs.resume();
  const transfer = async () => (await restored.transfers()).find((one) => one.settlement_id === id);
  expect(await transfer()).toMatchObject({ state: "ready", last_error: expect.stringContaining("marker") });
  await restored.watchUntil(async () => (await transfer())?.state === "confirmed");
  expect(await balanceOf(first.destination)).toBe(1n * UNIT);
  expect((await restored.settlementOf(paymentId)).state).toBe("paid");
  expect(restored.lines.join()).toContain("missing in the database");
  await lost.db.destroy();
  await payOut(restored);
  expect(await balanceOf(first.destination)).toBe(2n * UNIT);
  await expectReconciled(restored);
});

/** Returns the address of a payout's marker and a function that reads its account. */
async function markerOf(fixture: SolanaMerchantFixture, paymentId: string) {
  const { id } = await fixture.settlementOf(paymentId);
  const nonce = (await fixture.transfers()).find((one) => one.settlement_id === id)?.authorization_nonce ?? "";
  const { address } = findMarker(fixture.chain.treasury, nonce);
  const read = () => solana.client.connection.getAccountInfo(new PublicKey(address), "finalized");
  return { address, read };
}

test("expired markers are closed, and every lamport they hold returns to the lane", async () => {
  const fixture = await makeSolanaMerchantFixture(solana, { change: { payoutMarkerDays: 40 } });
  unwrap(await fixture.reconcile());
  const paymentId = await fixture.pay(await fundSolanaBuyer(solana));
  await payOut(fixture);
  await expectReconciled(fixture);
  const marker = await markerOf(fixture, paymentId);
  const rents = await sumOf(fixture, "rent", native);
  expect((await marker.read())?.data).toHaveLength(80);
  // A third party's gift is not rent that the lane has paid.
  await fundSol(solana.client, [marker.address], 5_000n);
  const capital = await sumOf(fixture, "operator_capital", native);

  fixture.clock.advance(39 * DAY_MS);
  for (let pass = 0; pass < 5; pass += 1) await fixture.watch(new AbortController().signal);
  expect(await marker.read()).not.toBeNull();

  fixture.clock.advance(DAY_MS);
  await fixture.watchUntil(async () => (await marker.read()) === null);
  await expectReconciled(fixture);
  const rent = BigInt(await solana.client.connection.getMinimumBalanceForRentExemption(80));
  expect(await sumOf(fixture, "rent", native)).toBe(rents - rent);
  expect(await sumOf(fixture, "operator_capital", native)).toBe(capital - 5_000n);
  expect(await fixture.db.selectFrom("payout_marker").selectAll().execute()).toEqual([]);
});

test("a marker that an unknown transaction closed does not stop the closing of others", async () => {
  const fixture = await makeSolanaMerchantFixture(solana, { change: { payoutMarkerDays: 40 } });
  unwrap(await fixture.reconcile());
  const paymentId = await fixture.pay(await fundSolanaBuyer(solana));
  await payOut(fixture);
  await expectReconciled(fixture);
  const { address, read } = await markerOf(fixture, paymentId);
  const treasury = keypairOf(fixture.keys.treasury);
  const [noncePubkey, toPubkey] = [address, fixture.keys.lanes[0]?.address ?? ""].map((one) => new PublicKey(one));
  const lamports = (await read())?.lamports ?? 0;
  if (!noncePubkey || !toPubkey) throw new Error("no addresses");
  const close = { noncePubkey, authorizedPubkey: treasury.publicKey, toPubkey, lamports };
  await sendAll(solana.client, [{ instructions: [SystemProgram.nonceWithdraw(close)], signers: [treasury] }]);
  await fixture.watchUntil(async () => (await read()) === null);
  const capital = await sumOf(fixture, "operator_capital", native);
  const rents = await sumOf(fixture, "rent", native);
  await expectReconciled(fixture);
  fixture.clock.advance(40 * DAY_MS);
  await fixture.watchUntil(
    async () => (await fixture.db.selectFrom("payout_marker").selectAll().execute()).length === 0,
  );
  await expectReconciled(fixture);
  expect(await sumOf(fixture, "rent", native)).toBe(rents - BigInt(lamports));
  expect(await sumOf(fixture, "operator_capital", native)).toBe(capital);
});

test("a payout signed during a failover is discarded and paid once later", async () => {
  const fixture = await makeSolanaMerchantFixture(solana);
  const paymentId = await fixture.pay(await fundSolanaBuyer(solana));
  const { id } = await fixture.settlementOf(paymentId);
  await fixture.settle(id);
  const signed = (await fixture.transactions()).length;
  const { check } = fixture.deps.epoch;
  let checks = 0;
  fixture.deps.epoch.check = async () => {
    const epoch = await check();
    checks += 1;
    // The failover happens between the last check and the transaction.
    if (checks === 2) await fixture.db.updateTable("database_epoch").set({ count: -1 }).execute();
    return epoch;
  };
  await fixture.submit();
  fixture.deps.epoch.check = check;
  expect((await fixture.transactions()).length).toBe(signed);
  expect(fixture.lines.join()).toContain("signed transactions are discarded");
  await payOut(fixture);
  expect(await balanceOf(fixture.destination)).toBe(1n * UNIT);
});
