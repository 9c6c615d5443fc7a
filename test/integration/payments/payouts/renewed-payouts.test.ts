import { type Hex, parseAbi } from "viem";
import { describe, expect, test } from "vitest";
import { readFamilyRow } from "../../../../db/chain-families.ts";
import { assignTransfers, unassignTransfers } from "../../../../db/queries/transfers.ts";
import { operator } from "../../../../local/chain-client.ts";
import { newKey } from "../../../../local/networks-document.ts";
import { changeDestination, deleteDestination } from "../../../../payments/merchants/destinations.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { renewPayouts } from "../../../../payments/payouts/renew-payouts.ts";
import type { TreasurySigner } from "../../../../signer/treasury-signer.ts";
import { allEntries } from "../../../support/audited-changes.ts";
import { fundBuyer, networksFor, startChain, type TestChain, usdcBalance } from "../../../support/evm-chain.ts";
import { insertLaneRow } from "../../../support/insert-rows.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { expectReconciled, settlementsOf, work } from "../../../support/restored-database.ts";
import { signUnsent } from "../../../support/sign-unsent.ts";
import { testActor } from "../../../support/test-actor.ts";
import { startTestSigner } from "../../../support/test-signer.ts";

const blocklistAbi = parseAbi(["function blacklist(address)", "function unBlacklist(address)"]);

/** Adds an account to the token issuer's block list, or removes it. */
async function setBlocked({ client, contracts }: TestChain, functionName: "blacklist" | "unBlacklist", account: Hex) {
  const call = {
    address: contracts.token,
    abi: blocklistAbi,
    functionName,
    args: [account],
    account: operator,
  } as const;
  await client.waitForTransactionReceipt({ hash: await client.writeContract(call) });
}

const idOfDestination = async ({ db, merchantId }: MerchantFixture) =>
  (await db.selectFrom("settlement_destination").select("id").where("merchant_id", "=", merchantId).executeTakeFirst())
    ?.id ?? "";

/** Changes the merchant's destination to a new account, which it returns. */
async function moveDestination(fixture: MerchantFixture, chain: TestChain): Promise<Hex> {
  const { accountId, merchantId, mode, deps } = fixture;
  const { address } = newKey();
  const args = { accountId, mode, merchantId, actor: testActor, id: await idOfDestination(fixture) };
  unwrap(await changeDestination(deps, { ...args, destination: `${chain.id}:${address}` }));
  return address;
}

const renew = ({ deps }: MerchantFixture, change: Partial<MerchantFixture["deps"]> = {}) =>
  renewPayouts({ ...deps, ...change }, testActor);

/** Begins a payout, blocks its destination before it is sent, and lets it fail. */
async function makeBlockedPayout() {
  const chain = await startChain();
  const signing = await startTestSigner(chain);
  const fixture = await makeMerchantFixture(chain, { signer: signing.signer, clock: signing.clock });
  const unsent = await signUnsent(fixture, await fundBuyer(chain), 100n);
  await setBlocked(chain, "blacklist", fixture.destination);
  await work(fixture);
  expect(await fixture.transfers()).toMatchObject([
    { state: "confirmed" },
    { state: "ready", last_error: expect.stringContaining("blacklisted") },
  ]);
  const stored = async () => (await settlementsOf(fixture, fixture.merchantId))[0];
  /** Changes the destination, and renews the payout when the signer's waiting period is over. Returns the new destination. */
  const redirect = async () => {
    const other = await moveDestination(fixture, chain);
    expect(await renew(fixture)).toEqual({ renewed: 0, refused: { destination_waiting: 1 } });
    signing.clock.advance(73 * 3_600_000);
    expect(await renew(fixture)).toEqual({ renewed: 1, refused: {} });
    return other;
  };
  return { chain, signing, fixture, unsent, stored, redirect };
}

