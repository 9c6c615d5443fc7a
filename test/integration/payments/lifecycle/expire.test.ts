import { sql } from "kysely";
import { describe, expect, test } from "vitest";
import { createBookingHandlers } from "../../../../payments/lifecycle/book-transfers.ts";
import { expirePayment } from "../../../../payments/lifecycle/expire-payment.ts";
import { listOptions } from "../../../../payments/options/list-options.ts";
import { watchChain } from "../../../../transfers/watch-pass.ts";
import { fundBuyer, mine, startChain, transfersTo } from "../../../support/evm-chain.ts";
import { isCaughtUp } from "../../../support/is-caught-up.ts";
import { type MerchantFixture, makeMerchantFixture, signOption, unwrap } from "../../../support/merchant-fixture.ts";
import { signUnconfirmed } from "../../../support/signed-payment.ts";

const MINUTE = 60_000;
const inMinutes = (fixture: MerchantFixture, minutes: number) =>
  new Date(fixture.deps.now().getTime() + minutes * MINUTE);

describe("a payment past its deadline", () => {
  test("a payment past its deadline expires once and notifies its pollers", async () => {
    const fixture = await makeMerchantFixture(await startChain());
    const id = await fixture.create(100n, { expiresAt: inMinutes(fixture, 1) });
    await expirePayment(fixture.deps, id);
    expect((await fixture.status(id)).state).toBe("requires_action");
    fixture.clock.advance(MINUTE);
    await Promise.all([1, 2, 3, 4].map(() => expirePayment(fixture.deps, id)));
    expect(await fixture.status(id)).toMatchObject({ state: "expired", stateVersion: 1 });
    expect(fixture.announced).toEqual([id]);
  });

  test("a processing payment does not expire, however late its money arrives", async () => {
    const chain = await startChain();
    const fixture = await makeMerchantFixture(chain);
    const id = await fixture.create(100n, { expiresAt: inMinutes(fixture, 1) });
    await fixture.verify(await fixture.attempt(id, await fundBuyer(chain)));
    fixture.clock.advance(2 * MINUTE);
    await expirePayment(fixture.deps, id);
    expect((await fixture.status(id)).state).toBe("processing");
  });

  test("a payment does not expire while a timely confirm waits for verification, and that confirm then pays it", async () => {
    const chain = await startChain();
    const fixture = await makeMerchantFixture(chain);
    const id = await fixture.create(100n, { expiresAt: inMinutes(fixture, 1) });
    const attempt = await fixture.attempt(id, await fundBuyer(chain));
    // No worker verifies or watches until long after the deadline.
    fixture.clock.advance(5 * MINUTE);
    await fixture.watch();
    expect(await expirePayment(fixture.deps, id)).toMatchObject({ decided: false });
    expect((await fixture.status(id)).state).toBe("requires_action");
    await fixture.verify(attempt);
    expect(await fixture.verificationResult(attempt)).toBe("verified");
    await fixture.relay();
    await fixture.watch();
    expect((await fixture.status(id)).state).toBe("succeeded");
  });

  test("a confirm whose row was created after the deadline is refused", async () => {
    const chain = await startChain();
    const fixture = await makeMerchantFixture(chain);
    const id = await fixture.create(100n, { expiresAt: inMinutes(fixture, 1) });
    const attempt = await fixture.attempt(id, await fundBuyer(chain));
    await fixture.db
      .updateTable("attempt")
      .set({ created_at: inMinutes(fixture, 2) })
      .execute();
    await fixture.verify(attempt);
    expect(await fixture.verificationResult(attempt)).toMatchObject({ refused: expect.any(String) });
    expect(await fixture.transfers()).toEqual([]);
    expect((await fixture.status(id)).state).toBe("requires_action");
  });

  test("a payment past its deadline accepts no new confirm and does not verify a refused confirm again", async () => {
    const chain = await startChain();
    const fixture = await makeMerchantFixture(chain);
    const id = await fixture.create(100n, { expiresAt: inMinutes(fixture, 1) });
    const buyer = await fundBuyer(chain);
    const [option] = await fixture.offer(id, buyer);
    if (!option) throw new Error("there is no way to pay");
    const wrong = [{ type: "walletRpc" as const, data: [`0x${"11".repeat(64)}1b`] }];
    const refused = unwrap(await fixture.confirm(id, option.id, wrong)).attemptId ?? "";
    await fixture.verify(refused);
    const [right] = await signOption(option, buyer);
    fixture.clock.advance(MINUTE + 2_000);
    expect(await fixture.confirm(id, option.id, right ? [right] : [])).toMatchObject({ code: "payment_expired" });
    expect(await fixture.confirm(id, option.id, wrong)).toMatchObject({ code: "invalid_params" });
    expect(await fixture.verificationResult(refused)).toMatchObject({ refused: expect.any(String) });
    await fixture.watch();
    expect(await expirePayment(fixture.deps, id)).toEqual({ decided: true });
    expect((await fixture.status(id)).state).toBe("expired");
  });

  test("an expiry never wins a race against the verification of a timely confirm", async () => {
    const chain = await startChain();
    // One clock stands before the deadline and the other one after it, as on two machines.
    const verifies = await makeMerchantFixture(chain);
    const expires = await makeMerchantFixture(chain, { databaseUrl: verifies.databaseUrl });
    const expiresAt = inMinutes(verifies, 10);
    expires.clock.advance(10 * MINUTE + 2_000);
    await expires.watch();
    for (let round = 0; round < 12; round += 1) {
      const id = await verifies.create(100n, { expiresAt });
      const attempt = await verifies.attempt(id, await fundBuyer(chain));
      // Verification calls the chain first. In every other round the expiry waits about as long as that call takes.
      const late = round % 2 === 0 ? 0 : 4 + round;
      await Promise.all([
        verifies.verify(attempt),
        new Promise((resolve) => setTimeout(resolve, late)).then(() => expirePayment(expires.deps, id)),
      ]);
      expect(await verifies.status(id)).toMatchObject({ state: "processing", stateVersion: 1 });
      expect((await verifies.transfers()).filter((row) => row.payment_id === id)).toHaveLength(1);
      expect(await verifies.verificationResult(attempt)).toBe("verified");
    }
  });
});

