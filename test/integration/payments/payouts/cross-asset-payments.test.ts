import { sql } from "kysely";
import { type PrivateKeyAccount, privateKeyToAccount } from "viem/accounts";
import { expect, test } from "vitest";
import { lockInventory } from "../../../../db/queries/inventory.ts";
import { listBalances } from "../../../../db/queries/ledger-balances.ts";
import { newKey } from "../../../../local/networks-document.ts";
import { signAsWallet } from "../../../../local/solana-buyer.ts";
import { fundSol } from "../../../../local/solana-client.ts";
import { newSolanaKeys } from "../../../../local/solana-entry.ts";
import { reconcileChain } from "../../../../payments/accounting/reconcile-chain.ts";
import { bookException, listExceptions } from "../../../../payments/accounting/resolve-exceptions.ts";
import { createBookingHandlers } from "../../../../payments/lifecycle/book-transfers.ts";
import { listPaymentViews } from "../../../../payments/lifecycle/list-payments.ts";
import { createSendHandlers } from "../../../../payments/lifecycle/relay-transfers.ts";
import { listDestinations } from "../../../../payments/merchants/destinations.ts";
import { setFee } from "../../../../payments/merchants/fee-policies.ts";
import { listActions, listOptions } from "../../../../payments/options/list-options.ts";
import { dispatchSettlements } from "../../../../payments/payouts/dispatch-payouts.ts";
import { setAcceptsOtherAssets } from "../../../../payments/payouts/payout-policies.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { submitReady } from "../../../../transfers/solana/submit-ready.ts";
import { watchChain } from "../../../../transfers/watch-pass.ts";
import { fundBuyer, sendUsdc, startChain, usdcBalance } from "../../../support/evm-chain.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { readStatementSince } from "../../../support/statement-sums.ts";
import { testActor } from "../../../support/test-actor.ts";
import { fundSolanaBuyer, startTestSolana, tokenBalance } from "../../../support/test-solana.ts";
import { mintTestToken, startTokenKinds, testTokenBalance } from "../../../support/token-kinds.ts";
import { waitFor } from "../../../support/wait-for.ts";

const kinds = await startTokenKinds();
const { chain, assets } = kinds;
const UNIT = 1_000_000n;
/** The merchant is paid out in USDC only. */
const fixture = await makeMerchantFixture(chain, { change: kinds.change, assets: [assets.usdc] });
const { deps, accountId, merchantId } = fixture;
const started = deps.now();
const owner = { accountId, merchantId, mode: fixture.mode };
const [{ id: destination } = { id: "" }] = unwrap(await listDestinations(deps, owner));
const booked = async (account: string, asset: string) =>
  (await listBalances(fixture.db, { account, asset }))[0]?.amount ?? 0n;

async function makeBuyer(): Promise<PrivateKeyAccount> {
  const buyer = privateKeyToAccount(newKey().privateKey);
  await mintTestToken(chain, assets.permit, buyer.address);
  return buyer;
}
async function payWith(buyer: PrivateKeyAccount, cents = 1_000n): Promise<string> {
  const paymentId = await fixture.pay(buyer, cents);
  expect((await fixture.status(paymentId)).state).toBe("succeeded");
  return paymentId;
}
const settle = async (of: MerchantFixture, paymentId: string) => {
  const outcome = await of.settle((await of.settlementOf(paymentId)).id);
  await of.relay();
  await of.watch();
  return outcome;
};
async function expectReconciled() {
  const lines = unwrap(await reconcileChain(deps, { chain: chain.id }));
  expect(lines.filter(({ difference }) => difference !== 0n)).toEqual([]);
}
/** Deposits USDC into the treasury and books it as the operator's capital. */
async function addInventory(amount: bigint) {
  await sendUsdc(chain, await fundBuyer(chain), chain.keys.treasury.address, amount);
  await fixture.watch();
  const one = (await listExceptions(deps, 50)).at(-1);
  unwrap(await bookException(deps, { actor: testActor, id: one?.id ?? 0, as: "capital", note: "inventory" }));
}

/** Returns what blocks the merchant's USDC payouts, or null. */
async function readBlockedBy(): Promise<string | null> {
  const query = fixture.db.selectFrom("payout_queue").select("blocked_by").where("asset", "=", assets.usdc);
  return (await query.where("merchant_id", "=", merchantId).executeTakeFirstOrThrow()).blocked_by;
}

test("another asset is offered only if its merchant takes other assets", async () => {
  expect(await fixture.offer(await fixture.create(), await makeBuyer())).toEqual([]);
});

