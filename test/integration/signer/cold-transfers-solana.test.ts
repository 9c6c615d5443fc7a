import { PublicKey } from "@solana/web3.js";
import { describe, expect, test } from "vitest";
import { readBlockhash } from "../../../chains/solana/cluster-state.ts";
import { readFinalBalance } from "../../../chains/solana/final-balances.ts";
import { listNonceAddresses, readNonces, readRent } from "../../../chains/solana/nonce-accounts.ts";
import { findMarker } from "../../../chains/solana/payout-markers.ts";
import { readInventory } from "../../../db/queries/inventory.ts";
import { listBalances } from "../../../db/queries/ledger-balances.ts";
import { newSolanaKey } from "../../../local/solana-client.ts";
import { fundTokens, tokenAccountOf } from "../../../local/spl-tokens.ts";
import { listExceptions } from "../../../payments/accounting/resolve-exceptions.ts";
import { moveExcess } from "../../../payments/payouts/move-excess.ts";
import { parseNetworks } from "../../../runtime/networks/read-networks.ts";
import { coldNonce } from "../../../signer/cold-transfers.ts";
import { moveExcess as signExcess } from "../../../signer/move-excess.ts";
import { wasMadeBy } from "../../../signer/solana/closed-payouts.ts";
import { readHotBalances } from "../../../signer/watch-hot-balances.ts";
import { execute } from "../../support/execute-sql.ts";
import { isCaughtUp } from "../../support/is-caught-up.ts";
import { describeSolanaDeployment, makeSolanaMerchantFixture } from "../../support/solana-merchant-fixture.ts";
import { copyDatabase } from "../../support/test-database.ts";
import { startSignerFor } from "../../support/test-signer.ts";
import {
  fundSolanaBuyer,
  makeSolanaKeys,
  startTestSolana,
  type TestSolana,
  tokenBalance,
} from "../../support/test-solana.ts";

const FLOOR = 2_000_000n;
const TARGET = 3_000_000n;
const CEILING = 5_000_000n;
const shared = await startTestSolana();

/** Starts a deployment whose treasury may hold little. `cold` is the address that its signer's file names. */
async function startShop(solana: TestSolana = shared) {
  const keys = await makeSolanaKeys(solana);
  const { SOLANA_TREASURY_KEY = "" } = keys.env;
  const networks = parseNetworks(await describeSolanaDeployment(solana, keys));
  const signing = await startSignerFor(networks, { SOLANA_TREASURY_KEY });
  const fixture = await makeSolanaMerchantFixture(solana, { keys, signer: signing.signer });
  const { chain, deps } = fixture;
  const { asset } = solana;
  const cold = newSolanaKey().address;
  const keep = (address = cold, file = {}) => {
    const hotBalance = { floor: String(FLOOR), ceiling: String(CEILING), cold: { address, target: String(TARGET) } };
    return signing.setLimits({ asset: { hotBalance }, file });
  };
  await keep();
  const ask = () => signing.signer.moveExcess({ asset, pending: 0n });
  const run = () => moveExcess(deps, solana.id);
  const transfers = () => fixture.db.selectFrom("transfer").selectAll().where("purpose", "=", "cold").execute();
  /** Waits until the signer's endpoints show this balance of the treasury as final. */
  const seeFinal = (held: bigint) =>
    fixture.watchUntil(async () => (await readFinalBalance(chain, { asset, nonce: undefined })).balance === held);
  /** Sends what is ready, past every hold, until the transfers to the cold address are booked. */
  const send = async (held = TARGET) => {
    await fixture.watchUntil(async () => {
      await fixture.submit();
      return (await transfers()).every(({ state }) => state === "confirmed");
    });
    await seeFinal(held);
  };
  const booked = async (account: string) => (await listBalances(fixture.db, { account, asset }))[0]?.amount ?? 0n;
  return {
    signing,
    fixture,
    keys,
    cold,
    keep,
    ask,
    run,
    send,
    seeFinal,
    transfers,
    booked,
    balanceOf: (owner: string) => tokenBalance(solana, owner),
    caughtUp: () => fixture.watchUntil(() => isCaughtUp(deps, solana.id)),
    /** Gives the treasury, whose balance is final, tokens that pay nothing. Waits until its final balance is `held`. */
    fund: async (held: bigint) => {
      const { balance } = await readFinalBalance(chain, { asset, nonce: undefined });
      await fundTokens(solana.client, solana.mint, [keys.treasury.address], held - balance);
      await seeFinal(held);
    },
    /** Asks the signer for a transaction of the newest transfer, with what a thief changes. */
    signTransaction: async (change: { destination?: string; amount?: bigint } = {}) => {
      const [place] = await listNonceAddresses(chain, deps.deployment);
      const nonceAccount = place?.address ?? "";
      const { nonces } = await readNonces(chain, [nonceAccount], "confirmed");
      const answer = await ask();
      if (!answer.ok || !answer.transfer) throw new Error("nothing moves");
      const { number, amount, receiver: destination } = answer.transfer;
      return signing.signer.signPayoutTransaction({
        asset,
        feePayer: chain.lanes[0] ?? "",
        nonceAccount,
        nonce: nonces[0] ?? "",
        markerRent: await readRent(chain),
        budget: { units: 200_000, unitPrice: 0n },
        payouts: [
          { memo: coldNonce(deps.deployment, { asset, number }), destination, amount, makeAccount: true, ...change },
        ],
      });
    },
  };
}