describe("a payout whose destination the token's issuer has blocked", () => {
  test("a payout is renewed to the changed destination once the signer lets it apply, and counts once against limits", async () => {
    const { chain, signing, fixture, unsent, stored, redirect } = await makeBlockedPayout();
    const other = await redirect();
    expect(await renew(fixture)).toEqual({ renewed: 0, refused: {} });
    const [first, second] = [fixture.destination, other].map((address) => address.toLowerCase());
    expect(signing.payouts()).toEqual([
      { kind: "settlement", amount: "1000000", counted: "1000000", receiver: first },
      { kind: "settlement", amount: "1000000", counted: "0", receiver: second },
    ]);
    const payer = chain.keys.treasury.address.toLowerCase();
    const entries = (await allEntries(fixture.db)).filter(({ action }) => action === "payout.renewed");
    expect(entries.map(({ before, after }) => [before, after])).toEqual([
      [JSON.stringify({ payer, receiver: first }), JSON.stringify({ payer, receiver: second })],
    ]);

    await work(fixture);
    expect(await stored()).toMatchObject({ state: "paid", destination: `${chain.id}:${other}` });
    expect(await usdcBalance(chain, other)).toBe(1_000_000n);
    await setBlocked(chain, "unBlacklist", fixture.destination);
    const attack = { to: chain.contracts.token, data: unsent.call, gas: 200_000n };
    const hash = await chain.client.sendTransaction(attack);
    expect(await chain.client.waitForTransactionReceipt({ hash })).toMatchObject({ status: "reverted" });
    await expectReconciled(fixture, chain);
  });

  test("a renewed payout that a stranger makes with its former signature is booked as the chain shows it, once", async () => {
    const { chain, fixture, unsent, stored, redirect } = await makeBlockedPayout();
    const other = await redirect();
    await setBlocked(chain, "unBlacklist", fixture.destination);
    const hash = await chain.client.sendTransaction({ to: chain.contracts.token, data: unsent.call, gas: 200_000n });
    expect(await chain.client.waitForTransactionReceipt({ hash })).toMatchObject({ status: "success" });
    for (let round = 0; round < 8; round += 1) await work(fixture);
    expect(await stored()).toMatchObject({
      state: "paid",
      destination: `${chain.id}:${fixture.destination.toLowerCase()}`,
    });
    expect([await usdcBalance(chain, fixture.destination), await usdcBalance(chain, other)]).toEqual([1_000_000n, 0n]);
    await expectReconciled(fixture, chain);
  });
});

test("payouts and refunds that were signed before the token's domain has changed are made once they are renewed", async () => {
  const chain = await startChain();
  const [usdc] = (await networksFor(chain)).chains[0]?.assets ?? [];
  const domain = usdc && "domain" in usdc ? usdc.domain : undefined;
  const now = await makeMerchantFixture(chain);
  const { merchantId, accountId, destination, clock, databaseUrl } = now;
  const buyer = await fundBuyer(chain);
  const [paid, refunded] = [await now.pay(await fundBuyer(chain), 100n), await now.pay(buyer, 200n)];
  const before = await usdcBalance(chain, buyer.address);
  const same = { databaseUrl, clock, merchant: { accountId, merchantId } };
  const change = { assets: [{ ...usdc, domain: { ...domain, version: "9" } }] };
  const former = await makeMerchantFixture(chain, { ...same, change });
  await former.watch();
  const { refundId } = unwrap(
    await refundPayment(former.deps, { actor: testActor, paymentId: refunded, mode: now.mode, amount: undefined }),
  );
  expect(await former.refund(refundId)).toEqual(["begun"]);
  expect(await former.settle((await now.settlementOf(paid)).id)).toEqual(["begun"]);

  const { signer } = await startTestSigner(chain, { clock });
  const corrected = await makeMerchantFixture(chain, { ...same, signer });
  await work(corrected);
  const payouts = async () => (await corrected.transfers()).filter(({ purpose }) => purpose !== "payment");
  const waiting = { state: "ready", last_error: expect.stringContaining("invalid signature") };
  expect(await payouts()).toMatchObject([waiting, waiting]);
  expect(await renew(corrected)).toEqual({ renewed: 2, refused: {} });
  await work(corrected);
  expect(await payouts()).toMatchObject([{ state: "confirmed" }, { state: "confirmed" }]);
  expect(await usdcBalance(chain, destination)).toBe(1_000_000n);
  expect(await usdcBalance(chain, buyer.address)).toBe(before + 2_000_000n);
  await expectReconciled(corrected, chain);
});

