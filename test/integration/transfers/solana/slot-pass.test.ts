import { randomBytes } from "node:crypto";
import { base58 } from "@scure/base";
import { afterEach, expect, test } from "vitest";
import { listUnsettled } from "../../../../db/queries/solana-transactions.ts";
import { createBookingHandlers } from "../../../../payments/lifecycle/book-transfers.ts";
import { readTrackedTransactions } from "../../../../transfers/solana/read-tracked-transactions.ts";
import { applyStatuses } from "../../../../transfers/solana/track-statuses.ts";
import { type Alter, startAlteringProxy } from "../../../support/altering-proxy.ts";
import { startFaultProxy } from "../../../support/fault-proxy.ts";
import { waitFinalized } from "../../../support/solana-history.ts";
import { makeSolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { fundSolanaBuyer, startTestSolana, tokenBalance } from "../../../support/test-solana.ts";

const solana = await startTestSolana({ own: true });

// A test that fails leaves no slots paused for its repetition and the tests after it.
afterEach(() => solana.knobs.resume());

const finalSlot = () => solana.client.connection.getSlot("finalized");

/**
 * A merchant fixture whose only payment was submitted, while no slot comes by itself. `finalMod25` is the remainder of the final
 * slot at that time.
 */
async function makeSubmitted(finality: "confirmed" | "finalized", { finalMod25 }: { finalMod25?: number } = {}) {
  const fixture = await makeSolanaMerchantFixture(solana, { change: { finality } });
  const buyer = await fundSolanaBuyer(solana, 1_000_000n);
  const paymentId = await fixture.create();
  await fixture.verify(await fixture.attempt(paymentId, buyer));
  await solana.knobs.pause();
  while (finalMod25 !== undefined && (await finalSlot()) % 25 !== finalMod25) await solana.knobs.jump(1);
  await fixture.submit();
  const stateOf = async () => (await fixture.transfers())[0]?.state;
  const bookings = async () =>
    (await fixture.db.selectFrom("ledger_group").select("id").where("kind", "=", "payment").execute()).length;
  return { fixture, buyer, paymentId, stateOf, bookings };
}

test.each(["confirmed", "finalized"] as const)(
  "a payment succeeds when its transaction is %s, and not earlier",
  async (finality) => {
    const { fixture, paymentId, stateOf } = await makeSubmitted(finality);
    const state = async () => (await fixture.status(paymentId)).state;
    await fixture.watch();
    expect([await stateOf(), await state()]).toEqual(["assigned", "processing"]);
    await solana.knobs.jump(1);
    await fixture.watch();
    const early = finality === "confirmed" ? ["confirmed", "succeeded"] : ["included", "processing"];
    expect([await stateOf(), await state()]).toEqual(early);
    await solana.knobs.jump(5);
    await fixture.watch();
    expect([await stateOf(), await state()]).toEqual(["confirmed", "succeeded"]);
    await solana.knobs.resume();
  },
);

test("a payment whose slot is rolled back is in flight again, lands with the same bytes, and is booked once", async () => {
  const { fixture, buyer, paymentId, stateOf, bookings } = await makeSubmitted("finalized", { finalMod25: 23 });
  await solana.knobs.jump(1);
  await fixture.watch();
  expect(await stateOf()).toBe("included");
  const [before] = (await fixture.transactions()).slice(-1);
  expect(await solana.knobs.rollback(2)).toEqual([before?.hash]);
  // The final slot is a multiple of 25, at which the watcher checks, and the rolled back slots are not final.
  while ((await finalSlot()) % 25 !== 0) await solana.knobs.jump(1);
  expect(await finalSlot()).toBeLessThan(before?.block_number ?? 0);
  await fixture.watch();
  expect([await stateOf(), (await fixture.status(paymentId)).state]).toEqual(["assigned", "processing"]);
  expect(await tokenBalance(solana, buyer.address)).toBe(1_000_000n);
  fixture.clock.advance(2_000);
  await fixture.watch();
  await solana.knobs.resume();
  await fixture.watchUntilState(paymentId, "succeeded");
  const [after] = (await fixture.transactions()).slice(-1);
  expect(after?.hash).toBe(before?.hash);
  expect(await bookings()).toBe(1);
  expect(await tokenBalance(solana, buyer.address)).toBe(0n);
});

test("the watcher reads the statuses of transactions in flight 256 at a time, and makes no other calls for them", async () => {
  const proxy = await startFaultProxy({ target: solana.url });
  const fixture = await makeSolanaMerchantFixture(solana, { rpcUrls: [proxy.url] });
  await fixture.pay(await fundSolanaBuyer(solana));
  await fixture.watchUntil(async () => (await fixture.transactions()).every(({ state }) => state === "final"));
  const [like] = (await fixture.transactions()).slice(-1);
  if (!like) throw new Error("there is no transaction");
  const now = () => fixture.clock.now();
  const addInFlight = (from: number, count: number) =>
    fixture.db
      .insertInto("transaction")
      .values(
        Array.from({ length: count }, (_, index) => ({
          ...{ ...like, hash: base58.encode(randomBytes(64)), nonce: from + index, state: "signed" as const },
          ...{ created_at: now(), broadcast_at: new Date(now().getTime() + 60_000), last_valid_height: 1_000_000_000 },
          ...{ block_number: null, block_id: null, fee: null, reverted: null },
        })),
      )
      .execute();
  /** Returns the calls of a pass that checks everything. */
  const countPassCalls = async () => {
    const before = { ...proxy.calls };
    await solana.knobs.jump(5);
    await fixture.watchOnly();
    const made = Object.entries(proxy.calls).map(([method, count]) => [method, count - (before[method] ?? 0)] as const);
    return Object.fromEntries(made.filter(([, count]) => count > 0));
  };
  await addInFlight(1_000, 10);
  const few = await countPassCalls();
  expect(few["getSignatureStatuses"]).toBe(1);
  await addInFlight(2_000, 290);
  const many = await countPassCalls();
  expect(many).toEqual({ ...few, getSignatureStatuses: 2 });
  const total = Object.values(many).reduce((sum, count) => sum + count, 0);
  expect(total / 300).toBeLessThanOrEqual(0.2);
});

test("parts of a slot that are recorded and confirmed at the same time, also by two processes, book each transfer once", async () => {
  const fixture = await makeSolanaMerchantFixture(solana, { change: { finality: "confirmed" } });
  const buyers = await Promise.all(Array.from({ length: 6 }, () => fundSolanaBuyer(solana)));
  const payments = await Promise.all(buyers.map(() => fixture.create()));
  await fixture.verify(
    ...(await Promise.all(buyers.map((buyer, index) => fixture.attempt(payments[index] ?? "", buyer)))),
  );
  // On a fast machine the relayer's transactions of the set-up are not final yet.
  await waitFinalized(solana, ...(await fixture.transactions()).map(({ hash }) => hash));
  await solana.knobs.pause();
  await fixture.submit();
  await solana.knobs.jump(1);
  const { db, deps, chain } = fixture;
  const rows = await listUnsettled(db, { chain: solana.id, includedUpTo: 0, unconfirmed: false });
  const read = await readTrackedTransactions(deps, chain, rows);
  const tracked = read.filter(({ status }) => status?.depth === "confirmed");
  expect(tracked).toHaveLength(6);
  const other = await fixture.anotherProcess();
  const apply = (by: typeof deps, from: number, to: number) =>
    applyStatuses(by, chain, tracked.slice(from, to), createBookingHandlers(by));
  await Promise.all([apply(deps, 0, 3), apply(deps, 3, 6), apply(other.deps, 1, 5)]);
  await solana.knobs.resume();
  const states = await Promise.all(payments.map(async (id) => (await fixture.status(id)).state));
  expect(states).toEqual(payments.map(() => "succeeded"));
  const booked = await db.selectFrom("ledger_group").select("id").where("kind", "=", "payment").execute();
  const observed = await db.selectFrom("observation").select("transfer_id").execute();
  expect([booked.length, observed.length]).toEqual([6, 6]);
});

test("a cursor that one answer has moved above the cluster is lowered, and not by one endpoint of two", async () => {
  const [first, second] = [
    await startAlteringProxy({ target: solana.url }),
    await startAlteringProxy({ target: solana.url }),
  ];
  const fixture = await makeSolanaMerchantFixture(solana, { rpcUrls: [first.url, second.url] });
  const cursor = async () => {
    const { number } = await fixture.db.selectFrom("chain_cursor").select("number").executeTakeFirstOrThrow();
    return Number(number);
  };
  const raise: Alter = (method, _params, result) => (method === "getSlot" ? Number(result) + 40_000_000 : result);
  first.alter(raise);
  await fixture.watchOnly();
  expect(await cursor()).toBeGreaterThan(40_000_000);
  first.alter(undefined);
  second.alter(raise);
  await fixture.watchOnly();
  expect(await cursor()).toBeGreaterThan(40_000_000);
  second.alter(undefined);
  await fixture.watchOnly();
  expect(await cursor()).toBeLessThan(40_000_000);
  const before = await cursor();
  await solana.knobs.jump(1);
  await fixture.watchOnly();
  expect(await cursor()).toBeGreaterThan(before);
});
