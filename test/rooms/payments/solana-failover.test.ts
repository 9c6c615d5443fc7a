import { PublicKey, SystemProgram } from "@solana/web3.js";
import { afterEach, describe, expect, test, vi } from "vitest";
import { findMarker } from "../../../chains/solana/markers.ts";
import { listBalances } from "../../../db/balances.ts";
import { keypairOf, newSolanaKey, sendAll } from "../../../ops/local/solana-client.ts";
import { addDestinations } from "../../../payments/destinations.ts";
import { createMerchant } from "../../../payments/merchants.ts";
import { isCaughtUp } from "../../../transfers/caught-up.ts";
import { createDatabaseOn } from "../../support/database.ts";
import { startReplicatedPostgres } from "../../support/replica.ts";
import { fundSolanaBuyer, startTestSolana, tokenBalance } from "../../support/solana.ts";
import { makeSolanaTill, type SolanaTill } from "../../support/solana-till.ts";
import { good } from "../../support/till.ts";
import { waitFor } from "../../support/wait-for.ts";

const UNIT = 1_000_000n;
// Two servers are started and one is promoted in each.
vi.setConfig({ testTimeout: 180_000 });

const solana = await startTestSolana({ slotMs: 20, finalAfter: 40, own: true });
afterEach(() => solana.knobs.resume());
const holds = (owner: string) => tokenBalance(solana, owner);

/** Money of another merchant, out of which a second payout could be paid. */
async function fundTreasury(till: SolanaTill): Promise<void> {
  const { accountId, mode, deps } = till;
  const { id: merchantId } = await createMerchant(deps, { accountId, mode, name: "Other", email: "o@example.test" });
  const asset = { asset: solana.asset, destination: `${solana.id}:${newSolanaKey().address}` };
  good(await addDestinations(deps, { accountId, mode, merchantId, settlements: [asset] }));
  const paymentId = await till.create(1_000n, { merchantId });
  await till.verify(await till.attempt(paymentId, await fundSolanaBuyer(solana)));
  await till.submit();
  await till.watchUntilState(paymentId, "succeeded");
}

/** A deployment whose database has a replica, with a merchant that is owed 1.0. */
async function open() {
  const postgres = await startReplicatedPostgres();
  // Each turn puts the clock forward: it runs ahead of the cluster's on a slow machine.
  const change = { maxHeadAgeMs: null };
  const till = await makeSolanaTill(solana, { databaseUrl: await createDatabaseOn(postgres.url), change });
  await fundTreasury(till);
  const paymentId = await till.pay(await fundSolanaBuyer(solana));
  const { id } = await till.settlementOf(paymentId);
  return { postgres, till, paymentId, id };
}
const transferOf = (till: SolanaTill, id: string) =>
  till.db.selectFrom("transfer").selectAll().where("settlement_id", "=", id).executeTakeFirstOrThrow();

/** A payout is sent, what says so is lost with the primary, and the workers run on; nothing is final meanwhile. */
async function losePayout() {
  const opened = await open();
  const { postgres, till, id } = opened;
  expect(await till.settle(id)).toEqual(["begun"]);
  await till.watchUntil(() => isCaughtUp(till.deps, solana.id));
  await till.watchUntil(async () => (await till.transactions()).every(({ state }) => state === "final"));
  await solana.knobs.pause();
  await postgres.catchUp();
  postgres.freeze();
  await till.submit();
  await solana.knobs.jump(1);
  expect(await holds(till.destination)).toBe(UNIT);
  expect(await transferOf(till, id)).toMatchObject({ state: "carried" });
  await postgres.failOver();
  // The pool finds out that its connections are dead.
  await waitFor(() => transferOf(till, id).catch(() => undefined), { within: 10_000 });
  expect(await transferOf(till, id)).toMatchObject({ state: "ready", lane_nonce: null });
  return opened;
}

async function expectPaidOnce({ till, id }: { till: SolanaTill; id: string }) {
  await solana.knobs.resume();
  await till.watchUntil(async () => {
    till.clock.advance(2_000);
    await till.submit();
    return (
      (await till.db.selectFrom("settlement").select("state").where("id", "=", id).executeTakeFirst())?.state === "paid"
    );
  });
  expect(await holds(till.destination)).toBe(UNIT);
  const { length } = await till.db.selectFrom("transfer").select("id").where("settlement_id", "=", id).execute();
  expect(length).toBe(1);
}

