import { Agent, request } from "undici";
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, test } from "vitest";
import { readInventory } from "../../../db/queries/inventory.ts";
import { freeLane, takeLane } from "../../../db/queries/lanes.ts";
import { listBalances } from "../../../db/queries/ledger-balances.ts";
import { newKey } from "../../../local/networks-document.ts";
import { mintUsdc } from "../../../local/usdc.ts";
import { reconcileChain } from "../../../payments/accounting/reconcile-chain.ts";
import { bookException, listExceptions } from "../../../payments/accounting/resolve-exceptions.ts";
import { moveExcess } from "../../../payments/payouts/move-excess.ts";
import { moveExcess as signExcess } from "../../../signer/move-excess.ts";
import { readHotBalances } from "../../../signer/watch-hot-balances.ts";
import { fundBuyer, sendUsdc, startChain, usdcBalance } from "../../support/evm-chain.ts";
import { execute } from "../../support/execute-sql.ts";
import { makeMerchantFixture, unwrap } from "../../support/merchant-fixture.ts";
import { testActor } from "../../support/test-actor.ts";
import { startTestSigner } from "../../support/test-signer.ts";

const FLOOR = 2_000_000n;
const TARGET = 3_000_000n;
const CEILING = 5_000_000n;

/** Starts a deployment whose treasury may hold little. `cold` is the address that its signer's file names. */
async function startShop() {
  const chain = await startChain();
  const signing = await startTestSigner(chain);
  const fixture = await makeMerchantFixture(chain, { signer: signing.signer });
  const coldKey = newKey();
  const cold = coldKey.address;
  const keep = (address = cold, file = {}) => {
    const hotBalance = { floor: String(FLOOR), ceiling: String(CEILING), cold: { address, target: String(TARGET) } };
    return signing.setLimits({ asset: { hotBalance }, file });
  };
  await keep();
  const ask = () => signing.signer.moveExcess({ asset: chain.asset, pending: 0n });
  const run = () => moveExcess(fixture.deps, chain.id);
  const send = async () => {
    await fixture.relay();
    await fixture.watch();
  };
  const transfers = () => fixture.db.selectFrom("transfer").selectAll().where("purpose", "=", "cold").execute();
  const booked = async (account: string) => (await listBalances(fixture.db, { account }))[0]?.amount ?? 0n;
  const held = () => usdcBalance(chain, chain.keys.treasury.address);
  return { chain, signing, fixture, cold, coldKey, keep, ask, run, send, transfers, booked, held };
}

test("what exceeds the ceiling moves to the cold address once, although two workers ask", async () => {
  const { chain, signing, fixture, cold, ask, run, send, transfers, booked, held } = await startShop();
  await fixture.pay(await fundBuyer(chain), 500n);
  await run();
  expect(await transfers(), "five is the ceiling").toEqual([]);
  await fixture.pay(await fundBuyer(chain), 400n);

  const other = await makeMerchantFixture(chain, {
    databaseUrl: fixture.databaseUrl,
    clock: fixture.clock,
    signer: signing.signer,
  });
  await other.watch();
  await Promise.all([run(), moveExcess(other.deps, chain.id), run()]);
  expect(await transfers()).toMatchObject([{ amount: 6_000_000n, receiver: cold.toLowerCase() }]);
  await send();
  expect([await usdcBalance(chain, cold), await held()]).toEqual([6_000_000n, TARGET]);
  await run();
  expect(await transfers()).toMatchObject([{ state: "confirmed" }]);
  expect(await ask()).toEqual({ ok: true, transfer: null });

  // The merchant is owed nine as before, and the cold account backs six of them.
  expect([await booked("cold"), await booked("treasury")]).toEqual([6_000_000n, TARGET]);
  expect(await booked(`payable:${fixture.merchantId}`)).toBe(-9_000_000n);
  expect(await fixture.db.transaction().execute((db) => readInventory(db, chain.asset))).toBe(0n);
  const reconciled = await reconcileChain(fixture.deps, { chain: chain.id });
  expect(reconciled.ok && reconciled.value.filter(({ difference }) => difference !== 0n)).toEqual([]);

  await fixture.pay(await fundBuyer(chain), 300n);
  await run();
  await send();
  expect([await usdcBalance(chain, cold), await held()]).toEqual([9_000_000n, TARGET]);
});

