import { afterEach, expect, test } from "vitest";
import { expirePayment } from "../../../../payments/lifecycle/expire-payment.ts";
import { makeSolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { fundSolanaBuyer, sendTokens, startTestSolana } from "../../../support/test-solana.ts";
import { waitFor } from "../../../support/wait-for.ts";

const solana = await startTestSolana({ own: true });
const fixture = await makeSolanaMerchantFixture(solana);

afterEach(async () => {
  await solana.knobs.drop(0);
  await solana.knobs.hold(0);
  await solana.knobs.setSlotMs(solana.slotMs);
  await solana.knobs.resume();
});

/** Creates a payment with an option that expires in `seconds`, and returns the memo that pays it. */
async function createExpiring(seconds: number) {
  const buyer = await fundSolanaBuyer(solana);
  const deadline = new Date(fixture.deps.now().getTime() + seconds * 1_000);
  const paymentId = await fixture.create(100n, { expiresAt: deadline });
  await fixture.offer(paymentId, buyer);
  const { authorization_nonce: memo } = await fixture.db
    .selectFrom("payment_option")
    .select("authorization_nonce")
    .where("payment_id", "=", paymentId)
    .executeTakeFirstOrThrow();
  // Block times have a resolution of one second.
  const over = deadline.getTime() + 1_500;
  const isPast = () =>
    waitFor(() => fixture.deps.now().getTime() > over, { within: 40_000, what: "the deadline is over" });
  return { paymentId, buyer, memo, isPast };
}

test("a payment expires once Solana's final history has been read past its deadline, and not while the cluster makes no slots", async () => {
  const { paymentId, isPast } = await createExpiring(15);
  await solana.knobs.pause();
  await isPast();
  await fixture.watch();
  expect(await expirePayment(fixture.deps, paymentId)).toMatchObject({ decided: false });
  await solana.knobs.resume();
  await fixture.watchUntil(async () => (await expirePayment(fixture.deps, paymentId)).decided);
  expect((await fixture.status(paymentId)).state).toBe("expired");
});

test("money that moved on Solana before the deadline pays, even if workers run only after the deadline", async () => {
  const { paymentId, buyer, memo, isPast } = await createExpiring(20);
  await sendTokens(solana, { from: buyer, to: fixture.keys.treasury.address, amount: 1_000_000n, memo });
  await isPast();
  expect(await expirePayment(fixture.deps, paymentId)).toMatchObject({ decided: false });
  await fixture.watchUntilState(paymentId, "succeeded");
});

test("money that moved on Solana after the deadline becomes an exception, even before the payment expires", async () => {
  const { paymentId, buyer, memo, isPast } = await createExpiring(15);
  await isPast();
  await sendTokens(solana, { from: buyer, to: fixture.keys.treasury.address, amount: 1_000_000n, memo });
  const exceptions = async () =>
    (await fixture.db.selectFrom("ledger_entry").select("amount").where("account", "=", "exceptions").execute()).length;
  await fixture.watchUntil(async () => (await exceptions()) > 0);
  await fixture.watchUntil(async () => (await expirePayment(fixture.deps, paymentId)).decided);
  expect((await fixture.status(paymentId)).state).toBe("expired");
});
