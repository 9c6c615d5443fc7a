import { sql } from "kysely";
import type { Hex } from "viem";
import { describe, expect, test } from "vitest";
import { encodeTransfer } from "../../../chains/evm/eip3009.ts";
import { createBooks } from "../../../payments/book.ts";
import { expirePayment } from "../../../payments/expire.ts";
import { listOptions } from "../../../payments/options.ts";
import { toAuthorization } from "../../../transfers/authorization.ts";
import { isCaughtUp } from "../../../transfers/caught-up.ts";
import { watchChain } from "../../../transfers/watch.ts";
import { relayByStranger } from "../../support/carry.ts";
import { fundBuyer, mine, startChain, transfersTo } from "../../support/chain.ts";
import { good, makeTill, signOption, type Till } from "../../support/till.ts";

const MINUTE = 60_000;
const inMinutes = (till: Till, minutes: number) => new Date(till.deps.now().getTime() + minutes * MINUTE);

describe("a payment whose deadline has passed", () => {
  test("expires, once, and tells who waits for it", async () => {
    const till = await makeTill(await startChain());
    const id = await till.create(100n, { expiresAt: inMinutes(till, 1) });
    expect(till.rung).toMatchObject([
      { queue: "expire-payment", bell: { data: { paymentId: id }, delayMs: expect.closeTo(MINUTE, -3) } },
    ]);
    await expirePayment(till.deps, id);
    expect((await till.status(id)).state).toBe("requires_action");
    till.clock.advance(MINUTE);
    await Promise.all([1, 2, 3, 4].map(() => expirePayment(till.deps, id)));
    expect(await till.status(id)).toMatchObject({ state: "expired", stateVersion: 1 });
    expect(till.announced).toEqual([id]);
  });

  test("is not expired once it is being paid, however late its money is", async () => {
    const chain = await startChain();
    const till = await makeTill(chain);
    const id = await till.create(100n, { expiresAt: inMinutes(till, 1) });
    await till.verify(await till.attempt(id, await fundBuyer(chain)));
    till.clock.advance(2 * MINUTE);
    await expirePayment(till.deps, id);
    expect((await till.status(id)).state).toBe("processing");
  });

  test("does not expire while a confirm that came in time waits for its verification, and is then paid by it", async () => {
    const chain = await startChain();
    const till = await makeTill(chain);
    const id = await till.create(100n, { expiresAt: inMinutes(till, 1) });
    const attempt = await till.attempt(id, await fundBuyer(chain));
    // No worker verified or watched until long after the deadline.
    till.clock.advance(5 * MINUTE);
    await till.watch();
    expect(await expirePayment(till.deps, id)).toMatchObject({ decided: false });
    expect((await till.status(id)).state).toBe("requires_action");
    await till.verify(attempt);
    expect(await till.verdict(attempt)).toBe("verified");
    await till.relay();
    await till.watch();
    expect((await till.status(id)).state).toBe("succeeded");
  });

  test("is not paid by a confirm whose row says that it came after it", async () => {
    const chain = await startChain();
    const till = await makeTill(chain);
    const id = await till.create(100n, { expiresAt: inMinutes(till, 1) });
    const attempt = await till.attempt(id, await fundBuyer(chain));
    await till.db
      .updateTable("attempt")
      .set({ created_at: inMinutes(till, 2) })
      .execute();
    await till.verify(attempt);
    expect(await till.verdict(attempt)).toMatchObject({ refused: expect.any(String) });
    expect(await till.transfers()).toEqual([]);
    expect((await till.status(id)).state).toBe("requires_action");
  });

  test("takes no confirm any more, and does not verify a refused one anew", async () => {
    const chain = await startChain();
    const till = await makeTill(chain);
    const id = await till.create(100n, { expiresAt: inMinutes(till, 1) });
    const buyer = await fundBuyer(chain);
    const [option] = await till.offer(id, buyer);
    if (!option) throw new Error("there is no way to pay");
    const wrong = [{ type: "walletRpc" as const, data: [`0x${"11".repeat(64)}1b`] }];
    const refused = good(await till.confirm(id, option.id, wrong)).attemptId ?? "";
    await till.verify(refused);
    const [right] = await signOption(option, buyer);
    till.clock.advance(MINUTE + 2_000);
    expect(await till.confirm(id, option.id, right ? [right] : [])).toMatchObject({ code: "payment_expired" });
    expect(good(await till.confirm(id, option.id, wrong)).attemptId).toBe(refused);
    expect(await till.verdict(refused)).toMatchObject({ refused: expect.any(String) });
    await till.watch();
    expect(await expirePayment(till.deps, id)).toEqual({ decided: true });
    expect((await till.status(id)).state).toBe("expired");
  });

  test("loses no race against the verification of a confirm that came in time", async () => {
    const chain = await startChain();
    // One clock stands a moment before the deadline and the other one behind it, as on two machines.
    const verifies = await makeTill(chain);
    const expires = await makeTill(chain, { databaseUrl: verifies.databaseUrl });
    const expiresAt = inMinutes(verifies, 1);
    expires.clock.advance(MINUTE + 2_000);
    await expires.watch();
    for (let round = 0; round < 12; round += 1) {
      const id = await verifies.create(100n, { expiresAt });
      const attempt = await verifies.attempt(id, await fundBuyer(chain));
      // Verification asks the chain first: every other round the expiry waits about as long.
      const late = round % 2 === 0 ? 0 : 4 + round;
      await Promise.all([
        verifies.verify(attempt),
        new Promise((resolve) => setTimeout(resolve, late)).then(() => expirePayment(expires.deps, id)),
      ]);
      expect(await verifies.status(id)).toMatchObject({ state: "processing", stateVersion: 1 });
      expect((await verifies.transfers()).filter((row) => row.payment_id === id)).toHaveLength(1);
      expect(await verifies.verdict(attempt)).toBe("verified");
    }
  });
});