test("a payout that the treasury cannot cover waits, and is paid when money has come back from the cold account", async () => {
  const { chain, signing, fixture, coldKey, run, send, transfers, booked, held } = await startShop();
  const paymentId = await fixture.pay(await fundBuyer(chain), 900n);
  await run();
  await send();
  expect(await fixture.settle((await fixture.settlementOf(paymentId)).id)).toEqual(["begun"]);
  await send();
  expect([await usdcBalance(chain, fixture.destination), await held()]).toEqual([0n, TARGET]);

  await sendUsdc(chain, privateKeyToAccount(coldKey.privateKey), chain.keys.treasury.address, 6_000_000n);
  await fixture.watch();
  const [exception] = await listExceptions(fixture.deps, 10);
  if (!exception) throw new Error("there is no exception");
  unwrap(await bookException(fixture.deps, { actor: testActor, id: exception.id, as: "cold", note: "brought back" }));
  // The payout was signed hours ago, so that only the worker knows that it still needs the money.
  for (const clock of [fixture.clock, signing.clock]) clock.advance(2 * 3_600_000);
  await fixture.watch();
  await run();
  expect(await transfers()).toHaveLength(1);
  await send();
  expect([await usdcBalance(chain, fixture.destination), await held()]).toEqual([9_000_000n, 0n]);
  expect([await booked("cold"), await booked("treasury")]).toEqual([0n, 0n]);
  expect(signing.payouts()).toHaveLength(1);
});

