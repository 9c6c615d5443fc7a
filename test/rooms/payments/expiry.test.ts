import { describe, expect, test } from "vitest";
import { expirePayment } from "../../../payments/expire.ts";
import { fundBuyer, mine, startChain, transfersTo } from "../../support/chain.ts";
import { makeTill, type Till } from "../../support/till.ts";

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

  test("takes no verified attempt any more, though nothing has expired it yet", async () => {
    const chain = await startChain();
    const till = await makeTill(chain);
    const id = await till.create(100n, { expiresAt: inMinutes(till, 1) });
    const attempt = await till.attempt(id, await fundBuyer(chain));
    till.clock.advance(MINUTE);
    await till.verify(attempt);
    expect(await till.verdict(attempt)).toMatchObject({ refused: expect.any(String) });
    expect(await till.transfers()).toEqual([]);
    expect((await till.status(id)).state).toBe("requires_action");
    await expirePayment(till.deps, id);
    expect((await till.status(id)).state).toBe("expired");
  });

  test("and a verdict that race for it: exactly one wins, and a transfer is there only when it is the verdict", async () => {
    const chain = await startChain();
    // One clock stands a moment before the deadline and the other one behind it, as on two machines.
    const verifies = await makeTill(chain);
    const expires = await makeTill(chain, { databaseUrl: verifies.databaseUrl });
    const expiresAt = inMinutes(verifies, 1);
    expires.clock.advance(MINUTE + 1_000);
    const ends = { processing: 0, expired: 0 } as Record<string, number>;
    for (let round = 0; round < 12; round += 1) {
      const id = await verifies.create(100n, { expiresAt });
      const attempt = await verifies.attempt(id, await fundBuyer(chain));
      // Verification asks the chain first: every other round the expiry waits about as long.
      const late = round % 2 === 0 ? 0 : 4 + round;
      await Promise.all([
        verifies.verify(attempt),
        new Promise((resolve) => setTimeout(resolve, late)).then(() => expirePayment(expires.deps, id)),
      ]);
      const { state, stateVersion } = await verifies.status(id);
      expect(stateVersion).toBe(1);
      const transfers = (await verifies.transfers()).filter((row) => row.payment_id === id);
      expect(transfers).toHaveLength(state === "processing" ? 1 : 0);
      expect(await verifies.verdict(attempt)).toEqual(
        state === "processing" ? "verified" : { refused: expect.any(String) },
      );
      ends[state] = (ends[state] ?? 0) + 1;
    }
    expect(Object.keys(ends).sort()).toEqual(["expired", "processing"]);
  });
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