describe("a payment with a way to pay on a chain", () => {
  test("expires only when that chain's watcher has read past its deadline, and is checked less and less often", async () => {
    const chain = await startChain();
    const till = await makeTill(chain);
    const id = await till.create(100n, { expiresAt: inMinutes(till, 1) });
    await till.offer(id, await fundBuyer(chain));
    const payment = () =>
      till.db.selectFrom("payment").select(["expires_at", "due_at"]).where("id", "=", id).executeTakeFirstOrThrow();
    const deadline = (await payment()).expires_at.getTime();
    for (const late of [0, 1_000, 11_000, 10 * MINUTE]) {
      till.clock.advance(Math.max(0, deadline + late - till.deps.now().getTime()));
      const before = till.deps.now().getTime();
      const expiry = await expirePayment(till.deps, id);
      if (expiry.decided) throw new Error("the payment was decided");
      // As long again as it has waited, a minute at most.
      expect(expiry.waitMs).toBeGreaterThanOrEqual(Math.min(MINUTE, Math.max(250, before - deadline)));
      expect(expiry.waitMs).toBeLessThanOrEqual(Math.min(MINUTE, Math.max(250, till.deps.now().getTime() - deadline)));
      // The sweep takes over after that check, and not before.
      expect((await payment()).due_at?.getTime()).toBeGreaterThanOrEqual(before + expiry.waitMs + 5_000);
    }
    await till.watch();
    expect(await expirePayment(till.deps, id)).toEqual({ decided: true });
    expect((await till.status(id)).state).toBe("expired");
  });

  test("does not expire in the second after its deadline, for which a later block may still bear the deadline's time", async () => {
    const chain = await startChain();
    const till = await makeTill(chain);
    const id = await till.create(100n, { expiresAt: inMinutes(till, 1) });
    await till.offer(id, await fundBuyer(chain));
    till.clock.advance(2 * MINUTE);
    const standAt = (ms: number) =>
      sql`update chain_cursor set reached_head_at = p.expires_at + ${ms}::float8 * interval '1 millisecond' from payment p`.execute(
        till.db,
      );
    await standAt(900);
    expect(await expirePayment(till.deps, id)).toMatchObject({ decided: false });
    await standAt(1_100);
    expect(await expirePayment(till.deps, id)).toEqual({ decided: true });
  });

  test("stays open while one of its chains has no watcher, though the watcher of another has read past its deadline", async () => {
    const [here, there] = [await startChain(), await startChain({ chainId: 31_338 })];
    const till = await makeTill(here, { also: [{ chain: there }] });
    const id = await till.create(100n, { expiresAt: inMinutes(till, 1) });
    await till.offer(id, await fundBuyer(here));
    const buyer = await fundBuyer(there);
    const account = till.accountOf(buyer, there);
    good(await listOptions(till.deps, { paymentId: id, mode: "live", accounts: [account] }));
    till.clock.advance(MINUTE + 2_000);
    await till.watch();
    expect(await expirePayment(till.deps, id)).toMatchObject({ decided: false });
    const books = createBooks(till.deps);
    await watchChain(till.deps, { chain: there.id, signal: AbortSignal.abort(), books });
    expect(await expirePayment(till.deps, id)).toEqual({ decided: true });
  });

  test("is not expired by an endpoint whose newest block is minutes old, which counts as caught up for nothing", async () => {
    const chain = await startChain();
    const till = await makeTill(chain, { change: { maxHeadAgeMs: 60_000 } });
    const id = await till.create(100n, { expiresAt: inMinutes(till, 1) });
    await till.offer(id, await fundBuyer(chain));
    // A fork goes on from the time of its first block, which is that of the shared chain.
    const timestamp = BigInt(Math.floor(till.clock.now().getTime() / 1_000) + 1);
    await chain.client.setNextBlockTimestamp({ timestamp });
    await mine(chain, 1);
    await till.watch();
    expect(await isCaughtUp(till.deps, chain.id)).toBe(true);
    till.clock.advance(3 * MINUTE);
    await till.watch();
    expect(await isCaughtUp(till.deps, chain.id)).toBe(false);
    expect(await expirePayment(till.deps, id)).toMatchObject({ decided: false });
    // Nor by a new block that is as old.
    await mine(chain, 1);
    expect(await till.watch()).toMatchObject({ moved: true });
    expect(await isCaughtUp(till.deps, chain.id)).toBe(false);
    expect(await expirePayment(till.deps, id)).toMatchObject({ decided: false });
    // The endpoint follows the chain again.
    await chain.client.increaseTime({ seconds: 180 });
    await mine(chain, 1);
    await till.watch();
    expect(await isCaughtUp(till.deps, chain.id)).toBe(true);
    expect(await expirePayment(till.deps, id)).toEqual({ decided: true });
  });

  test("and money that moved in time by the chain's clock is paid, however late the watcher reads of it", async () => {
    const { chain, till, id, relay } = await signedOnly();
    await relay();
    till.clock.advance(30 * MINUTE);
    expect(await expirePayment(till.deps, id)).toMatchObject({ decided: false });
    await till.watch();
    await mine(chain, 1);
    await till.watch();
    expect((await till.status(id)).state).toBe("succeeded");
  });

  test.each([
    ["one by one", 1],
    ["in a range", 60],
  ])(
    "and money that moved after it is an exception, also when the watcher reads both together %s",
    async (_how, blocks) => {
      const { chain, till, id, relay } = await signedOnly();
      await mine(chain, blocks);
      // A fork's own clock may be minutes behind.
      const timestamp = BigInt(Math.floor(till.clock.now().getTime() / 1_000) + 180);
      await chain.client.setNextBlockTimestamp({ timestamp });
      await relay();
      await mine(chain, blocks);
      till.clock.advance(3 * MINUTE);
      await till.watch();
      expect((await till.status(id)).state).toBe("requires_action");
      expect(await expirePayment(till.deps, id)).toEqual({ decided: true });
      const rows = await till.db
        .selectFrom("ledger_entry")
        .select("amount")
        .where("account", "=", "exceptions")
        .execute();
      expect(rows).toEqual([{ amount: -1_000_000n }]);
    },
  );
});

