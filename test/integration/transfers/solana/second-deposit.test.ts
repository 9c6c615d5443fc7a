import { afterEach, expect, test } from "vitest";
import { unwrap } from "../../../support/merchant-fixture.ts";
import { waitFinalized } from "../../../support/solana-history.ts";
import { makeSolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { fundSolanaBuyer, sendTokens, startTestSolana, tokenBalance } from "../../../support/test-solana.ts";

const solana = await startTestSolana({ own: true, slotMs: 400 });

const { connection } = solana.client;
const finalSlot = () => connection.getSlot("finalized");

afterEach(async () => {
  await solana.knobs.drop(0);
  await solana.knobs.resume();
});

/**
 * A payment whose submitted transaction the cluster has not received, and which its buyer has paid by a transfer of their own with
 * the same memo.
 */
async function makePaidBefore() {
  const fixture = await makeSolanaMerchantFixture(solana, { change: { finality: "finalized" } });
  const buyer = await fundSolanaBuyer(solana, 2_000_000n);
  const paymentId = await fixture.create();
  await fixture.verify(await fixture.attempt(paymentId, buyer));
  await solana.knobs.drop("all");
  await fixture.submit();
  await solana.knobs.drop(0);
  const [transfer] = await fixture.transfers();
  const memo = transfer?.authorization_nonce ?? "";
  const to = fixture.keys.treasury.address;
  await waitFinalized(solana, await sendTokens(solana, { from: buyer, to, amount: 1_000_000n, memo }));
  // The next pass is not a full one, and a later one checks whether slots have disappeared.
  await solana.knobs.pause();
  while ((await finalSlot()) % 25 !== 20) await solana.knobs.jump(1);
  await fixture.watchOnly();
  await fixture.readHistory();
  expect((await fixture.transfers())[0]?.state).toBe("included");
  const bookings = async (kind: "payment" | "unmatched") =>
    (await fixture.db.selectFrom("ledger_group").select("id").where("kind", "=", kind).execute()).length;
  const expectTwoDeposits = async () => {
    await fixture.watchUntilState(paymentId, "succeeded");
    await fixture.watchUntil(async () => (await bookings("unmatched")) > 0);
    expect([await bookings("payment"), await bookings("unmatched")]).toEqual([1, 1]);
    expect(await tokenBalance(solana, buyer.address)).toBe(0n);
    expect(unwrap(await fixture.reconcile()).map(({ difference }) => difference)).toEqual([0n, 0n]);
  };
  /** Broadcasts the payment's own transaction, and makes it land while the head stays below a slot that a full pass needs. */
  const land = async () => {
    const [own] = (await fixture.transactions()).slice(-1);
    await connection.sendRawTransaction(own?.bytes ?? Buffer.alloc(0), { skipPreflight: true });
    await solana.knobs.jump(2);
    await fixture.watchOnly();
    expect((await fixture.transactions()).at(-1)?.state).toBe("included");
    expect((await fixture.transfers())[0]?.state).toBe("included");
    return own?.hash;
  };
  return { fixture, expectTwoDeposits, land };
}

test("a payment that its buyer has also paid by a transfer of their own succeeds once, and the second deposit is an exception", async () => {
  const { expectTwoDeposits, land } = await makePaidBefore();
  await land();
  await solana.knobs.resume();
  await expectTwoDeposits();
});

test("a buyer's own transfer keeps proving a payment when the slot of the payment's transaction disappears", async () => {
  const { fixture, expectTwoDeposits, land } = await makePaidBefore();
  const own = await land();
  expect(await solana.knobs.rollback(3)).toEqual([own]);
  while ((await finalSlot()) % 25 !== 0) await solana.knobs.jump(1);
  await fixture.watchOnly();
  expect((await fixture.transactions()).at(-1)?.state).not.toBe("included");
  expect((await fixture.transfers())[0]?.state).not.toBe("assigned");
  await solana.knobs.resume();
  await expectTwoDeposits();
});