test("a payment in another asset is settled in the merchant's asset once inventory covers it, and never with other merchants' money", async () => {
  unwrap(await setAcceptsOtherAssets(deps, { actor: testActor, ...owner, id: destination, accept: true }));
  const other = await makeMerchantFixture(chain, {
    change: kinds.change,
    assets: [assets.usdc],
    databaseUrl: fixture.databaseUrl,
  });
  const theirs = await other.pay(await fundBuyer(chain), 1_500n);
  const buyer = await makeBuyer();
  const paymentId = await payWith(buyer);
  expect(await testTokenBalance(chain, assets.permit, buyer.address)).toBe(990n * UNIT);
  expect(await fixture.settlementOf(paymentId)).toMatchObject({
    asset: assets.usdc,
    amount: 10n * UNIT,
    converted: true,
  });
  expect(await booked("exchange", assets.permit)).toBe(-10n * UNIT);
  expect(await booked("exchange", assets.usdc)).toBe(10n * UNIT);
  expect(await booked(`payable:${merchantId}`, assets.usdc)).toBe(-10n * UNIT);

  // The treasury holds fifteen USDC that belong to the other merchant.
  expect(await settle(fixture, paymentId)).toEqual(["inventory_short"]);
  expect(await dispatchSettlements(deps, [(await fixture.settlementOf(paymentId)).id])).toEqual(["inventory_short"]);
  expect(await readBlockedBy()).toBe("inventory_short");
  expect(fixture.lines.some((line) => line.includes("inventory of an asset is short"))).toBe(true);
  const own = await fixture.pay(await fundBuyer(chain), 100n);
  expect(await settle(fixture, own)).toEqual(["begun"]);
  expect(await settle(other, theirs)).toEqual(["begun"]);
  expect(await usdcBalance(chain, other.destination)).toBe(15n * UNIT);

  await addInventory(12n * UNIT);
  expect(await readBlockedBy()).toBeNull();
  expect(await settle(fixture, paymentId)).toEqual(["begun"]);
  expect(await usdcBalance(chain, fixture.destination)).toBe(11n * UNIT);
  await expectReconciled();
  const query = { accountId, mode: "live", sortBy: "date", sortDir: "asc", limit: 2 } as const;
  expect(unwrap(await listPaymentViews(deps, query)).items[1]).toMatchObject({
    tokenAmount: { unit: `caip19/${assets.permit}`, value: 10n * UNIT },
    settlement: { settled: true, amount: { unit: `caip19/${assets.usdc}`, value: 10n * UNIT } },
  });
  const statement = await readStatementSince({ deps, merchantId }, started);
  expect(statement).toMatchObject({ asset: assets.usdc, payments: 11n * UNIT, settled: 11n * UNIT, closing: 0n });
});

test("two converted payouts that compete for inventory for one are paid one after the other", async () => {
  const ids = [await payWith(await makeBuyer(), 200n), await payWith(await makeBuyer(), 200n)];
  const settlements = await Promise.all(ids.map((id) => fixture.settlementOf(id)));
  const { settling } = await fixture.db.transaction().execute(async (db) => {
    await lockInventory(db, assets.usdc);
    const both = Promise.all(settlements.map(({ id }) => fixture.settle(id)));
    const areWaiting = async () => {
      const { rows } = await sql`
        select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`.execute(
        fixture.db,
      );
      return rows.length === 2;
    };
    await waitFor(areWaiting, { within: 10_000, what: "both payouts wait for the inventory" });
    return { settling: both };
  });
  const outcomes = (await settling).flat();
  expect(outcomes.toSorted()).toEqual(["begun", "inventory_short"]);
  await fixture.relay();
  await fixture.watch();
  await addInventory(2n * UNIT);
  const remaining = settlements.filter((_one, index) => outcomes[index] !== "begun").map(({ id }) => id);
  expect(await fixture.settle(...remaining)).toEqual(["begun"]);
  await fixture.relay();
  await fixture.watch();
  await expectReconciled();
});

