import { randomBytes } from "node:crypto";
import { base58 } from "@scure/base";
import { expect, test } from "vitest";
import { startFaultProxy } from "../../support/fault-proxy.ts";
import { fundSolanaBuyer, startTestSolana, tokenBalance } from "../../support/solana.ts";
import { makeSolanaTill } from "../../support/solana-till.ts";

const solana = await startTestSolana({ own: true });

/** A merchant fixture whose only payment was submitted, while no slot comes by itself. */
async function makeSubmitted(finality: "confirmed" | "finalized") {
  const till = await makeSolanaTill(solana, { change: { finality } });
  const buyer = await fundSolanaBuyer(solana, 1_000_000n);
  const paymentId = await till.create();
  await till.verify(await till.attempt(paymentId, buyer));
  await solana.knobs.pause();
  await till.submit();
  const stateOf = async () => (await till.transfers())[0]?.state;
  const bookings = async () =>
    (await till.db.selectFrom("ledger_group").select("id").where("kind", "=", "payment").execute()).length;
  return { till, buyer, paymentId, stateOf, bookings };
}

test.each(["confirmed", "finalized"] as const)(
  "a payment succeeds when its transaction is %s, and not earlier",
  async (finality) => {
    const { till, paymentId, stateOf } = await makeSubmitted(finality);
    const state = async () => (await till.status(paymentId)).state;
    await till.watch();
    expect([await stateOf(), await state()]).toEqual(["carried", "processing"]);
    await solana.knobs.jump(1);
    await till.watch();
    const early = finality === "confirmed" ? ["confirmed", "succeeded"] : ["included", "processing"];
    expect([await stateOf(), await state()]).toEqual(early);
    await solana.knobs.jump(5);
    await till.watch();
    expect([await stateOf(), await state()]).toEqual(["confirmed", "succeeded"]);
    await solana.knobs.resume();
  },
);

test("a payment whose slot is rolled back is in flight again, lands with the same bytes, and is booked once", async () => {
  const { till, buyer, paymentId, stateOf, bookings } = await makeSubmitted("finalized");
  await solana.knobs.jump(1);
  await till.watch();
  expect(await stateOf()).toBe("included");
  const [before] = (await till.transactions()).slice(-1);
  expect(await solana.knobs.rollback(2)).toEqual([before?.hash]);
  // The slot numbers that were rolled back are passed, and the watcher checks.
  await solana.knobs.jump(4);
  await till.watch();
  await till.watch();
  expect([await stateOf(), (await till.status(paymentId)).state]).toEqual(["carried", "processing"]);
  expect(await tokenBalance(solana, buyer.address)).toBe(1_000_000n);
  till.clock.advance(2_000);
  await till.watch();
  await solana.knobs.resume();
  await till.watchUntilState(paymentId, "succeeded");
  const [after] = (await till.transactions()).slice(-1);
  expect(after?.hash).toBe(before?.hash);
  expect(await bookings()).toBe(1);
  expect(await tokenBalance(solana, buyer.address)).toBe(0n);
});

test("the watcher reads the statuses of transactions in flight 256 at a time, and makes no other calls for them", async () => {
  const proxy = await startFaultProxy({ target: solana.url });
  const till = await makeSolanaTill(solana, { rpcUrls: [proxy.url] });
  await till.pay(await fundSolanaBuyer(solana));
  await till.watchUntil(async () => (await till.transactions()).every(({ state }) => state === "final"));
  const [like] = (await till.transactions()).slice(-1);
  if (!like) throw new Error("there is no transaction");
  const now = () => till.clock.now();
  const addInFlight = (from: number, count: number) =>
    till.db
      .insertInto("transaction")
      .values(
        Array.from({ length: count }, (_, index) => ({
          ...{ ...like, hash: base58.encode(randomBytes(64)), nonce: from + index, state: "signed" as const },
          ...{ created_at: now(), offered_at: new Date(now().getTime() + 60_000), last_valid_height: 1_000_000_000 },
          ...{ block_number: null, block_hash: null, fee: null, reverted: null },
        })),
      )
      .execute();
  /** Returns the calls of a pass that checks everything. */
  const countPassCalls = async () => {
    const before = { ...proxy.calls };
    await solana.knobs.jump(5);
    await till.watchOnly();
    const made = Object.entries(proxy.calls).map(([method, count]) => [method, count - (before[method] ?? 0)] as const);
    return Object.fromEntries(made.filter(([, count]) => count > 0));
  };
  await addInFlight(1_000, 10);
  const few = await countPassCalls();
  expect(few.getSignatureStatuses).toBe(1);
  await addInFlight(2_000, 290);
  const many = await countPassCalls();
  expect(many).toEqual({ ...few, getSignatureStatuses: 2 });
  const total = Object.values(many).reduce((sum, count) => sum + count, 0);
  expect(total / 300).toBeLessThanOrEqual(0.2);
});