/** A payment of a minute that its buyer has signed and not confirmed, and what a stranger does with the signature. */
async function signedOnly() {
  const chain = await startChain();
  const till = await makeTill(chain);
  const id = await till.create(100n, { expiresAt: inMinutes(till, 1) });
  const buyer = await fundBuyer(chain);
  const [option] = await till.offer(id, buyer);
  if (!option) throw new Error("there is no way to pay");
  const [signed] = await signOption(option, buyer);
  const row = await till.db.selectFrom("payment_option").selectAll().executeTakeFirstOrThrow();
  const call = encodeTransfer(toAuthorization(row), signed?.data[0] as Hex);
  return { chain, till, id, relay: () => relayByStranger(chain, call) };
}

test("a payment of test mode expires at its deadline, unless a confirm waits", async () => {
  const chain = await startChain();
  const till = await makeTill(chain, { mode: "test" });
  const [left, confirmed] = [
    await till.create(100n, { expiresAt: inMinutes(till, 1) }),
    await till.create(100n, { expiresAt: inMinutes(till, 1) }),
  ];
  const buyer = await fundBuyer(chain);
  await till.offer(left, buyer);
  const attempt = await till.attempt(confirmed, buyer);
  till.clock.advance(MINUTE);
  expect(await expirePayment(till.deps, left)).toEqual({ decided: true });
  expect((await till.status(left)).state).toBe("expired");
  expect(await expirePayment(till.deps, confirmed)).toMatchObject({ decided: false });
  await till.verify(attempt);
  expect((await till.status(confirmed)).state).toBe("succeeded");
});

test("a confirm that is verified only after its authorization has run out is refused, and the payment expires", async () => {
  const chain = await startChain();
  const till = await makeTill(chain);
  const id = await till.create(100n, { expiresAt: inMinutes(till, 1) });
  const attempt = await till.attempt(id, await fundBuyer(chain));
  await chain.client.increaseTime({ seconds: 3_600 });
  await mine(chain, 1);
  till.clock.advance(60 * MINUTE);
  await till.watch();
  expect(await expirePayment(till.deps, id)).toMatchObject({ decided: false });
  await till.verify(attempt);
  expect(await till.verdict(attempt)).toMatchObject({ refused: expect.any(String) });
  expect(await expirePayment(till.deps, id)).toEqual({ decided: true });
  expect((await till.status(id)).state).toBe("expired");
});

test("a payment whose authorization ran out unused expires, and nothing has moved on chain", async () => {
  const chain = await startChain();
  const till = await makeTill(chain);
  const id = await till.create(100n, { expiresAt: inMinutes(till, 1) });
  await till.verify(await till.attempt(id, await fundBuyer(chain)));
  await till.watch();
  // Nothing carries it until after its deadline and the grace behind it.
  await chain.client.increaseTime({ seconds: 3_600 });
  await mine(chain, 2);
  await till.watch();
  expect((await till.status(id)).state).toBe("expired");
  expect((await till.transfers()).map((row) => row.state)).toEqual(["ended"]);
  expect(till.announced.at(-1)).toBe(id);
  await till.relay();
  await till.watch();
  expect(await transfersTo(chain, chain.keys.treasury.address)).toEqual([]);
  expect(await till.db.selectFrom("ledger_entry").select("id").execute()).toEqual([]);
});
