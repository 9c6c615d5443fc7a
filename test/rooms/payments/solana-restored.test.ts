import { PublicKey, SystemProgram } from "@solana/web3.js";
import { expect, test } from "vitest";
import { findMarker } from "../../../chains/solana/markers.ts";
import { listBalances } from "../../../db/balances.ts";
import { fundSol, keypairOf, newSolanaKey, sendAll } from "../../../ops/local/solana-client.ts";
import { addDestinations, listDestinations } from "../../../payments/destinations.ts";
import { listExceptions } from "../../../payments/exceptions.ts";
import { createMerchant } from "../../../payments/merchants.ts";
import { gatherPayouts } from "../../../payments/payout-policies.ts";
import { reconcileChain } from "../../../payments/reconcile.ts";
import { isCaughtUp } from "../../../transfers/caught-up.ts";
import { copyDatabase } from "../../support/database.ts";
import { fundSolanaBuyer, startTestSolana, tokenBalance } from "../../support/solana.ts";
import { makeSolanaTill, type SolanaTill } from "../../support/solana-till.ts";
import { good } from "../../support/till.ts";

const UNIT = 1_000_000n;
const DAY_MS = 86_400_000;
const solana = await startTestSolana({ slotMs: 20 });
const native = `${solana.id}/slip44:501`;
const holds = (owner: string) => tokenBalance(solana, owner);

const accumulate = async ({ accountId, merchantId, mode, deps }: SolanaTill) => {
  const owner = { accountId, merchantId, mode };
  const [destination] = good(await listDestinations(deps, owner));
  good(await gatherPayouts(deps, { ...owner, id: destination?.id ?? "", gather: { ms: 600_000 } }));
};
const settlementsOf = (till: SolanaTill) =>
  till.db.selectFrom("settlement").selectAll().where("merchant_id", "=", till.merchantId).orderBy("number").execute();
const sumOf = async (till: SolanaTill, account: string, asset: string) =>
  (await listBalances(till.db, { account, asset }))[0]?.amount ?? 0n;

/** Begins and submits whatever is unpaid, round after round, as the sweep and the workers do, until nothing is. */
async function payOut(till: SolanaTill): Promise<void> {
  const unpaid = async () => (await settlementsOf(till)).filter(({ state }) => state !== "paid" && state !== "netted");
  for (let round = 0; (await unpaid()).length > 0; round += 1) {
    if (round > 30) throw new Error(`not paid out: ${JSON.stringify(await till.transfers(), (_, v) => String(v))}`);
    await till.settle(...(await unpaid()).map(({ id }) => id));
    await till.submit();
    for (let turn = 0; turn < 3; turn += 1) await till.watch(new AbortController().signal);
    till.clock.advance(65_000);
  }
}

async function expectEvenBooks(till: SolanaTill) {
  await till.watchUntil(async () =>
    (await till.transactions()).every(({ state }) => state === "final" || state === "expired"),
  );
  const lines = good(await reconcileWhileWatching(till));
  expect(lines.filter(({ difference }) => difference !== 0n)).toEqual([]);
  expect(await sumOf(till, "in_transit", solana.asset)).toBe(0n);
  // What a lane is found to have been given beyond the first funding would be booked as capital, and hide a difference.
  const lane = till.keys.lanes[0]?.address ?? "";
  expect(await sumOf(till, `lane:${lane}`, native)).toBe(
    BigInt(await solana.client.connection.getBalance(new PublicKey(lane), "finalized")),
  );
}

/** The comparison waits for the watcher to come to the slot that it reads. */
async function reconcileWhileWatching(till: SolanaTill) {
  let over = false;
  const watching = (async () => {
    while (!over) await till.watch(new AbortController().signal);
  })();
  const result = await reconcileChain(till.deps, { chain: solana.id }).finally(() => {
    over = true;
  });
  await watching;
  return result;
}

/** The state of a database is kept; the deployment pays on, is lost, and the first state is started again. */
async function restore(first: SolanaTill, forgotten: (lost: SolanaTill) => Promise<void>): Promise<SolanaTill> {
  await first.db.destroy();
  const backup = await copyDatabase(first.databaseUrl);
  const lost = await makeSolanaTill(solana, { of: first, databaseUrl: first.databaseUrl, clock: first.clock });
  await forgotten(lost);
  await lost.db.destroy();
  return makeSolanaTill(solana, { of: first, databaseUrl: backup, clock: first.clock });
}

