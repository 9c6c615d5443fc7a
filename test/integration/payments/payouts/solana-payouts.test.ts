import { PublicKey, SystemProgram } from "@solana/web3.js";
import { sql } from "kysely";
import { describe, expect, test } from "vitest";
import { listNonceAddresses } from "../../../../chains/solana/nonce-accounts.ts";
import { signAsWallet } from "../../../../local/solana-buyer.ts";
import { keypairOf, newSolanaKey, sendAll } from "../../../../local/solana-client.ts";
import { tokenAccountOf } from "../../../../local/spl-tokens.ts";
import { addDestinations } from "../../../../payments/merchants/destinations.ts";
import { createMerchant } from "../../../../payments/merchants/merchants.ts";
import { beginRefunds } from "../../../../payments/payouts/begin-refunds.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { isCaughtUp } from "../../../support/is-caught-up.ts";
import { unwrap } from "../../../support/merchant-fixture.ts";
import { makeConfirmSteps } from "../../../support/solana-confirm-steps.ts";
import { makeSolanaMerchantFixture, type SolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { closeAccount, freeze, moveTokens, thaw } from "../../../support/solana-token-moves.ts";
import { testActor } from "../../../support/test-actor.ts";
import { fundSolanaBuyer, fundSolanaBuyers, startTestSolana, tokenBalance } from "../../../support/test-solana.ts";

const solana = await startTestSolana({ own: true });
const fixture = await makeSolanaMerchantFixture(solana);
const { connection } = solana.client;
const balanceOf = (owner: string) => tokenBalance(solana, owner);

/** Creates a merchant with a given destination. Returns its id. */
async function openShop(destination: string, at: SolanaMerchantFixture = fixture): Promise<string> {
  const { accountId, mode, deps } = at;
  const { id: merchantId } = await createMerchant(deps, {
    actor: testActor,
    accountId,
    mode,
    name: "Shop",
    email: "a@example.test",
  });
  const settlements = [{ asset: solana.asset, destination: `${solana.id}:${destination}` }];
  unwrap(await addDestinations(deps, { actor: testActor, accountId, mode, merchantId, settlements }));
  return merchantId;
}
/** Creates one succeeded payment for each merchant. Returns the payments and their due settlements. */
async function accrue(merchantIds: readonly string[], at: SolanaMerchantFixture = fixture) {
  const buyers = await fundSolanaBuyers(solana, merchantIds.length, 1_000_000n);
  const paymentIds = await Promise.all(merchantIds.map((merchantId) => at.create(100n, { merchantId })));
  const attempts = await Promise.all(paymentIds.map((id, index) => at.attempt(id, buyers[index] ?? newSolanaKey())));
  await at.verify(...attempts);
  await at.submit();
  for (const id of paymentIds) await at.watchUntilState(id, "succeeded");
  const settlements = await Promise.all(paymentIds.map(at.settlementOf));
  return { paymentIds, settlementIds: settlements.map(({ id }) => id) };
}
const settlement = (id: string) =>
  fixture.db.selectFrom("settlement").selectAll().where("id", "=", id).executeTakeFirstOrThrow();
const isPaid = async (id: string) => (await settlement(id)).state === "paid";
const transferOf = (id: string) =>
  fixture.db.selectFrom("transfer").selectAll().where("settlement_id", "=", id).executeTakeFirstOrThrow();
const allFinal = async () =>
  (await fixture.transactions()).every(({ state }) => state === "final" || state === "expired");
/** Advances past every hold and submits until these settlements are paid. */
async function payOut(...ids: string[]) {
  fixture.clock.advance(65_000);
  await fixture.watchUntil(async () => {
    await fixture.submit();
    return (await Promise.all(ids.map(isPaid))).every(Boolean);
  });
}
const laneInBooks = async (address: string) => {
  const sum = sql<string>`coalesce(sum(amount), 0)`.as("sum");
  const row = await fixture.db.selectFrom("ledger_entry").select(sum).where("account", "=", `lane:${address}`);
  return BigInt((await row.executeTakeFirstOrThrow()).sum);
};
const laneOnChain = async (address: string) => BigInt(await connection.getBalance(new PublicKey(address), "confirmed"));

test("a payout asks for the compute units that its simulation takes and a margin", async () => {
  const { settlementIds } = await accrue([await openShop(newSolanaKey().address)]);
  await fixture.settle(...settlementIds);
  await payOut(...settlementIds);
  const row = (await fixture.transactions()).findLast(({ nonce_account }) => nonce_account !== null);
  const landed = await connection.getTransaction(row?.hash ?? "", {
    commitment: "confirmed",
    maxSupportedTransactionVersion: 0,
  });
  const used = landed?.meta?.computeUnitsConsumed ?? 0;
  const limit = Number(row?.gas_limit);
  expect(used).toBeGreaterThan(1_000);
  expect(limit).toBeGreaterThanOrEqual(used);
  expect(limit).toBeLessThanOrEqual(Math.max(used * 1.1 + 1, used + 1_000));
});

describe("Solana payouts", () => {
  test("payouts of several merchants share transactions, create each account once, and every lamport is booked", async () => {
    const destinations = [1, 2, 3].map(() => newSolanaKey().address);
    const shops = await Promise.all(destinations.map((destination) => openShop(destination)));
    const relayer = fixture.keys.lanes[0]?.address ?? "";
    await fixture.watchUntil(allFinal);
    const before = { books: await laneInBooks(relayer), chain: await laneOnChain(relayer) };
    // Creating an account takes space: a transaction holds one payout with a creation, or two without.
    for (const [round, transactions] of [
      [1n, 3],
      [2n, 2],
    ] as const) {
      const { settlementIds } = await accrue(shops);
      expect(await fixture.settle(...settlementIds)).toEqual(["begun", "begun", "begun"]);
      await payOut(...settlementIds);
      const transfers = await Promise.all(settlementIds.map(transferOf));
      expect(new Set(transfers.map(({ lane_nonce }) => lane_nonce)).size).toBe(transactions);
      for (const destination of destinations) expect(await balanceOf(destination)).toBe(round * 1_000_000n);
      await fixture.watchUntil(allFinal);
      const [books, onChain] = [await laneInBooks(relayer), await laneOnChain(relayer)];
      expect(books - before.books).toBe(onChain - before.chain);
      const made = await fixture.db.selectFrom("created_account").select("address").execute();
      const places = destinations.map((one) => tokenAccountOf(solana.mint, one));
      expect(made.filter(({ address }) => places.includes(address))).toHaveLength(3);
    }
    const rents = await fixture.db.selectFrom("ledger_entry").select("amount").where("account", "=", "rent").execute();
    const [ofAccount = 0n, ofMarker = 0n] = (
      await Promise.all([165, 80].map((bytes) => connection.getMinimumBalanceForRentExemption(bytes)))
    ).map(BigInt);
    expect(rents.map(({ amount }) => amount)).toEqual(
      expect.arrayContaining([ofAccount + ofMarker, 2n * ofMarker, ofMarker]),
    );
  });

  test("a payout to a closed token account is held, and the account is not created again", async () => {
    const [closer, other] = [newSolanaKey(), newSolanaKey().address];
    const shops = [await openShop(closer.address), await openShop(other)];
    const first = await accrue(shops);
    await fixture.settle(...first.settlementIds);
    await payOut(...first.settlementIds);
    await fixture.watchUntil(allFinal);
    await moveTokens({ solana, from: closer, to: other, amount: 1_000_000n });
    await closeAccount({ solana, owner: closer });
    const second = await accrue(shops);
    await fixture.settle(...second.settlementIds);
    await payOut(second.settlementIds[1] ?? "");
    expect(await transferOf(second.settlementIds[0] ?? "")).toMatchObject({
      state: "ready",
      last_error: expect.stringContaining("has closed the token account"),
    });
    expect(await connection.getAccountInfo(new PublicKey(tokenAccountOf(solana.mint, closer.address)))).toBeNull();
  });

  test("only payouts to frozen accounts or token accounts are held, and a thawed account is paid later", async () => {
    const [frozen, fine] = [(await fundSolanaBuyer(solana, 1n)).address, newSolanaKey().address];
    const token = tokenAccountOf(solana.mint, (await fundSolanaBuyer(solana)).address);
    await freeze({ solana, owner: frozen });
    const { settlementIds } = await accrue(await Promise.all([frozen, token, fine].map((one) => openShop(one))));
    const [cold = "", strange = "", healthy = ""] = settlementIds;
    await fixture.settle(...settlementIds);
    await payOut(healthy);
    expect((await transferOf(cold)).last_error).toContain("frozen");
    expect((await transferOf(strange)).last_error).toContain("not a wallet");
    await thaw({ solana, owner: frozen });
    await payOut(cold);
    expect(await balanceOf(frozen)).toBe(1_000_001n);
    expect((await transferOf(strange)).state).toBe("ready");
    // Held forever, so that it does not stay among the ready transfers of later tests.
    await fixture.db
      .updateTable("transfer")
      .set({ hold_until: new Date("2100-01-01") })
      .where("settlement_id", "=", strange)
      .execute();
  });

  test("a Solana refund reaches the payer's account once", async () => {
    const buyer = await fundSolanaBuyer(solana, 1_000_000n);
    const paymentId = await fixture.pay(buyer);
    expect(await balanceOf(buyer.address)).toBe(0n);
    const { refundId } = unwrap(await refundPayment(fixture.deps, { actor: testActor, paymentId, mode: "live" }));
    await fixture.settle();
    expect(await beginRefunds(fixture.deps, [refundId])).toEqual(["begun"]);
    const state = async () =>
      (await fixture.db.selectFrom("refund").select("state").where("id", "=", refundId).executeTakeFirstOrThrow())
        .state;
    const other = await fixture.anotherProcess();
    await Promise.all([fixture.submit(), other.submit(), fixture.submit()]);
    await fixture.watchUntil(async () => (await state()) === "paid");
    expect(await balanceOf(buyer.address)).toBe(1_000_000n);
    expect(await fixture.settlementOf(paymentId)).toMatchObject({ state: "netted" });
  });
});

describe("a payout's transaction", () => {
  /** Begins a settlement. Returns its id and its destination. */
  async function beginPayout() {
    const destination = newSolanaKey().address;
    const { settlementIds } = await accrue([await openShop(destination)]);
    const [id = ""] = settlementIds;
    expect(await fixture.settle(id)).toEqual(["begun"]);
    return { id, destination };
  }
  const transactionOf = async (id: string) => {
    const { lane_id, lane_nonce } = await transferOf(id);
    return (await fixture.transactions()).find((one) => one.lane_id === lane_id && one.nonce === lane_nonce);
  };

  test("a payout that several processes submit concurrently has one transaction", async () => {
    const { id, destination } = await beginPayout();
    const other = await fixture.anotherProcess();
    await fixture.watchUntil(() => isCaughtUp(other.deps, solana.id));
    const before = (await fixture.transactions()).length;
    await Promise.all([fixture.submit(), other.submit(), fixture.submit(), other.submit()]);
    expect((await fixture.transactions()).length - before).toBe(1);
    await fixture.watchUntil(() => isPaid(id));
    expect(await balanceOf(destination)).toBe(1_000_000n);
  });

  test("a stored but unsent payout is broadcast by the watcher, however late, because its nonce does not expire", async () => {
    const { id, destination } = await beginPayout();
    await solana.knobs.drop("all");
    await fixture.submit();
    const stored = await transactionOf(id);
    await solana.knobs.jump(400);
    await fixture.watch();
    await solana.knobs.drop(0);
    fixture.clock.advance(2_000);
    await fixture.watchUntil(() => isPaid(id));
    expect((await transactionOf(id))?.hash).toBe(stored?.hash);
    expect(await balanceOf(destination)).toBe(1_000_000n);
  });

  test("a payout whose nonce was advanced elsewhere is signed again and paid once", async () => {
    const { id, destination } = await beginPayout();
    await solana.knobs.drop("all");
    await fixture.submit();
    const stored = await transactionOf(id);
    await solana.knobs.drop(0);
    const noncePubkey = new PublicKey(stored?.nonce_account ?? "");
    const treasury = keypairOf(fixture.keys.treasury);
    const advance = SystemProgram.nonceAdvance({ noncePubkey, authorizedPubkey: treasury.publicKey });
    await sendAll(solana.client, [{ instructions: [advance], signers: [treasury] }]);
    await solana.knobs.jump(5);
    await fixture.watchUntil(async () => (await transferOf(id)).state === "ready");
    await payOut(id);
    expect((await transactionOf(id))?.hash).not.toBe(stored?.hash);
    const old = (await fixture.transactions()).find(({ hash }) => hash === stored?.hash);
    expect(old?.state).toBe("expired");
    // The old bytes have no effect when broadcast again.
    await connection.sendRawTransaction(old?.bytes ?? Buffer.alloc(0), { skipPreflight: true }).catch(() => undefined);
    await solana.knobs.jump(5);
    expect(await balanceOf(destination)).toBe(1_000_000n);
  });

  test("a payout that fails on chain is retried by another transaction and paid once", async () => {
    const { id, destination } = await beginPayout();
    const [fine] = (await accrue([await openShop(destination)])).settlementIds;
    await fixture.submit();
    await fixture.watchUntil(() => isPaid(id));
    await fixture.settle(fine ?? "");
    await solana.knobs.setSlotMs(200);
    await solana.knobs.hold(100);
    await fixture.submit();
    await solana.knobs.hold(0);
    await freeze({ solana, owner: destination });
    await solana.knobs.setSlotMs(solana.slotMs);
    await solana.knobs.jump(101);
    await fixture.watchUntil(async () => (await transferOf(fine ?? "")).state === "ready");
    expect((await transferOf(fine ?? "")).last_error).toBe("its transaction failed");
    await thaw({ solana, owner: destination });
    await payOut(fine ?? "");
    expect(await balanceOf(destination)).toBe(2_000_000n);
  });
});

test("payouts that wait for a durable nonce neither delay buyers nor flood the queue", async () => {
  const shop = await makeSolanaMerchantFixture(solana, { change: { nonceAccounts: 1 } });
  const { begin, confirmAndVerify } = makeConfirmSteps(shop);
  const { settlementIds } = await accrue([shop.merchantId], shop);
  await shop.settle(...settlementIds);
  await solana.knobs.drop("all");
  await shop.submit();
  const [nonce] = await listNonceAddresses(shop.chain, shop.deps.deployment);
  expect((await shop.transactions()).at(-1)?.nonce_account).toBe(nonce?.address);
  await sql`
    insert into settlement select (jsonb_populate_record(s, jsonb_build_object('id', s.id || n, 'number', 1000 + n, 'state', 'due'))).*
    from settlement s, generate_series(1, 120) n`.execute(shop.db);
  await sql`
    insert into transfer select (jsonb_populate_record(t, jsonb_build_object(
      'id', t.id || n, 'settlement_id', t.settlement_id || n, 'authorization_nonce', t.authorization_nonce || n,
      'state', 'ready', 'lane_id', null, 'lane_nonce', null))).*
    from transfer t, generate_series(1, 120) n where t.settlement_id is not null`.execute(shop.db);
  await solana.knobs.drop(0);
  const begun = await begin();
  expect(await confirmAndVerify(begun, signAsWallet(begun.transaction, begun.buyer))).toBe("verified");
  expect(await shop.submit()).toBe("idle");
  await shop.watchUntilState(begun.paymentId, "succeeded");
});