describe.each(["token", "token-2022"] as const)("with a mint of the program %s", (program) => {
  test("what exceeds the ceiling moves to the cold address once, although two workers ask", async () => {
    const solana = program === "token" ? shared : await startTestSolana({ mint: { program } });
    const shop = await startShop(solana);
    const { fixture, keys, cold, run, ask, send, seeFinal, transfers, booked, balanceOf } = shop;
    await fixture.pay(await fundSolanaBuyer(solana), 500n);
    await seeFinal(CEILING);
    await shop.caughtUp();
    await run();
    expect(await transfers(), "five is the ceiling").toEqual([]);
    await fixture.pay(await fundSolanaBuyer(solana), 400n);
    await seeFinal(9_000_000n);

    const other = await fixture.anotherProcess();
    await shop.caughtUp();
    await Promise.all([run(), moveExcess(other.deps, solana.id), run()]);
    expect(await transfers()).toMatchObject([{ amount: 6_000_000n, receiver: cold }]);
    await Promise.all([fixture.submit(), other.submit()]);
    await send();
    expect([await balanceOf(cold), await balanceOf(keys.treasury.address)]).toEqual([6_000_000n, TARGET]);
    const account = await solana.client.connection.getAccountInfo(new PublicKey(tokenAccountOf(solana.mint, cold)));
    expect(account?.owner.toBase58()).toBe(solana.mint.program);
    await run();
    expect(await transfers()).toHaveLength(1);
    expect(await ask()).toEqual({ ok: true, transfer: null });

    // The merchant is owed nine as before, and the cold account backs six of them.
    expect([await booked("cold"), await booked("treasury")]).toEqual([6_000_000n, TARGET]);
    expect(await booked(`payable:${fixture.merchantId}`)).toBe(-9_000_000n);
    expect(await fixture.db.transaction().execute((db) => readInventory(db, solana.asset))).toBe(0n);
    await fixture.watchUntil(async () => (await fixture.transactions()).every(({ state }) => state === "final"));
    const reconciled = await fixture.reconcile();
    expect(reconciled.ok && reconciled.value.filter(({ difference }) => difference !== 0n)).toEqual([]);

    await fixture.pay(await fundSolanaBuyer(solana), 300n);
    await seeFinal(6_000_000n);
    await shop.caughtUp();
    await run();
    await send();
    expect([await balanceOf(cold), await booked("cold")]).toEqual([9_000_000n, 9_000_000n]);
  });
});