/** Money of another merchant, out of which a second payout could be paid. */
async function fundTreasury(till: SolanaTill): Promise<void> {
  const { accountId, mode, deps } = till;
  const { id: merchantId } = await createMerchant(deps, { accountId, mode, name: "Other", email: "o@example.test" });
  const asset = { asset: solana.asset, destination: `${solana.id}:${newSolanaKey().address}` };
  good(await addDestinations(deps, { accountId, mode, merchantId, settlements: [asset] }));
  const paymentId = await till.create(1_000n, { merchantId });
  await till.verify(await till.attempt(paymentId, await fundSolanaBuyer(solana)));
  await till.submit();
  await till.watchUntilState(paymentId, "succeeded");
}

test("an accumulated payout that a restored database has forgotten is adopted, and 3.0 is paid for 3.0 owed", async () => {
  const first = await makeSolanaTill(solana);
  await accumulate(first);
  good(await reconcileWhileWatching(first));
  await fundTreasury(first);
  await first.pay(await fundSolanaBuyer(solana), 100n);
  const restored = await restore(first, async (lost) => {
    const [one] = await settlementsOf(lost);
    expect(await lost.settle(one?.id ?? "")).toEqual(["begun"]);
    await lost.submit();
    await lost.watchUntil(async () => (await settlementsOf(lost))[0]?.state === "paid");
  });
  expect(await holds(first.destination)).toBe(1n * UNIT);
  await restored.pay(await fundSolanaBuyer(solana), 200n);
  expect(await settlementsOf(restored)).toMatchObject([{ number: 1, amount: 3n * UNIT }]);

  await payOut(restored);
  expect(await holds(first.destination)).toBe(3n * UNIT);
  expect(await settlementsOf(restored)).toMatchObject([
    { number: 1, amount: 1n * UNIT, state: "paid" },
    { number: 2, amount: 2n * UNIT, state: "paid" },
  ]);
  expect(await listExceptions(restored.deps, 10)).toEqual([]);
  await expectEvenBooks(restored);
});

test("a payout that no history shows yet is refused by its marker alone, and adopted when the history shows it", async () => {
  const first = await makeSolanaTill(solana);
  good(await reconcileWhileWatching(first));
  await fundTreasury(first);
  const paymentId = await first.pay(await fundSolanaBuyer(solana));
  await first.pay(await fundSolanaBuyer(solana));
  const { id } = await first.settlementOf(paymentId);
  await first.settle(id);
  await first.db.destroy();
  const backup = await copyDatabase(first.databaseUrl);
  const lost = await makeSolanaTill(solana, { of: first, databaseUrl: first.databaseUrl });
  const restored = await makeSolanaTill(solana, { of: first, databaseUrl: backup });
  await restored.watchUntil(() => isCaughtUp(restored.deps, solana.id));
  await lost.watchUntil(() => isCaughtUp(lost.deps, solana.id));
  await solana.knobs.pause();
  await lost.submit();
  await solana.knobs.jump(1);
  expect(await holds(first.destination)).toBe(1n * UNIT);

  // The process still believes that it has caught up, as one that runs on after a failover does.
  await restored.submit();
  await solana.knobs.resume();
  const transfer = async () => (await restored.transfers()).find((one) => one.settlement_id === id);
  expect(await transfer()).toMatchObject({ state: "ready", last_trouble: expect.stringContaining("marker") });
  await restored.watchUntil(async () => (await transfer())?.state === "confirmed");
  expect(await holds(first.destination)).toBe(1n * UNIT);
  expect((await restored.settlementOf(paymentId)).state).toBe("paid");
  expect(restored.lines.join()).toContain("missing in the database");
  await lost.db.destroy();
  await payOut(restored);
  expect(await holds(first.destination)).toBe(2n * UNIT);
  await expectEvenBooks(restored);
});