describe("a transfer to the cold address", () => {
  test("is the same one after the signer was killed between its record and its signature", async () => {
    const { chain, signing, fixture, ask, run, send, transfers } = await startShop();
    await fixture.pay(await fundBuyer(chain), 900n);
    const killed = new Map([[chain.id, { sign: () => Promise.reject(new Error("killed")) }]]);
    await expect(
      signExcess({ ...signing.deps, treasuryKeys: killed }, { asset: chain.asset, pending: 0n }),
    ).rejects.toThrow("killed");
    await fixture.pay(await fundBuyer(chain), 100n);
    const first = await ask();
    expect(first).toMatchObject({ ok: true, transfer: { number: 1, amount: 6_000_000n } });
    expect(await ask()).toEqual(first);
    expect(signing.store.prepare("select count(*) as rows from cold_transfer").get()).toEqual({ rows: 1 });
    await run();
    await send();
    expect(await transfers()).toMatchObject([{ state: "confirmed", amount: 6_000_000n }]);
  });

  test("goes to the address that the file names now, and one nonce is used once", async () => {
    const { chain, fixture, cold, keep, ask, run, send } = await startShop();
    await fixture.pay(await fundBuyer(chain), 900n);
    expect(await ask()).toMatchObject({ transfer: { number: 1, receiver: cold.toLowerCase() } });
    const safer = newKey().address;
    await keep(safer);
    expect(await ask()).toMatchObject({ transfer: { number: 1, receiver: safer.toLowerCase() } });
    await run();
    await send();
    expect([await usdcBalance(chain, cold), await usdcBalance(chain, safer)]).toEqual([0n, 6_000_000n]);
  });

  test("that is stored follows the file to another address, unless a lane that a worker holds has taken it", async () => {
    const { chain, fixture, cold, keep, run, send, transfers } = await startShop();
    await fixture.pay(await fundBuyer(chain), 900n);
    await run();
    const { id, address } = await fixture.db.selectFrom("lane").selectAll().executeTakeFirstOrThrow();
    const wanted = { chain: chain.id, addresses: [address], owner: "other", leaseMs: 60_000 };
    const lease = await takeLane(fixture.db, wanted);
    await fixture.db.updateTable("transfer").set({ lane_id: id }).where("purpose", "=", "cold").execute();
    const safer = newKey().address;
    await keep(safer);
    await run();
    expect(await transfers()).toMatchObject([{ receiver: cold.toLowerCase() }]);
    if (lease) await freeLane(fixture.db, lease);
    await run();
    expect(await transfers()).toMatchObject([{ receiver: safer.toLowerCase() }]);
    await send();
    expect([await usdcBalance(chain, cold), await usdcBalance(chain, safer)]).toEqual([0n, 6_000_000n]);
  });

  test("shrinks when the treasury has less than it, because it could never be made", async () => {
    const { chain, fixture, ask } = await startShop();
    await fixture.pay(await fundBuyer(chain), 900n);
    expect(await ask()).toMatchObject({ transfer: { number: 1, amount: 6_000_000n } });
    const thief = privateKeyToAccount(chain.keys.treasury.privateKey);
    await sendUsdc(chain, thief, newKey().address, 3_500_000n);
    expect(await ask()).toMatchObject({ transfer: { number: 1, amount: 2_500_000n } });
    expect(await ask()).toMatchObject({ transfer: { number: 1, amount: 2_500_000n } });
  });

  test("leaves what payouts of the last hour still need", async () => {
    const { chain, signing, fixture, ask } = await startShop();
    const paymentId = await fixture.pay(await fundBuyer(chain), 900n);
    expect(await fixture.settle((await fixture.settlementOf(paymentId)).id)).toEqual(["begun"]);
    // The payout of nine has not left the treasury yet.
    expect(await ask()).toEqual({ ok: true, transfer: null });
    expect(signing.payouts()).toHaveLength(1);
  });

  test("is not signed while the limits file pauses the signer or names an account of the deployment", async () => {
    const { chain, fixture, keep, ask } = await startShop();
    await fixture.pay(await fundBuyer(chain), 900n);
    await keep(undefined, { paused: true });
    expect(await ask()).toMatchObject({ ok: false, reason: "paused" });
    await keep(chain.keys.treasury.address);
    expect(await ask()).toMatchObject({ ok: false, reason: "limits_invalid" });
  });
});

test("a thief with the database and a worker moves the excess nowhere else", async () => {
  const { chain, signing, fixture, cold, run, send, held } = await startShop();
  const stranger = newKey().address;
  await fixture.pay(await fundBuyer(chain), 900n);
  const asked = await request("http://signer/v1/excess", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ asset: chain.asset, pending: "0", receiver: stranger, amount: "9000000" }),
    dispatcher: new Agent({ connect: { socketPath: signing.socketPath } }),
  });
  expect(asked.statusCode).toBe(400);

  await run();
  await execute(
    fixture.databaseUrl,
    `set session_replication_role = replica; update transfer set receiver = '${stranger}', amount = 9000000 where purpose = 'cold'`,
  );
  await send();
  expect([await usdcBalance(chain, stranger), await usdcBalance(chain, cold), await held()]).toEqual([
    0n,
    0n,
    9_000_000n,
  ]);
});

test("metrics show the balance, the floor and the ceiling of each asset", async () => {
  const { chain, signing } = await startShop();
  await mintUsdc(chain.client, chain.contracts.token, [chain.keys.treasury.address], FLOOR - 1n);
  await readHotBalances(signing.deps);
  const value = async (name: string) => (await signing.registry.getSingleMetric(name)?.get())?.values;
  const labels = { asset: chain.asset };
  expect(await value("pay_signer_hot_balance_minor_units")).toMatchObject([{ labels, value: Number(FLOOR) - 1 }]);
  expect(await value("pay_signer_hot_floor_minor_units")).toMatchObject([{ labels, value: Number(FLOOR) }]);
  expect(await value("pay_signer_hot_ceiling_minor_units")).toMatchObject([{ labels, value: Number(CEILING) }]);
});
