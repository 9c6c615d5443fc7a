import { PublicKey, SystemProgram } from "@solana/web3.js";
import { afterEach, expect, test } from "vitest";
import { keypairOf, sendAll } from "../../../../local/solana-client.ts";
import { startAlteringProxy } from "../../../support/altering-proxy.ts";
import { makeSolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { fundSolanaBuyer, startTestSolana, tokenBalance } from "../../../support/test-solana.ts";

const solana = await startTestSolana({ own: true });
const liar = await startAlteringProxy({ target: solana.url });
const FAR = 1_000_000;

afterEach(async () => {
  liar.alter(undefined);
  await solana.knobs.drop(0);
});

/** A payout that was signed while the first endpoint reports slots that are far too high, and that no leader gets. */
async function signPayout() {
  const fixture = await makeSolanaMerchantFixture(solana, { rpcUrls: [liar.url, solana.url] });
  const { id } = await fixture.settlementOf(await fixture.pay(await fundSolanaBuyer(solana)));
  expect(await fixture.settle(id)).toEqual(["begun"]);
  const payouts = async () => (await fixture.transactions()).filter(({ nonce_account }) => nonce_account !== null);
  const isPaid = async () =>
    (await fixture.db.selectFrom("settlement").select("state").where("id", "=", id).executeTakeFirstOrThrow()).state ===
    "paid";
  inventSlots("getMultipleAccounts");
  await solana.knobs.drop("all");
  await fixture.submit();
  liar.alter(undefined);
  const [signed] = await payouts();
  expect(signed?.nonce_slot).toBeGreaterThan(FAR);
  const watchLater = async (slots: number) => {
    await solana.knobs.jump(slots);
    fixture.clock.advance(2_000);
    for (let pass = 0; pass < 2; pass += 1) {
      await solana.knobs.jump(5);
      await fixture.watch();
    }
  };
  return { fixture, payouts, isPaid, watchLater };
}

function inventSlots(called: string): void {
  liar.alter((method, _params, result) => {
    if (method !== called) return result;
    const { context, ...rest } = result as { context: { slot: number } };
    return { context: { ...context, slot: context.slot + FAR }, ...rest };
  });
}

test("a payout is signed again at a higher price although one endpoint reported slots that are far too high", async () => {
  const { fixture, payouts, isPaid, watchLater } = await signPayout();
  await watchLater(60);
  expect(await payouts()).toHaveLength(2);
  // The next price waits for the slot of this one.
  inventSlots("getSignatureStatuses");
  await watchLater(60);
  expect((await payouts()).length).toBeGreaterThan(2);
  const final = await solana.client.connection.getSlot("finalized");
  for (const { nonce_slot: slot } of (await payouts()).slice(1)) expect(slot).toBeLessThan(final + 2_000);
  liar.alter(undefined);
  await solana.knobs.drop(0);
  await fixture.watchUntil(isPaid);
  expect(await tokenBalance(solana, fixture.destination)).toBe(1_000_000n);
});

test("a payout whose nonce was used elsewhere is signed anew although one endpoint reported a slot that is far too high", async () => {
  const { fixture, payouts, isPaid } = await signPayout();
  await solana.knobs.drop(0);
  const [signed] = await payouts();
  const noncePubkey = new PublicKey(signed?.nonce_account ?? "");
  const treasury = keypairOf(fixture.keys.treasury);
  const advance = SystemProgram.nonceAdvance({ noncePubkey, authorizedPubkey: treasury.publicKey });
  await sendAll(solana.client, [{ instructions: [advance], signers: [treasury] }]);
  await solana.knobs.jump(5);
  const stateOf = async () => (await payouts())[0]?.state;
  await fixture.watchUntil(async () => (await stateOf()) === "expired", 60_000);
  fixture.clock.advance(60_000);
  // The treasury signs once the watcher and the history have caught up with the clock.
  const isRetried = async () => {
    await fixture.submit();
    return isPaid();
  };
  await fixture.watchUntil(isRetried);
  expect(await tokenBalance(solana, fixture.destination)).toBe(1_000_000n);
});