describe("a transfer to the cold address on Solana", () => {
  test("leaves what payouts of the last hour still need, and takes the rest when they are final", async () => {
    const { fixture, ask, fund, seeFinal, run, send, caughtUp, balanceOf, cold } = await startShop();
    const paymentId = await fixture.pay(await fundSolanaBuyer(shared), 900n);
    await seeFinal(9_000_000n);
    expect(await fixture.settle((await fixture.settlementOf(paymentId)).id)).toEqual(["begun"]);
    await fund(13_000_000n);
    // The payout of nine has not left the treasury yet.
    expect(await ask()).toEqual({ ok: true, transfer: null });
    await fund(15_000_000n);
    expect(await ask()).toMatchObject({ transfer: { number: 1, amount: 3_000_000n } });
    await caughtUp();
    await run();
    await send();
    expect([await balanceOf(cold), await balanceOf(fixture.destination)]).toEqual([3_000_000n, 9_000_000n]);
  });

  test("is the same one after the signer was killed between its record and its signature", async () => {
    const { signing, fund, ask, run, send, transfers, caughtUp, signTransaction, balanceOf, cold } = await startShop();
    await fund(9_000_000n);
    const first = await ask();
    const key = signing.deps.treasuryKeys.get(shared.id);
    const signMessage = key?.signMessage;
    if (!signMessage) throw new Error("the treasury has no key");
    key.signMessage = () => Promise.reject(new Error("killed"));
    await expect(signTransaction()).resolves.toMatchObject({ ok: false });
    key.signMessage = signMessage;
    await fund(10_000_000n);
    expect(await ask()).toEqual(first);
    expect(await signExcess(signing.deps, { asset: shared.asset, pending: 0n })).toEqual(first);
    expect(signing.store.prepare("select count(*) as rows from cold_transfer").get()).toEqual({ rows: 1 });
    await caughtUp();
    await run();
    await send(4_000_000n);
    expect(await transfers()).toMatchObject([{ state: "confirmed", amount: 6_000_000n }]);
    expect(await balanceOf(cold)).toBe(6_000_000n);
  });

  test("goes to the address that the file names now, and not to one that a stored transfer still has", async () => {
    const { cold, keep, ask, run, send, transfers, fund, caughtUp, signTransaction, balanceOf } = await startShop();
    await fund(9_000_000n);
    expect(await ask()).toMatchObject({ transfer: { number: 1, receiver: cold } });
    await caughtUp();
    await run();
    const safer = newSolanaKey().address;
    await keep(safer);
    expect(await signTransaction({ destination: cold })).toMatchObject({ ok: false, reason: "payout_unauthorized" });
    await run();
    expect(await transfers()).toMatchObject([{ receiver: safer, amount: 6_000_000n }]);
    await send();
    expect([await balanceOf(cold), await balanceOf(safer)]).toEqual([0n, 6_000_000n]);
  });

  test("is not signed while the limits file pauses the signer or names an account of the deployment", async () => {
    const { keys, cold, keep, ask, run, fixture, transfers, fund, caughtUp, balanceOf } = await startShop();
    await fund(9_000_000n);
    await keep(undefined, { paused: true });
    expect(await ask()).toMatchObject({ ok: false, reason: "paused" });
    for (const own of [keys.treasury.address, tokenAccountOf(shared.mint, keys.treasury.address)]) {
      await keep(own);
      expect(await ask()).toMatchObject({ ok: false, reason: "limits_invalid" });
    }
    await keep();
    await caughtUp();
    await run();
    await keep(undefined, { paused: true });
    await fixture.submit();
    expect(await transfers()).toMatchObject([{ state: "ready", last_error: expect.stringContaining("paused") }]);
    expect(await balanceOf(cold)).toBe(0n);
  });

  test("is known as made after its marker was closed, but not by a state that is older than the transfer", async () => {
    const { signing, fixture, run, send, fund, transfers, caughtUp, ask, signTransaction } = await startShop();
    const { chain, deps } = fixture;
    await fund(9_000_000n);
    await caughtUp();
    await run();
    await send();
    const payoutNonce = (await transfers())[0]?.authorization_nonce ?? "";
    const { address } = findMarker(chain.treasury, payoutNonce);
    await fixture.watchUntil(async () => (await fixture.transactions()).every(({ state }) => state === "final"));
    const { blockhash } = await readBlockhash(chain);
    const closing = {
      chain: chain.chain,
      feePayer: chain.lanes[0] ?? "",
      blockhash,
      markers: [{ address, lamports: await readRent(chain) }],
    };
    signing.clock.advance(86_400_000);
    expect(await signing.signer.signMarkerClosing(closing)).toMatchObject({ ok: true, addresses: [address] });
    const { slot } = signing.store.prepare("select slot from closed_marker").get() as { slot: number };
    const made = (height: number) => wasMadeBy(signing.deps, { chain: chain.chain, payoutNonce, height });
    expect([made(slot - 1), made(slot)]).toEqual([false, true]);
    await fund(9_000_000n);
    expect(await ask()).toMatchObject({ transfer: { number: 2 } });
    expect(coldNonce(deps.deployment, { asset: shared.asset, number: 2 })).not.toBe(payoutNonce);
    expect(await signTransaction()).toMatchObject({ ok: true });
  });

  test("that a restored database has lost is found on chain, and is not made again", async () => {
    const { signing, keys, fixture, fund, ask, caughtUp, cold, balanceOf } = await startShop();
    await fund(9_000_000n);
    await caughtUp();
    const answer = await ask();
    await fixture.db.destroy();
    const of = { ...fixture, keys };
    const backup = await copyDatabase(fixture.databaseUrl);
    const lost = await makeSolanaMerchantFixture(shared, {
      of,
      databaseUrl: fixture.databaseUrl,
      clock: fixture.clock,
      signer: signing.signer,
    });
    await lost.settle();
    await moveExcess(lost.deps, shared.id);
    await lost.watchUntil(async () => {
      await lost.submit();
      return (await balanceOf(cold)) === 6_000_000n;
    });
    await lost.db.destroy();

    // A worker that asked before the transfer was final stores it once more.
    const signer = { ...signing.signer, moveExcess: async () => answer };
    const restored = await makeSolanaMerchantFixture(shared, { of, databaseUrl: backup, clock: fixture.clock, signer });
    await restored.settle();
    await moveExcess(restored.deps, shared.id);
    const state = async () =>
      (await restored.db.selectFrom("transfer").select("state").where("purpose", "=", "cold").execute())[0]?.state;
    await restored.watchUntil(async () => {
      restored.clock.advance(5_000);
      await restored.submit();
      return (await state()) === "confirmed";
    });
    expect(await balanceOf(cold)).toBe(6_000_000n);
    expect((await listBalances(restored.db, { account: "cold", asset: shared.asset }))[0]?.amount).toBe(6_000_000n);
    const open = await listExceptions(restored.deps, 10);
    expect(open.filter(({ kind }) => kind === "left")).toEqual([]);
  });
});