describe("a payout that was signed and not sent", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const { db, destination, merchantId, deps } = fixture;
  await signUnsent(fixture, await fundBuyer(chain), 100n);
  const transfer = async () => {
    const row = await db
      .selectFrom("transfer")
      .selectAll()
      .where("purpose", "=", "settlement")
      .executeTakeFirstOrThrow();
    return readFamilyRow(row);
  };
  const hold = (payouts_held_at: Date | null) =>
    db.updateTable("merchant").set({ payouts_held_at }).where("id", "=", merchantId).execute();
  /** Returns a signer that signs after `work`. */
  const signAfter = (work: () => Promise<unknown>): TreasurySigner => ({
    ...deps.signer,
    signPayouts: async (payouts) => {
      await work();
      return deps.signer.signPayouts(payouts);
    },
  });
  const nothing = { renewed: 0, refused: {} };

  test("a payout that has not failed is not renewed", async () => {
    await moveDestination(fixture, chain);
    expect(await renew(fixture)).toEqual(nothing);
    await db.updateTable("transfer").set({ retries: 1 }).where("purpose", "=", "settlement").execute();
  });

  test("a payout is not renewed while its chain is not read again after the database has lost commits", async () => {
    await db.updateTable("chain_cursor").set({ epoch_height: 1_000_000 }).execute();
    expect(await renew(fixture)).toEqual({ renewed: 0, refused: { watcher_behind: 1 } });
    await db.updateTable("chain_cursor").set({ epoch_height: null }).execute();
  });

  test("a payout is not renewed while an operator holds its merchant, also when this happens while it is signed", async () => {
    expect(await renew(fixture, { signer: signAfter(() => hold(new Date())) })).toEqual(nothing);
    expect(await renew(fixture)).toEqual({ renewed: 0, refused: { held: 1 } });
    await hold(null);
  });

  test("a payout is not renewed to a destination that screening rejects", async () => {
    const screeningList = (_chain: string, accounts: readonly string[]) => new Set(accounts);
    expect(await renew(fixture, { screeningList })).toEqual({ renewed: 0, refused: { not_served: 1 } });
  });

  test("a payout is not renewed to a destination that is changed while it is signed", async () => {
    expect(await renew(fixture, { signer: signAfter(() => moveDestination(fixture, chain)) })).toEqual(nothing);
  });

  test("a payout is not renewed without a destination", async () => {
    const { accountId, mode } = fixture;
    const id = await idOfDestination(fixture);
    unwrap(await deleteDestination(deps, { accountId, mode, merchantId, id, actor: testActor }));
    expect(await renew(fixture)).toEqual({ renewed: 0, refused: { no_destination: 1 } });
    expect(await transfer()).toMatchObject({ receiver: destination.toLowerCase() });
    unwrap(await fixture.addDestination(newKey().address));
  });

  test("a payout is not renewed after it was assigned to a transaction", async () => {
    const { id: laneId } = await insertLaneRow(db, chain.id);
    const at = new Date();
    const before = await transfer();
    await assignTransfers(db, { calls: [before], laneId, nonce: 7, at });
    await unassignTransfers(db, { ids: [before.id], reason: "no trace", now: at });
    expect(await renew(fixture)).toEqual({ renewed: 0, refused: { may_be_sent: 1 } });
    expect(await transfer()).toMatchObject({ receiver: destination.toLowerCase(), signature: before.signature });
  });
});