describe("a payment with an option on a chain", () => {
  test("a payment expires only after the chain's watcher has read past its deadline, and it is checked with growing delays", async () => {
    const chain = await startChain();
    const fixture = await makeMerchantFixture(chain);
    const id = await fixture.create(100n, { expiresAt: inMinutes(fixture, 1) });
    await fixture.offer(id, await fundBuyer(chain));
    const payment = () =>
      fixture.db.selectFrom("payment").select(["expires_at", "due_at"]).where("id", "=", id).executeTakeFirstOrThrow();
    const deadline = (await payment()).expires_at.getTime();
    for (const late of [0, 1_000, 11_000, 10 * MINUTE]) {
      fixture.clock.advance(Math.max(0, deadline + late - fixture.deps.now().getTime()));
      const before = fixture.deps.now().getTime();
      const expiry = await expirePayment(fixture.deps, id);
      if (expiry.decided) throw new Error("the payment was decided");
      const now = fixture.deps.now().getTime();
      const dueAt = (await payment()).due_at?.getTime() ?? 0;
      const { waitMs = dueAt - now } = expiry;
      // The delay equals the time since the deadline, up to one minute. The sweep takes over only after that check.
      expect(waitMs).toBeGreaterThanOrEqual(Math.min(MINUTE, Math.max(250, before - deadline)) - (now - before));
      expect(waitMs).toBeLessThanOrEqual(Math.min(MINUTE, Math.max(250, now - deadline)));
      if (expiry.waitMs !== undefined) expect(dueAt).toBeGreaterThanOrEqual(before + waitMs + 5_000);
    }
    await fixture.watch();
    expect(await expirePayment(fixture.deps, id)).toEqual({ decided: true });
    expect((await fixture.status(id)).state).toBe("expired");
  });

  test("a payment does not expire in the second after its deadline, because a later block can still carry the deadline's timestamp", async () => {
    const chain = await startChain();
    const fixture = await makeMerchantFixture(chain);
    const id = await fixture.create(100n, { expiresAt: inMinutes(fixture, 1) });
    await fixture.offer(id, await fundBuyer(chain));
    fixture.clock.advance(2 * MINUTE);
    const setReachedHead = (ms: number) =>
      sql`update chain_cursor set reached_head_at = p.expires_at + ${ms}::float8 * interval '1 millisecond' from payment p`.execute(
        fixture.db,
      );
    await setReachedHead(900);
    expect(await expirePayment(fixture.deps, id)).toMatchObject({ decided: false });
    await setReachedHead(1_100);
    expect(await expirePayment(fixture.deps, id)).toEqual({ decided: true });
  });

  test("a payment stays open while any of its chains has not been read past the deadline", async () => {
    const [here, there] = [await startChain(), await startChain({ chainId: 31_338 })];
    const fixture = await makeMerchantFixture(here, { also: [{ chain: there }] });
    const id = await fixture.create(100n, { expiresAt: inMinutes(fixture, 1) });
    await fixture.offer(id, await fundBuyer(here));
    const buyer = await fundBuyer(there);
    const account = fixture.accountOf(buyer, there);
    unwrap(await listOptions(fixture.deps, { paymentId: id, mode: "live", accounts: [account] }));
    fixture.clock.advance(MINUTE + 2_000);
    await fixture.watch();
    expect(await expirePayment(fixture.deps, id)).toMatchObject({ decided: false });
    const handlers = createBookingHandlers(fixture.deps);
    await watchChain(fixture.deps, { chain: there.id, signal: AbortSignal.abort(), handlers });
    expect(await expirePayment(fixture.deps, id)).toEqual({ decided: true });
  });

  test("a watcher whose endpoint's newest block is minutes old does not count as caught up and expires no payment", async () => {
    const chain = await startChain();
    const fixture = await makeMerchantFixture(chain, { change: { maxHeadAgeMs: 60_000 } });
    const id = await fixture.create(100n, { expiresAt: inMinutes(fixture, 1) });
    await fixture.offer(id, await fundBuyer(chain));
    // A fork continues from the timestamp of the shared chain's last block.
    const timestamp = BigInt(Math.floor(fixture.clock.now().getTime() / 1_000) + 1);
    await chain.client.setNextBlockTimestamp({ timestamp });
    await mine(chain, 1);
    await fixture.watch();
    expect(await isCaughtUp(fixture.deps, chain.id)).toBe(true);
    fixture.clock.advance(3 * MINUTE);
    await fixture.watch();
    expect(await isCaughtUp(fixture.deps, chain.id)).toBe(false);
    expect(await expirePayment(fixture.deps, id)).toMatchObject({ decided: false });
    // A new block with an equally old timestamp does not count either.
    await mine(chain, 1);
    await fixture.watch();
    expect(await isCaughtUp(fixture.deps, chain.id)).toBe(false);
    expect(await expirePayment(fixture.deps, id)).toMatchObject({ decided: false });
    // The endpoint follows the chain again.
    await chain.client.increaseTime({ seconds: 180 });
    await mine(chain, 1);
    await fixture.watch();
    expect(await isCaughtUp(fixture.deps, chain.id)).toBe(true);
    expect(await expirePayment(fixture.deps, id)).toEqual({ decided: true });
  });

  test("money that moved before the deadline by the chain's clock pays the payment, however late the watcher reads it", async () => {
    const { chain, fixture, id, relay } = await makeSignedPayment();
    await relay();
    fixture.clock.advance(30 * MINUTE);
    expect(await expirePayment(fixture.deps, id)).toMatchObject({ decided: false });
    await fixture.watch();
    await mine(chain, 1);
    await fixture.watch();
    expect((await fixture.status(id)).state).toBe("succeeded");
  });

  test.each([
    ["block by block", 1],
    ["in a range", 60],
  ])(
    "money that moved after the deadline is an exception, even when the watcher reads both moments at once %s",
    async (_how, blocks) => {
      const { chain, fixture, id, relay } = await makeSignedPayment();
      await mine(chain, blocks);
      // A fork's clock can be minutes behind.
      const timestamp = BigInt(Math.floor(fixture.clock.now().getTime() / 1_000) + 180);
      await chain.client.setNextBlockTimestamp({ timestamp });
      await relay();
      await mine(chain, blocks);
      fixture.clock.advance(3 * MINUTE);
      await fixture.watch();
      expect((await fixture.status(id)).state).toBe("requires_action");
      expect(await expirePayment(fixture.deps, id)).toEqual({ decided: true });
      const rows = await fixture.db
        .selectFrom("ledger_entry")
        .select("amount")
        .where("account", "=", "exceptions")
        .execute();
      expect(rows).toEqual([{ amount: -1_000_000n }]);
    },
  );
});