test("a thief with the database and a worker moves the excess nowhere else", async () => {
  const { signing, fixture, keys, cold, run, send, fund, transfers, caughtUp, signTransaction, balanceOf } =
    await startShop();
  const stranger = newSolanaKey().address;
  await fund(9_000_000n);
  await caughtUp();
  await run();
  for (const change of [{ destination: stranger }, { amount: 9_000_000n }])
    expect(await signTransaction(change)).toMatchObject({ ok: false, reason: "payout_unauthorized" });
  await execute(
    fixture.databaseUrl,
    `set session_replication_role = replica; update transfer set receiver = '${stranger}', amount = 9000000 where purpose = 'cold'`,
  );
  await fixture.submit();
  expect(await transfers()).toMatchObject([
    { state: "ready", last_error: expect.stringContaining("payout_unauthorized") },
  ]);
  expect(await balanceOf(keys.treasury.address)).toBe(9_000_000n);
  // The next request puts the signer's own answer in the place of the changed one.
  await run();
  await send();
  expect([await balanceOf(stranger), await balanceOf(cold), await balanceOf(keys.treasury.address)]).toEqual([
    0n,
    6_000_000n,
    TARGET,
  ]);
  expect(signing.payouts()).toEqual([]);
});

test("metrics show the balance, the floor, the ceiling and the transfers of each asset", async () => {
  const { signing, fund, ask } = await startShop();
  await fund(9_000_000n);
  await ask();
  await readHotBalances(signing.deps);
  const value = async (name: string) => (await signing.registry.getSingleMetric(name)?.get())?.values;
  const labels = { asset: shared.asset };
  expect(await value("pay_signer_hot_balance_minor_units")).toMatchObject([{ labels, value: 9_000_000 }]);
  expect(await value("pay_signer_hot_floor_minor_units")).toMatchObject([{ labels, value: Number(FLOOR) }]);
  expect(await value("pay_signer_hot_ceiling_minor_units")).toMatchObject([{ labels, value: Number(CEILING) }]);
  expect(await value("pay_signer_cold_transfers_total")).toMatchObject([{ labels, value: 1 }]);
});
