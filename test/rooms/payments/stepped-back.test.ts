import { expect, test } from "vitest";
import { refundPayment } from "../../../payments/refund.ts";
import { isCaughtUp } from "../../../transfers/caught-up.ts";
import { fundBuyer, startChain } from "../../support/chain.ts";
import { good, makeTill, type Till } from "../../support/till.ts";

const chain = await startChain();

/** The database is from an earlier time from now on, for a process that has seen more. */
async function stepBack(till: Till): Promise<void> {
  await till.deps.epoch.tick();
  await till.db.updateTable("database_epoch").set({ count: -1 }).execute();
}

test("after the database has stepped back no payout is signed on EVM until the chain was read again", async () => {
  const till = await makeTill(chain);
  const { id } = await till.settlementOf(await till.pay(await fundBuyer(chain)));
  await till.watch();
  expect(await isCaughtUp(till.deps, chain.id)).toBe(true);
  await stepBack(till);
  expect(await till.settle(id)).toEqual(["watcher_behind"]);
  expect(till.lines.join()).toContain("database lost commits");
  expect((await till.transfers()).filter(({ purpose }) => purpose === "settlement")).toEqual([]);
  await till.watch();
  expect(await isCaughtUp(till.deps, chain.id)).toBe(true);
  expect(await till.settle(id)).toEqual(["begun"]);
});

test("a payout and a refund whose signatures are stored in a database that has just stepped back are undone", async () => {
  const till = await makeTill(chain);
  const buyer = await fundBuyer(chain);
  const paymentId = await till.pay(buyer);
  const { id } = await till.settlementOf(await till.pay(await fundBuyer(chain)));
  await till.watch();
  // The check has passed by then: a failover comes between it and the transaction.
  const { check } = till.deps.epoch;
  const late = async () => {
    const epoch = await check();
    await stepBack(till);
    return epoch;
  };
  const readAgain = async () => {
    till.deps.epoch.check = check;
    await check();
    await till.watch();
  };
  till.deps.epoch.check = late;
  expect(await till.settle(id)).toEqual(["watcher_behind"]);
  await readAgain();
  const { refundId } = good(await refundPayment(till.deps, { paymentId, mode: "live" }));
  till.deps.epoch.check = late;
  expect(await till.refund(refundId)).toEqual(["watcher_behind"]);
  expect((await till.transfers()).filter(({ purpose }) => purpose !== "payment")).toEqual([]);
  await readAgain();
  expect(await till.refund(refundId)).toEqual(["begun"]);
  expect(await till.settle(id)).toEqual(["begun"]);
});
