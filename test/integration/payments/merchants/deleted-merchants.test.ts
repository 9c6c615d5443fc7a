import { expect, test } from "vitest";
import { deleteDestination, listDestinations } from "../../../../payments/merchants/destinations.ts";
import { deleteMerchant } from "../../../../payments/merchants/merchants.ts";
import { accumulatePayouts } from "../../../support/accumulate-payouts.ts";
import { adminIn } from "../../../support/admin.ts";
import { fundBuyer, startChain, usdcBalance } from "../../../support/evm-chain.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";

const chain = await startChain();
const first = await makeMerchantFixture(chain);
const admin = adminIn({ DATABASE_URL: first.databaseUrl, OPERATOR: "night watch" });
const UNIT = 1_000_000n;

const open = () => makeMerchantFixture(chain, { databaseUrl: first.databaseUrl, clock: first.clock });
const owner = ({ accountId, merchantId }: MerchantFixture) => ({ accountId, merchantId, mode: "live" as const });
const remove = async (fixture: MerchantFixture) =>
  unwrap(await deleteMerchant(fixture.deps, { ...owner(fixture), actor: testActor }));
async function destinationOf(fixture: MerchantFixture): Promise<string> {
  const [one] = unwrap(await listDestinations(fixture.deps, owner(fixture)));
  return one?.id ?? "";
}
async function json<T>(...args: string[]): Promise<T> {
  const { code, stdout, stderr } = await admin(...args, "--json");
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout) as T;
}
/** Begins a payment's settlement, relays it and confirms it. Returns the outcome of the begin. */
async function settle(fixture: MerchantFixture, paymentId: string) {
  const outcome = await fixture.settle((await fixture.settlementOf(paymentId)).id);
  await fixture.relay();
  await fixture.watch();
  return outcome;
}

test("an operator holds and releases a deleted merchant, and its accumulated payout waits meanwhile", async () => {
  const fixture = await open();
  await accumulatePayouts(fixture, { ms: 60_000, amount: 1_000n * UNIT });
  const paymentId = await fixture.pay(await fundBuyer(chain), 200n);
  await remove(fixture);
  expect(await json("merchants", "hold", fixture.merchantId)).toMatchObject({ heldSince: expect.any(String) });
  first.clock.advance(61_000);
  await fixture.watch();
  await settle(fixture, paymentId);
  expect(await fixture.settlementOf(paymentId)).toMatchObject({ state: "accumulating" });
  expect(await usdcBalance(chain, fixture.destination)).toBe(0n);
  await json("merchants", "release", fixture.merchantId);
  await settle(fixture, paymentId);
  expect(await usdcBalance(chain, fixture.destination)).toBe(2n * UNIT);
});

test("a deleted merchant without a destination keeps a visible balance, which is paid once an operator registers a destination", async () => {
  const fixture = await open();
  const paymentId = await fixture.pay(await fundBuyer(chain), 300n);
  unwrap(
    await deleteDestination(fixture.deps, { actor: testActor, ...owner(fixture), id: await destinationOf(fixture) }),
  );
  await remove(fixture);
  expect(await settle(fixture, paymentId)).toEqual(["no_destination"]);
  const owed = [{ asset: chain.asset, amount: String(3n * UNIT) }];
  expect(await json("merchants", "show", fixture.merchantId)).toMatchObject({
    deletedAt: expect.any(String),
    settlements: [],
    owed,
  });
  const of = ["--account", fixture.accountId, "--mode", "live"];
  expect(await json("merchants", "list", ...of)).toEqual([]);
  expect(await json("merchants", "list", ...of, "--deleted")).toMatchObject([
    { id: fixture.merchantId, deletedAt: expect.any(String), owed },
  ]);
  const to = `${chain.id}:${fixture.destination}`;
  const { id } = await json<{ id: string }>(
    "destinations",
    "add",
    fixture.merchantId,
    "--asset",
    chain.asset,
    "--to",
    to,
  );
  expect(await settle(fixture, paymentId)).toEqual(["begun"]);
  expect(await usdcBalance(chain, fixture.destination)).toBe(3n * UNIT);
  expect(await json("merchants", "show", fixture.merchantId)).toMatchObject({ owed: [] });
  await json("destinations", "remove", fixture.merchantId, id);
  const today = first.clock.now().toISOString().slice(0, 10);
  const statement = await json<{ kind: string }[]>(
    "merchants",
    "statement",
    fixture.merchantId,
    "--from",
    "2020-01-01",
    "--until",
    today,
  );
  expect(statement.map(({ kind }) => kind)).toEqual(["opening", "payment", "settlement", "closing"]);
});

test("a deleted merchant's accumulated payout is paid below the minimum, because nothing more will arrive", async () => {
  const fixture = await open();
  await accumulatePayouts(fixture, { ms: 60_000, amount: 1_000n * UNIT, minimum: 50n * UNIT });
  const paymentId = await fixture.pay(await fundBuyer(chain), 200n);
  first.clock.advance(61_000);
  await fixture.watch();
  await settle(fixture, paymentId);
  expect(await fixture.settlementOf(paymentId)).toMatchObject({ state: "accumulating" });
  const blocked = { blocked_by: "minimum", blocked_at: new Date(), due_at: new Date(Date.now() + 600_000) };
  await fixture.db.updateTable("payout_queue").set(blocked).where("merchant_id", "=", fixture.merchantId).execute();
  await remove(fixture);
  const queue = () =>
    fixture.db.selectFrom("payout_queue").select("blocked_by").where("merchant_id", "=", fixture.merchantId).execute();
  expect(await queue()).toEqual([{ blocked_by: null }]);
  await settle(fixture, paymentId);
  expect(await usdcBalance(chain, fixture.destination)).toBe(2n * UNIT);
});

test("an account cannot access its deleted merchant", async () => {
  const fixture = await open();
  await remove(fixture);
  expect(await listDestinations(fixture.deps, owner(fixture))).toMatchObject({ code: "merchant_not_found" });
  expect(await fixture.addDestination()).toMatchObject({ code: "merchant_not_found" });
});