test("a refund returns the asset that was paid and deducts it, fee included, from the merchant's balance", async () => {
  await setFee(deps, { actor: testActor, accountId, merchantId: null, basisPoints: 1_000, fixedMicros: 0n });
  const buyer = await makeBuyer();
  const paymentId = await payWith(buyer);
  expect((await fixture.settlementOf(paymentId)).amount).toBe(9n * UNIT);
  expect(await booked("fees", assets.permit)).toBe(-UNIT);
  const { lines } = await readStatementSince({ deps, merchantId }, started);
  const line = lines.find((one) => one.paymentId === paymentId);
  expect(line).toMatchObject({ asset: assets.usdc, gross: null, fee: null, change: 9n * UNIT });
  const listed = { accountId, mode: "live", sortBy: "date", sortDir: "desc", limit: 1 } as const;
  const [{ tokenAmount, fees } = {}] = unwrap(await listPaymentViews(deps, listed)).items;
  expect(line?.paid).toEqual({ asset: assets.permit, amount: tokenAmount?.value, fee: fees?.total.value });
  expect(line?.paid).toEqual({ asset: assets.permit, amount: 10n * UNIT, fee: UNIT });
  const { refundId } = unwrap(await refundPayment(deps, { actor: testActor, paymentId, mode: "live" }));
  expect(await fixture.refund(refundId)).toEqual(["balance_short"]);
  const more = await fixture.pay(await fundBuyer(chain), 200n);
  expect(await settle(fixture, more)).toEqual(["refund_pending"]);
  expect(await fixture.refund(refundId)).toEqual(["begun"]);
  await fixture.relay();
  await fixture.watch();
  expect(await testTokenBalance(chain, assets.permit, buyer.address)).toBe(1_000n * UNIT);
  const [{ amount: owed } = { amount: 0n }] = await fixture.db
    .selectFrom("merchant_balance")
    .select("amount")
    .where("merchant_id", "=", merchantId)
    .execute();
  // Payments of 9 and 1.8 were credited, and the refund deducted 10.
  expect(owed).toBe(9n * UNIT + 1_800_000n - 10n * UNIT);
  await expectReconciled();
});

test("a payment on Solana is settled in the merchant's EVM asset from the inventory there", async () => {
  const evm = await startChain();
  const solana = await startTestSolana();
  const keys = newSolanaKeys();
  await fundSol(
    solana.client,
    keys.lanes.map(({ address }) => address),
  );
  const across = await makeMerchantFixture(evm, { solana: { chain: solana, keys }, assets: [evm.asset] });
  const { deps: here, mode } = across;
  const own = { accountId: across.accountId, merchantId: across.merchantId, mode };
  const [registered] = unwrap(await listDestinations(here, own));
  unwrap(await setAcceptsOtherAssets(here, { actor: testActor, ...own, id: registered?.id ?? "", accept: true }));
  await sendUsdc(evm, await fundBuyer(evm), evm.keys.treasury.address, 12n * UNIT);
  await across.watch();
  const deposit = (await listExceptions(here, 50)).find(({ amount }) => amount === 12n * UNIT);
  unwrap(await bookException(here, { actor: testActor, id: deposit?.id ?? 0, as: "capital", note: "inventory" }));

  const buyer = await fundSolanaBuyer(solana);
  const paymentId = await across.create(1_000n);
  const accounts = [`${solana.id}:${buyer.address}`];
  const [option] = unwrap(await listOptions(here, { paymentId, mode, accounts })).options;
  const optionId = option?.id ?? "";
  const { actions } = unwrap(await listActions(here, { paymentId, mode, optionId, data: "" }));
  const [{ transaction } = { transaction: "" }] = (actions[0]?.params ?? []) as { transaction: string }[];
  const signed = signAsWallet(transaction, buyer);
  const { attemptId } = unwrap(await across.confirm(paymentId, optionId, [{ type: "walletRpc", data: [signed] }]));
  await across.verify(attemptId ?? "");
  await submitReady(here, solana.id, createSendHandlers(here));
  const handlers = createBookingHandlers(here);
  await waitFor(
    async () => {
      await watchChain(here, { chain: solana.id, signal: AbortSignal.abort(), handlers });
      return (await across.status(paymentId)).state === "succeeded";
    },
    { within: 20_000 },
  );
  expect(await tokenBalance(solana, keys.treasury.address)).toBe(10n * UNIT);
  expect(await across.settlementOf(paymentId)).toMatchObject({
    asset: evm.asset,
    amount: 10n * UNIT,
    converted: true,
  });
  // The treasury pays only if the watcher was at the head a minute ago, and Solana may have taken longer.
  await across.watch();
  expect(await settle(across, paymentId)).toEqual(["begun"]);
  expect((await across.settlementOf(paymentId)).state).toBe("paid");
  expect(await usdcBalance(evm, across.destination)).toBe(10n * UNIT);
});