/** Fees, rents and payouts in the books are those of the chain, less what the relayer was funded with. */
async function expectEvenBooks(till: SolanaTill) {
  await till.watchUntil(async () => (await till.transactions()).every(({ state }) => state === "final"));
  const sumOf = async (account: string, asset: string) =>
    (await listBalances(till.db, { account, asset }))[0]?.amount ?? 0n;
  expect(await sumOf("treasury", solana.asset)).toBe(await holds(till.keys.treasury.address));
  expect(await sumOf("in_transit", solana.asset)).toBe(0n);
  const lane = till.keys.lanes[0]?.address ?? "";
  const held = BigInt(await solana.client.connection.getBalance(new PublicKey(lane), "finalized"));
  expect(10_000_000_000n + (await sumOf(`lane:${lane}`, `${solana.id}/slip44:501`))).toBe(held);
}

describe("a payout whose commit is lost in a failover of the database, while the workers run on,", () => {
  test("is paid once: nothing is signed until the chain was read again, and the books equal it", async () => {
    const lost = await losePayout();
    const { till } = lost;
    const signed = (await till.transactions()).length;
    till.clock.advance(2_000);
    expect(await till.submit()).toBe("idle");
    expect(await isCaughtUp(till.deps, solana.id)).toBe(false);
    expect((await till.transactions()).length).toBe(signed);
    await till.watch();
    expect(till.lines.filter((line) => line.includes("database lost commits"))).toHaveLength(1);
    await expectPaidOnce(lost);
    await till.watchUntil(() => isCaughtUp(till.deps, solana.id));
    await expectEvenBooks(till);
  });

  test("is paid once by its marker alone, when the step back is not noticed", async () => {
    const lost = await losePayout();
    const { till } = lost;
    const blind = { check: async () => "any", tick: async () => undefined, pass: async () => async () => undefined };
    Object.assign(till.deps.epoch, blind);
    await till.db.updateTable("database_epoch").set({ id: "any" }).execute();
    await till.db.updateTable("chain_cursor").set({ epoch: "any", epoch_height: null }).execute();
    expect(await isCaughtUp(till.deps, solana.id)).toBe(true);
    await till.submit();
    expect((await transferOf(till, lost.id)).last_trouble).toContain("the chain has its marker");
    await expectPaidOnce(lost);
    await expectEvenBooks(till);
  });

  test("is paid once by the epoch alone, when there is no marker", async () => {
    const lost = await losePayout();
    const { till, id } = lost;
    const number = (await transferOf(till, id)).authorization_nonce;
    const marker = new PublicKey(findMarker(till.chain.treasury, number).address);
    const treasury = keypairOf(till.keys.treasury);
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
      { within: 10_000 },
    );
    await solana.knobs.jump(1);
    await closing;
    await till.submit();
    await expectPaidOnce(lost);
  });
});

test("a buyer whose confirm is lost in a failover, and who signs again, pays once", async () => {
  const { postgres, till } = await open();
  const buyer = await fundSolanaBuyer(solana);
  const paymentId = await till.create();
  const before = await holds(buyer.address);
  await solana.knobs.pause();
  await postgres.catchUp();
  postgres.freeze();
  await till.verify(await till.attempt(paymentId, buyer));
  await till.submit();
  await solana.knobs.jump(1);
  expect(before - (await holds(buyer.address))).toBe(UNIT);
  await postgres.failOver();
  const again = await waitFor(() => till.attempt(paymentId, buyer).catch(() => undefined), { within: 10_000 });
  await till.verify(again);
  await till.submit();
  await solana.knobs.resume();
  await till.watchUntilState(paymentId, "succeeded");
  await till.submit();
  await till.watchUntil(() => isCaughtUp(till.deps, solana.id));
  expect(before - (await holds(buyer.address))).toBe(UNIT);
});

test("a buyer's transaction whose sending is lost in a failover is not ended as never sent", async () => {
  const { postgres, till } = await open();
  const buyer = await fundSolanaBuyer(solana);
  const paymentId = await till.create();
  await solana.knobs.pause();
  await till.verify(await till.attempt(paymentId, buyer));
  await postgres.catchUp();
  postgres.freeze();
  await till.submit();
  // Its blockhash has died when the new primary answers.
  await solana.knobs.jump(400);
  await postgres.failOver();
  await waitFor(() => till.transfers().catch(() => undefined), { within: 10_000 });
  await solana.knobs.resume();
  // Not by the watcher either, which knows the final height before the history was read again.
  for (let turn = 0; turn < 3; turn += 1) await till.watchOnly();
  expect((await till.transfers()).filter(({ state }) => state === "ended")).toEqual([]);
  await till.watchUntilState(paymentId, "succeeded");
  expect((await till.transfers()).filter(({ state }) => state === "ended")).toEqual([]);
});