/**
 * Returns a one-minute payment that its buyer has signed but not confirmed, and a function that relays the signature as
 * a third party.
 */
async function makeSignedPayment() {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const buyer = await fundBuyer(chain);
  const more = { expiresAt: inMinutes(fixture, 1) };
  const { paymentId: id, relay } = await signUnconfirmed(fixture, { chain, buyer, more });
  return { chain, fixture, id, relay };
}

test("a test payment expires at its deadline unless a confirm is waiting", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain, { mode: "test" });
  const [abandoned, confirmed] = [
    await fixture.create(100n, { expiresAt: inMinutes(fixture, 1) }),
    await fixture.create(100n, { expiresAt: inMinutes(fixture, 1) }),
  ];
  const buyer = await fundBuyer(chain);
  await fixture.offer(abandoned, buyer);
  const attempt = await fixture.attempt(confirmed, buyer);
  fixture.clock.advance(MINUTE);
  expect(await expirePayment(fixture.deps, abandoned)).toEqual({ decided: true });
  expect((await fixture.status(abandoned)).state).toBe("expired");
  expect(await expirePayment(fixture.deps, confirmed)).toMatchObject({ decided: false });
  await fixture.verify(attempt);
  expect((await fixture.status(confirmed)).state).toBe("succeeded");
});

