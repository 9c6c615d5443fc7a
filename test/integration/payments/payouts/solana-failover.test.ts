import { PublicKey, SystemProgram } from "@solana/web3.js";
import { afterEach, describe, expect, test, vi } from "vitest";
import { findMarker } from "../../../../chains/solana/payout-markers.ts";
import { listBalances } from "../../../../db/queries/ledger-balances.ts";
import { keypairOf, newSolanaKey, sendAll } from "../../../../local/solana-client.ts";
import { addDestinations } from "../../../../payments/merchants/destinations.ts";
import { createMerchant } from "../../../../payments/merchants/merchants.ts";
import { findReadEpoch } from "../../../../transfers/caught-up.ts";
import { isCaughtUp } from "../../../support/is-caught-up.ts";
import { unwrap } from "../../../support/merchant-fixture.ts";
import { startReplicatedPostgres } from "../../../support/replicated-postgres.ts";
import { makeSolanaMerchantFixture, type SolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";
import { createDatabaseOn } from "../../../support/test-database.ts";
import { fundSolanaBuyer, startTestSolana, tokenBalance } from "../../../support/test-solana.ts";
import { waitFor } from "../../../support/wait-for.ts";

const UNIT = 1_000_000n;
// Each test starts two Postgres servers and promotes one.
vi.setConfig({ testTimeout: 180_000 });

const solana = await startTestSolana({ slotMs: 100, finalityDepth: 40, own: true });
afterEach(() => solana.knobs.resume());
const balanceOf = (owner: string) => tokenBalance(solana, owner);

/** Gives the treasury another merchant's money, which a duplicate payout could spend. */
async function fundTreasury(fixture: SolanaMerchantFixture): Promise<void> {
  const { accountId, mode, deps } = fixture;
  const { id: merchantId } = await createMerchant(deps, {
    actor: testActor,
    accountId,
    mode,
    name: "Other",
    email: "o@example.test",
  });
  const asset = { asset: solana.asset, destination: `${solana.id}:${newSolanaKey().address}` };
  unwrap(await addDestinations(deps, { actor: testActor, accountId, mode, merchantId, settlements: [asset] }));
  const paymentId = await fixture.create(1_000n, { merchantId });
  await fixture.verify(await fixture.attempt(paymentId, await fundSolanaBuyer(solana)));
  await fixture.submit();
  await fixture.watchUntilState(paymentId, "succeeded");
}

/** Returns a deployment whose database has a replica, and a due settlement of 1.0. */
async function open() {
  const postgres = await startReplicatedPostgres();
  // Each round advances the clock, which on a slow machine runs ahead of the cluster's clock.
  const change = { maxHeadAgeMs: null };
  const fixture = await makeSolanaMerchantFixture(solana, {
    databaseUrl: await createDatabaseOn(postgres.url),
    change,
  });
  await fundTreasury(fixture);
  const paymentId = await fixture.pay(await fundSolanaBuyer(solana));
  const { id } = await fixture.settlementOf(paymentId);
  return { postgres, fixture, paymentId, id };
}
const transferOf = (fixture: SolanaMerchantFixture, id: string) =>
  fixture.db.selectFrom("transfer").selectAll().where("settlement_id", "=", id).executeTakeFirstOrThrow();

/** Sends a payout whose record is lost in a failover, while the cluster finalizes nothing. */
async function losePayout() {
  const opened = await open();
  const { postgres, fixture, id } = opened;
  expect(await fixture.settle(id)).toEqual(["begun"]);
  await fixture.watchUntil(() => isCaughtUp(fixture.deps, solana.id));
  await fixture.watchUntil(async () => (await fixture.transactions()).every(({ state }) => state === "final"));
  await solana.knobs.pause();
  await postgres.catchUp();
  postgres.freeze();
  await fixture.submit();
  await solana.knobs.jump(1);
  expect(await balanceOf(fixture.destination)).toBe(UNIT);
  expect(await transferOf(fixture, id)).toMatchObject({ state: "assigned" });
  await postgres.failOver();
  // Until the pool notices that its connections are dead.
  await waitFor(() => transferOf(fixture, id).catch(() => undefined), { within: 30_000 });
  expect(await transferOf(fixture, id)).toMatchObject({ state: "ready", lane_nonce: null });
  return opened;
}

async function expectPaidOnce({ fixture, id }: { fixture: SolanaMerchantFixture; id: string }) {
  await solana.knobs.resume();
  await fixture.watchUntil(async () => {
    fixture.clock.advance(2_000);
    await fixture.submit();
    return (
      (await fixture.db.selectFrom("settlement").select("state").where("id", "=", id).executeTakeFirst())?.state ===
      "paid"
    );
  });
  expect(await balanceOf(fixture.destination)).toBe(UNIT);
  const { length } = await fixture.db.selectFrom("transfer").select("id").where("settlement_id", "=", id).execute();
  expect(length).toBe(1);
}

/** Expects the ledger's fees, rents and payouts to match the chain, given the relayer's initial funding. */
async function expectReconciled(fixture: SolanaMerchantFixture) {
  await fixture.watchUntil(async () => (await fixture.transactions()).every(({ state }) => state === "final"));
  const sumOf = async (account: string, asset: string) =>
    (await listBalances(fixture.db, { account, asset }))[0]?.amount ?? 0n;
  expect(await sumOf("treasury", solana.asset)).toBe(await balanceOf(fixture.keys.treasury.address));
  expect(await sumOf("in_transit", solana.asset)).toBe(0n);
  const lane = fixture.keys.lanes[0]?.address ?? "";
  const held = BigInt(await solana.client.connection.getBalance(new PublicKey(lane), "finalized"));
  expect(10_000_000_000n + (await sumOf(`lane:${lane}`, `${solana.id}/slip44:501`))).toBe(held);
}

describe("a payout whose commit is lost in a database failover", () => {
  test("a lost payout is paid once: nothing is signed until the chain has been read again, and the ledger matches it", async () => {
    const lost = await losePayout();
    const { fixture } = lost;
    const signed = (await fixture.transactions()).length;
    fixture.clock.advance(2_000);
    expect(await fixture.submit()).toBe("idle");
    expect(await isCaughtUp(fixture.deps, solana.id)).toBe(false);
    expect((await fixture.transactions()).length).toBe(signed);
    await fixture.watch();
    expect(fixture.lines.filter((line) => line.includes("database lost commits"))).toHaveLength(1);
    await expectPaidOnce(lost);
    await fixture.watchUntil(() => isCaughtUp(fixture.deps, solana.id));
    await expectReconciled(fixture);
  });

  test("a lost payout's marker alone prevents a second payment when the failover is not noticed", async () => {
    const lost = await losePayout();
    const { fixture } = lost;
    const blind = { check: async () => "any", tick: async () => undefined, pass: async () => async () => undefined };
    Object.assign(fixture.deps.epoch, blind);
    await fixture.db.updateTable("database_epoch").set({ id: "any" }).execute();
    await fixture.db.updateTable("chain_cursor").set({ epoch: "any", epoch_height: null }).execute();
    expect(await isCaughtUp(fixture.deps, solana.id)).toBe(true);
    await fixture.submit();
    expect((await transferOf(fixture, lost.id)).last_error).toContain("the chain has its marker");
    await expectPaidOnce(lost);
    await expectReconciled(fixture);
  });

  test("the database epoch alone prevents a second payment when the payout has no marker", async () => {
    const lost = await losePayout();
    const { fixture, id } = lost;
    const nonce = (await transferOf(fixture, id)).authorization_nonce;
    const marker = new PublicKey(findMarker(fixture.chain.treasury, nonce).address);
    const treasury = keypairOf(fixture.keys.treasury);
    const { connection, operator } = solana.client;
    const lamports = await connection.getBalance(marker, "processed");
    const toPubkey = operator.publicKey;
    const close = { noncePubkey: marker, authorizedPubkey: treasury.publicKey, toPubkey, lamports };
    await solana.knobs.jump(1);
    const closing = sendAll(solana.client, [
      { instructions: [SystemProgram.nonceWithdraw(close)], signers: [treasury] },
    ]);
    await waitFor(
      async () => {
        await solana.knobs.jump(1);
        return (await connection.getAccountInfo(marker, "processed")) === null;
      },
      { within: 30_000 },
    );
    await solana.knobs.jump(1);
    await closing;
    await fixture.submit();
    await expectPaidOnce(lost);
  });
});

test("a buyer whose confirm is lost in a failover and who signs again pays once", async () => {
  const { postgres, fixture } = await open();
  const buyer = await fundSolanaBuyer(solana);
  const paymentId = await fixture.create();
  const before = await balanceOf(buyer.address);
  await solana.knobs.pause();
  await postgres.catchUp();
  postgres.freeze();
  await fixture.verify(await fixture.attempt(paymentId, buyer));
  await fixture.submit();
  await solana.knobs.jump(1);
  expect(before - (await balanceOf(buyer.address))).toBe(UNIT);
  await postgres.failOver();
  const secondAttempt = await waitFor(() => fixture.attempt(paymentId, buyer).catch(() => undefined), {
    within: 30_000,
  });
  await fixture.verify(secondAttempt);
  await fixture.submit();
  await solana.knobs.resume();
  await fixture.watchUntilState(paymentId, "succeeded");
  await fixture.submit();
  await fixture.watchUntil(() => isCaughtUp(fixture.deps, solana.id));
  expect(before - (await balanceOf(buyer.address))).toBe(UNIT);
});

test("a buyer who signs again after a failover pays once, although the first transaction is sent only then", async () => {
  const { postgres, fixture } = await open();
  const buyer = await fundSolanaBuyer(solana);
  const paymentId = await fixture.create();
  const before = await balanceOf(buyer.address);
  await solana.knobs.pause();
  await solana.knobs.drop("all");
  await postgres.catchUp();
  postgres.freeze();
  await fixture.verify(await fixture.attempt(paymentId, buyer));
  await fixture.submit();
  const [late] = (await fixture.transactions()).slice(-1);
  await postgres.failOver();
  await waitFor(() => fixture.transfers().catch(() => undefined), { within: 30_000 });
  expect((await fixture.transactions()).map(({ hash }) => hash)).not.toContain(late?.hash);
  await solana.knobs.drop(0);
  await solana.knobs.resume();
  await fixture.watchUntil(async () => (await findReadEpoch(fixture.deps, solana.id)) !== undefined);
  await fixture.verify(await fixture.attempt(paymentId, buyer));
  await fixture.submit();
  await solana.client.connection
    .sendRawTransaction(late?.bytes ?? new Uint8Array(), { skipPreflight: true, maxRetries: 0 })
    .catch(() => undefined);
  await fixture.watchUntilState(paymentId, "succeeded");
  await fixture.watchUntil(async () => (await fixture.transactions()).every(({ state }) => state === "final"));
  expect(before - (await balanceOf(buyer.address))).toBe(UNIT);
});

test("a buyer's transaction whose broadcast is lost in a failover is not ended as never sent", async () => {
  const { postgres, fixture } = await open();
  const buyer = await fundSolanaBuyer(solana);
  const paymentId = await fixture.create();
  await solana.knobs.pause();
  await fixture.verify(await fixture.attempt(paymentId, buyer));
  await postgres.catchUp();
  postgres.freeze();
  await fixture.submit();
  // Its blockhash has expired before the new primary answers.
  await solana.knobs.jump(400);
  await postgres.failOver();
  await waitFor(() => fixture.transfers().catch(() => undefined), { within: 30_000 });
  await solana.knobs.resume();
  // The watcher knows the final height before the history has been read again, and must not end it either.
  for (let pass = 0; pass < 3; pass += 1) await fixture.watchOnly();
  expect((await fixture.transfers()).filter(({ state }) => state === "ended")).toEqual([]);
  await fixture.watchUntilState(paymentId, "succeeded");
  expect((await fixture.transfers()).filter(({ state }) => state === "ended")).toEqual([]);
});