/** The marker of a payment's payout, and what its account is. */
async function markerOf(till: SolanaTill, paymentId: string) {
  const { id } = await till.settlementOf(paymentId);
  const number = (await till.transfers()).find((one) => one.settlement_id === id)?.authorization_nonce ?? "";
  const { address } = findMarker(till.chain.treasury, number);
  const read = () => solana.client.connection.getAccountInfo(new PublicKey(address), "finalized");
  return { address, read };
}

test("markers are closed after their time, and what they hold goes back to the lane, to the lamport", async () => {
  const till = await makeSolanaTill(solana, { change: { payoutMarkerDays: 40 } });
  good(await reconcileWhileWatching(till));
  const paymentId = await till.pay(await fundSolanaBuyer(solana));
  await payOut(till);
  await expectEvenBooks(till);
  const marker = await markerOf(till, paymentId);
  const rents = await sumOf(till, "rent", native);
  expect((await marker.read())?.data).toHaveLength(80);
  // A stranger's gift is no rent that we have paid.
  await fundSol(solana.client, [marker.address], 5_000n);
  const capital = await sumOf(till, "operator_capital", native);

  till.clock.advance(39 * DAY_MS);
  for (let turn = 0; turn < 5; turn += 1) await till.watch(new AbortController().signal);
  expect(await marker.read()).not.toBeNull();

  till.clock.advance(DAY_MS);
  await till.watchUntil(async () => (await marker.read()) === null);
  await expectEvenBooks(till);
  const rent = BigInt(await solana.client.connection.getMinimumBalanceForRentExemption(80));
  expect(await sumOf(till, "rent", native)).toBe(rents - rent);
  expect(await sumOf(till, "operator_capital", native)).toBe(capital - 5_000n);
  expect(await till.db.selectFrom("payout_marker").selectAll().execute()).toEqual([]);
});

test("a marker that was closed by a transaction which the database has forgotten keeps no other one from being closed", async () => {
  const till = await makeSolanaTill(solana, { change: { payoutMarkerDays: 40 } });
  good(await reconcileWhileWatching(till));
  const paymentId = await till.pay(await fundSolanaBuyer(solana));
  await payOut(till);
  await expectEvenBooks(till);
  const { address, read } = await markerOf(till, paymentId);
  const treasury = keypairOf(till.keys.treasury);
  const [noncePubkey, toPubkey] = [address, till.keys.lanes[0]?.address ?? ""].map((one) => new PublicKey(one));
  const lamports = (await read())?.lamports ?? 0;
  if (!noncePubkey || !toPubkey) throw new Error("no addresses");
  const close = { noncePubkey, authorizedPubkey: treasury.publicKey, toPubkey, lamports };
  await sendAll(solana.client, [{ instructions: [SystemProgram.nonceWithdraw(close)], signers: [treasury] }]);
  await till.watchUntil(async () => (await read()) === null);
  const capital = await sumOf(till, "operator_capital", native);
  const rents = await sumOf(till, "rent", native);
  await expectEvenBooks(till);
  till.clock.advance(40 * DAY_MS);
  await till.watchUntil(async () => (await till.db.selectFrom("payout_marker").selectAll().execute()).length === 0);
  await expectEvenBooks(till);
  expect(await sumOf(till, "rent", native)).toBe(rents - BigInt(lamports));
  expect(await sumOf(till, "operator_capital", native)).toBe(capital);
});

test("a payout that is signed while the database steps back is thrown away, and paid once later", async () => {
  const till = await makeSolanaTill(solana);
  const paymentId = await till.pay(await fundSolanaBuyer(solana));
  const { id } = await till.settlementOf(paymentId);
  await till.settle(id);
  const signed = (await till.transactions()).length;
  const { check } = till.deps.epoch;
  let checks = 0;
  till.deps.epoch.check = async () => {
    const epoch = await check();
    checks += 1;
    // The last check has passed by then: a failover comes between it and the transaction.
    if (checks === 2) await till.db.updateTable("database_epoch").set({ count: -1 }).execute();
    return epoch;
  };
  await till.submit();
  till.deps.epoch.check = check;
  expect((await till.transactions()).length).toBe(signed);
  expect(till.lines.join()).toContain("signed transactions are discarded");
  await payOut(till);
  expect(await holds(till.destination)).toBe(1n * UNIT);
});