test("a confirm verified after its authorization has expired is refused, and the payment expires", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const id = await fixture.create(100n, { expiresAt: inMinutes(fixture, 1) });
  const attempt = await fixture.attempt(id, await fundBuyer(chain));
  await chain.client.increaseTime({ seconds: 3_600 });
  await mine(chain, 1);
  fixture.clock.advance(60 * MINUTE);
  await fixture.watch();
  expect(await expirePayment(fixture.deps, id)).toMatchObject({ decided: false });
  await fixture.verify(attempt);
  expect(await fixture.verificationResult(attempt)).toMatchObject({ refused: expect.any(String) });
  expect(await expirePayment(fixture.deps, id)).toEqual({ decided: true });
  expect((await fixture.status(id)).state).toBe("expired");
});

test("a payment whose authorization expires unused expires too, and no money moves on chain", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const id = await fixture.create(100n, { expiresAt: inMinutes(fixture, 1) });
  await fixture.verify(await fixture.attempt(id, await fundBuyer(chain)));
  await fixture.watch();
  // No worker relays it until its deadline and the grace period have passed.
  await chain.client.increaseTime({ seconds: 3_600 });
  await mine(chain, 2);
  await fixture.watch();
  expect((await fixture.status(id)).state).toBe("expired");
  expect((await fixture.transfers()).map((row) => row.state)).toEqual(["ended"]);
  expect(fixture.announced.at(-1)).toBe(id);
  await fixture.relay();
  await fixture.watch();
  expect(await transfersTo(chain, chain.keys.treasury.address)).toEqual([]);
  expect(await fixture.db.selectFrom("ledger_entry").select("id").execute()).toEqual([]);
});
