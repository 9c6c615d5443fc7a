import { privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { insertObservations } from "../../../../db/queries/observations.ts";
import { newKey } from "../../../../local/networks-document.ts";
import { checkLedger } from "../../../../payments/accounting/check-ledger.ts";
import { retryPayment } from "../../../../payments/maintenance/operator-actions.ts";
import { listDestinations } from "../../../../payments/merchants/destinations.ts";
import { setFee } from "../../../../payments/merchants/fee-policies.ts";
import { setAcceptsOtherAssets } from "../../../../payments/payouts/payout-policies.ts";
import { type RefundAmount, refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { roleUrl } from "../../../support/database-roles.ts";
import { fundBuyer } from "../../../support/evm-chain.ts";
import { execute } from "../../../support/execute-sql.ts";
import { type MerchantFixture, makeMerchantFixture, signOption, unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";
import { deployTestContract, testContract } from "../../../support/test-contracts.ts";
import { mintTestToken, startTokenKinds } from "../../../support/token-kinds.ts";

const kinds = await startTokenKinds();
const { chain, assets } = kinds;

const requestRefund = (of: MerchantFixture, paymentId: string, amount?: RefundAmount) =>
  refundPayment(of.deps, { actor: testActor, paymentId, mode: of.mode, amount });
const refund = async (of: MerchantFixture, paymentId: string, amount?: RefundAmount) => {
  const { refundId } = unwrap(await requestRefund(of, paymentId, amount));
  return of.db.selectFrom("refund").selectAll().where("id", "=", refundId).executeTakeFirstOrThrow();
};

test("a partial refund in the payment's currency is rounded down to the asset, and the last refund takes the remainder", async () => {
  const fixture = await makeMerchantFixture(chain);
  const feed = await deployTestContract(chain.client, "Feed", "Feed");
  const source = { base: "iso4217/EUR", quote: "iso4217/USD", chain: chain.id, feed, maxAgeSeconds: 3_600 };
  Object.assign(fixture.deps, { networks: { ...fixture.deps.networks, prices: [source] } });
  const { abi } = testContract("Feed", "Feed");
  const args = [108_512_345n, BigInt(Math.floor(Date.now() / 1_000))];
  const hash = await chain.client.writeContract({ address: feed, abi, functionName: "set", args });
  await chain.client.waitForTransactionReceipt({ hash });

  const paymentId = await fixture.create(1n, { amount: { unit: "iso4217/EUR", value: 1_001n } });
  await fixture.verify(await fixture.attempt(paymentId, await fundBuyer(chain)));
  await fixture.relay();
  await fixture.watch();
  const none = await requestRefund(fixture, paymentId, { unit: "iso4217/EUR", value: 0n });
  expect(none).toMatchObject({ ok: false, code: "params_validation" });
  // The buyer paid 10.862086: 3.33 of 10.01 euros are 3.613461177… of that.
  expect((await refund(fixture, paymentId, { unit: "iso4217/EUR", value: 333n })).amount).toBe(3_613_461n);
  expect((await refund(fixture, paymentId)).amount).toBe(10_862_086n - 3_613_461n);
});

/** Makes a merchant that is paid out in USDC, and a buyer who has a token of two more decimals. */
async function makeFinerToken() {
  // A token with two more decimals than USDC.
  const entries = kinds.change["assets"] as { asset: string }[];
  const finer = entries.map((entry) => (entry.asset === assets.permit ? { ...entry, decimals: 8 } : entry));
  const fixture = await makeMerchantFixture(chain, {
    change: { ...kinds.change, assets: finer },
    assets: [assets.usdc],
  });
  const { accountId, merchantId, mode, deps } = fixture;
  const [destination] = unwrap(await listDestinations(deps, { accountId, merchantId, mode }));
  unwrap(
    await setAcceptsOtherAssets(deps, {
      actor: testActor,
      accountId,
      merchantId,
      mode,
      id: destination?.id ?? "",
      accept: true,
    }),
  );
  const buyer = privateKeyToAccount(newKey().privateKey);
  await mintTestToken(chain, assets.permit, buyer.address);
  return { fixture, buyer };
}

/** Pays one USDC's worth with a token of two more decimals to a merchant that is paid out in USDC. */
async function payWithFinerToken() {
  const { fixture, buyer } = await makeFinerToken();
  const paymentId = await fixture.pay(buyer);
  const balance = async () =>
    (await fixture.db.selectFrom("merchant_balance").select("amount").executeTakeFirstOrThrow()).amount;
  expect(await balance()).toBe(1_000_000n);
  return { fixture, paymentId, balance };
}

test("a refund in another asset is deducted from the merchant's balance rounded up, so that no other merchant pays the fraction", async () => {
  const { fixture, paymentId, balance } = await payWithFinerToken();
  const part = await refund(fixture, paymentId, { unit: `caip19/${assets.permit}`, value: 150n });
  expect(part).toMatchObject({ amount: 150n, owed_asset: assets.usdc, owed_amount: 2n });
  expect(await fixture.refund(part.id)).toEqual(["begun"]);
  expect(await balance()).toBe(999_998n);

  // What the api writes cannot make a refund draw on another balance, draw less or add to the balance.
  const asApi = await roleUrl(fixture.databaseUrl, "api");
  const insert = (id: string, columns = "", values = "") => `
    insert into refund (id, payment_id, number, amount, state, created_at, updated_at, due_at${columns})
    values ('${id}', '${paymentId}', 2, 150, 'due', now(), now(), now()${values})`;
  const forged = insert("rfnd_forged", ", owed_asset, owed_amount", `, '${assets.permit}', -1000000000000`);
  await expect(execute(asApi, forged)).rejects.toThrow("permission denied");
  await execute(asApi, insert("rfnd_second"));
  const drawn = await execute(asApi, "select owed_asset, owed_amount from refund where id = 'rfnd_second'");
  expect(drawn).toEqual([{ owed_asset: assets.usdc, owed_amount: "2" }]);
  await expect(execute(fixture.databaseUrl, forged.replace(", 2,", ", 3,"))).rejects.toThrow("owed_amount_check");
});

test("a restored database adopts a converted refund that lacks less than a minor unit of what it draws, and sends the remainder", async () => {
  const { fixture, paymentId, balance } = await payWithFinerToken();
  const { db, deps } = fixture;
  const { id } = await refund(fixture, paymentId, { unit: `caip19/${assets.permit}`, value: 150n });
  expect(await fixture.refund(id)).toEqual(["begun"]);
  const transferOf = async (refundId: string) => {
    const transfer = (await fixture.transfers()).find(({ refund_id }) => refund_id === refundId);
    if (!transfer) throw new Error("the refund has no transfer");
    return transfer;
  };
  const { token, payer, receiver, authorization_nonce } = await transferOf(id);
  const place = { chain: chain.id, block_id: "0x01", block_number: 1, tx_hash: "0x02", log_index: 0 };
  const movement = { token, payer, receiver, amount: 149n, authorization_nonce, booked: true };
  await insertObservations(db, [{ ...place, ...movement, transfer_id: null, observed_at: deps.now() }]);
  await fixture.relay();
  expect(await transferOf(id)).toMatchObject({ state: "included", amount: 149n });
  // Of the two minor units that were drawn, 149/150 are 1.99.
  const refunds = await db.selectFrom("refund").selectAll().orderBy("number").execute();
  expect(refunds).toMatchObject([
    { id, amount: 149n, owed_amount: 2n, state: "paying" },
    { amount: 1n, owed_amount: 1n, state: "due" },
  ]);
  expect(await balance()).toBe(999_998n);
  expect(await checkLedger(db, { since: undefined })).toEqual([]);
  expect(await fixture.refund(refunds[1]?.id ?? "")).toEqual(["begun"]);
  expect(await balance()).toBe(999_997n);
});

test("the retry of a payment in another asset unblocks the queue of its refund, which is that of the owed asset", async () => {
  const { fixture, paymentId } = await payWithFinerToken();
  await refund(fixture, paymentId, { unit: `caip19/${assets.permit}`, value: 150n });
  const { db, deps } = fixture;
  const blocked = { blocked_by: "paused", blocked_at: deps.now(), due_at: new Date(deps.now().getTime() + 600_000) };
  await db.updateTable("payout_queue").where("kind", "=", "refund").set(blocked).execute();
  expect((await retryPayment(deps, { actor: testActor, paymentId }))?.due).toMatchObject({ refunds: 1 });
  const queues = await db.selectFrom("payout_queue").selectAll().where("kind", "=", "refund").execute();
  expect(queues).toMatchObject([{ asset: assets.usdc, blocked_by: null, due_at: blocked.blocked_at }]);
});

test("a payment in another asset whose fee leaves less than a minor unit of what is owed is not offered, so that no refund draws more than it sends", async () => {
  const { fixture, buyer } = await makeFinerToken();
  const { accountId, deps } = fixture;
  const charge = (fixedMicros: bigint) =>
    setFee(deps, { actor: testActor, accountId, merchantId: null, basisPoints: 0, fixedMicros });
  // A quote from before the fee still pays, by its own terms.
  const early = await fixture.create(25n);
  const [quoted] = await fixture.offer(early, buyer);
  if (!quoted) throw new Error("the payment has no option");
  await charge(300_000n);
  expect(await fixture.offer(early, buyer)).toEqual([]);
  const { attemptId } = unwrap(await fixture.confirm(early, quoted.id, await signOption(quoted, buyer, chain)));
  await fixture.verify(attemptId ?? "");
  await fixture.relay();
  await fixture.watch();
  expect(await fixture.settlementOf(early)).toMatchObject({ asset: assets.usdc, amount: 250_000n });
  expect(await refund(fixture, early)).toMatchObject({ amount: 25_000_000n, owed_amount: 250_000n });

  expect(await fixture.offer(await fixture.create(25n), buyer)).toEqual([]);
  expect(await fixture.offer(await fixture.create(30n), buyer)).toEqual([]);
  const paymentId = await fixture.pay(buyer, 31n);
  expect(await fixture.settlementOf(paymentId)).toMatchObject({ asset: assets.usdc, amount: 10_000n });
  expect(await refund(fixture, paymentId)).toMatchObject({ amount: 31_000_000n, owed_amount: 310_000n });
});
