import { sql } from "kysely";
import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { debitMerchant } from "../../../db/ledger.ts";
import { moveRows } from "../../../db/moves.ts";
import { newKey } from "../../../ops/local/networks-document.ts";
import { listDestinations } from "../../../payments/destinations.ts";
import { takeOthers } from "../../../payments/payout-policies.ts";
import { refundPayment } from "../../../payments/refund.ts";
import { fundBuyer } from "../../support/chain.ts";
import { mintTestToken, startKinds, tokenOf, write } from "../../support/kinds.ts";
import { good, makeTill, type Till } from "../../support/till.ts";
import { waitFor } from "../../support/wait-for.ts";

const kinds = await startKinds();
const { chain, assets } = kinds;

const requestRefund = async (of: Till, paymentId: string, value?: bigint) => {
  const amount = value === undefined ? undefined : { unit: "iso4217/USD", value };
  return good(await refundPayment(of.deps, { paymentId, mode: of.mode, amount })).refundId;
};
const balanceOf = async (of: Till) =>
  (await of.db.selectFrom("merchant_balance").select("amount").executeTakeFirstOrThrow()).amount;
const refundsSent = async (of: Till) => (await of.transfers()).filter(({ purpose }) => purpose === "refund");

test("a refund waits if the settlements that have not begun sum to less than it, whatever the balance is", async () => {
  const till = await makeTill(chain);
  const paid = await till.pay(await fundBuyer(chain), 500n);
  await till.settle((await till.settlementOf(paid)).id);
  const open = await till.pay(await fundBuyer(chain), 100n);
  // Simulates a half-finished booking.
  await till.db.updateTable("merchant_balance").set({ amount: sql`amount + 9000000` }).execute();
  expect(await till.refund(await requestRefund(till, paid))).toEqual(["balance_short"]);
  expect(await balanceOf(till)).toBe(10_000_000n);
  expect(await till.settlementOf(open)).toMatchObject({ state: "due", amount: 1_000_000n });
  expect(await refundsSent(till)).toEqual([]);
});

test("a refund whose settlement begins while it waits for the lock deducts from another settlement", async () => {
  const till = await makeTill(chain);
  const first = await till.pay(await fundBuyer(chain), 1_000n);
  const second = await till.pay(await fundBuyer(chain), 1_000n);
  const { id, asset } = await till.settlementOf(first);
  const refundId = await requestRefund(till, first, 400n);
  const waiting = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<void>();
  const beginning = till.db.transaction().execute(async (db) => {
    await sql`select from settlement where id = ${id} for update`.execute(db);
    locked.resolve();
    await waiting.promise;
    await moveRows(db, "settlement", { ids: [id], from: "due", to: "paying", at: new Date() });
    await debitMerchant(db, { merchantId: till.merchantId, asset, amount: 10_000_000n });
  });
  await locked.promise;
  const refunding = till.refund(refundId);
  const isWaiting = async () => {
    const { rows } = await sql`
      select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`.execute(till.db);
    return rows.length > 0;
  };
  await waitFor(isWaiting, { within: 20_000, what: "the refund waits for the settlement" });
  waiting.resolve();
  await beginning;
  expect(await refunding).toEqual(["begun"]);
  expect(await till.settlementOf(second)).toMatchObject({ state: "due", amount: 6_000_000n });
  expect(await balanceOf(till)).toBe(6_000_000n);
});

test("a refund that several processes begin concurrently is reported as begun to each and deducted once", async () => {
  const till = await makeTill(chain);
  const other = await makeTill(chain, { databaseUrl: till.databaseUrl, clock: till.clock });
  const paymentId = await till.pay(await fundBuyer(chain), 400n);
  await till.pay(await fundBuyer(chain), 100n);
  await other.watch();
  const refundId = await requestRefund(till, paymentId);
  const outcomes = await Promise.all([till, other, till, other].map((one) => one.refund(refundId)));
  expect(outcomes.flat()).toEqual(Array(4).fill("begun"));
  expect(await balanceOf(till)).toBe(1_000_000n);
  expect(await refundsSent(till)).toHaveLength(1);
});

test("a refund in another asset waits if the treasury no longer holds that asset", async () => {
  const till = await makeTill(chain, { change: kinds.change, assets: [assets.usdc] });
  const { accountId, merchantId, mode, deps } = till;
  const [destination] = good(await listDestinations(deps, { accountId, merchantId, mode }));
  good(await takeOthers(deps, { accountId, merchantId, mode, id: destination?.id ?? "", take: true }));
  const buyer = privateKeyToAccount(newKey().privateKey);
  await mintTestToken(chain, assets.permit, buyer.address);
  const paymentId = await till.pay(buyer, 200n);
  const treasury = privateKeyToAccount(chain.keys.treasury.privateKey);
  await chain.client.setBalance({ address: treasury.address, value: 10n ** 18n });
  const elsewhere = [newKey().address, 2_000_000n];
  await write(chain, { token: tokenOf(assets.permit), functionName: "transfer", args: elsewhere, by: treasury });
  await till.watch();
  expect(await till.refund(await requestRefund(till, paymentId))).toEqual(["balance_short"]);
  expect(await balanceOf(till)).toBe(2_000_000n);
  expect(await refundsSent(till)).toEqual([]);
});
