import { expect, test } from "vitest";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { fundBuyer, startChain } from "../../../support/evm-chain.ts";
import { isCaughtUp } from "../../../support/is-caught-up.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";

const chain = await startChain();

/** Makes the database look older than what this process has seen, as after a failover that lost commits. */
async function loseCommits(fixture: MerchantFixture): Promise<void> {
  await fixture.deps.epoch.tick();
  await fixture.db.updateTable("database_epoch").set({ count: -1 }).execute();
}

test("after the database has lost commits, no EVM payout is signed until the chain has been read again", async () => {
  const fixture = await makeMerchantFixture(chain);
  const { id } = await fixture.settlementOf(await fixture.pay(await fundBuyer(chain)));
  await fixture.watch();
  expect(await isCaughtUp(fixture.deps, chain.id)).toBe(true);
  await loseCommits(fixture);
  expect(await fixture.settle(id)).toEqual(["watcher_behind"]);
  expect(fixture.lines.join()).toContain("database lost commits");
  expect((await fixture.transfers()).filter(({ purpose }) => purpose === "settlement")).toEqual([]);
  await fixture.watch();
  expect(await isCaughtUp(fixture.deps, chain.id)).toBe(true);
  expect(await fixture.settle(id)).toEqual(["begun"]);
});

test("a payout and a refund whose transactions race a failover are rolled back and begun again later", async () => {
  const fixture = await makeMerchantFixture(chain);
  const buyer = await fundBuyer(chain);
  const paymentId = await fixture.pay(buyer);
  const { id } = await fixture.settlementOf(await fixture.pay(await fundBuyer(chain)));
  await fixture.watch();
  // The failover happens between the check and the transaction.
  const { check } = fixture.deps.epoch;
  const late = async () => {
    const epoch = await check();
    await loseCommits(fixture);
    return epoch;
  };
  const reread = async () => {
    fixture.deps.epoch.check = check;
    await check();
    await fixture.watch();
  };
  fixture.deps.epoch.check = late;
  expect(await fixture.settle(id)).toEqual(["watcher_behind"]);
  await reread();
  const { refundId } = unwrap(await refundPayment(fixture.deps, { actor: testActor, paymentId, mode: "live" }));
  fixture.deps.epoch.check = late;
  expect(await fixture.refund(refundId)).toEqual(["watcher_behind"]);
  expect((await fixture.transfers()).filter(({ purpose }) => purpose !== "payment")).toEqual([]);
  await reread();
  expect(await fixture.refund(refundId)).toEqual(["begun"]);
  expect(await fixture.settle(id)).toEqual(["begun"]);
});
