import { expect, test } from "vitest";
import { deleteDestination, listDestinations } from "../../../payments/destinations.ts";
import { deleteMerchant } from "../../../payments/merchants.ts";
import { gatherPayouts } from "../../../payments/payout-policies.ts";
import { adminIn } from "../../support/admin.ts";
import { fundBuyer, startChain, usdcBalance } from "../../support/chain.ts";
import { good, makeTill, type Till } from "../../support/till.ts";

const chain = await startChain();
const first = await makeTill(chain);
const admin = adminIn({ DATABASE_URL: first.databaseUrl, OPERATOR: "night watch" });
const UNIT = 1_000_000n;

const open = () => makeTill(chain, { databaseUrl: first.databaseUrl, clock: first.clock });
const owner = ({ accountId, merchantId }: Till) => ({ accountId, merchantId, mode: "live" as const });
const remove = async (till: Till) => good(await deleteMerchant(till.deps, owner(till)));
async function destinationOf(till: Till): Promise<string> {
  const [one] = good(await listDestinations(till.deps, owner(till)));
  return one?.id ?? "";
}
async function accumulate(till: Till, gather: { ms: number; minimum?: bigint }) {
  const id = await destinationOf(till);
  good(await gatherPayouts(till.deps, { ...owner(till), id, gather: { amount: 1_000n * UNIT, ...gather } }));
}
async function json<T>(...args: string[]): Promise<T> {
  const { code, stdout, stderr } = await admin(...args, "--json");
  if (code !== 0) throw new Error(stderr);
  return JSON.parse(stdout) as T;
}
/** Begins a payment's settlement, relays it and confirms it. Returns the outcome of the begin. */
async function settle(till: Till, paymentId: string) {
  const outcome = await till.settle((await till.settlementOf(paymentId)).id);
  await till.relay();
  await till.watch();
  return outcome;
}

test("an operator holds and releases a deleted merchant, and its accumulated payout waits meanwhile", async () => {
  const till = await open();
  await accumulate(till, { ms: 60_000 });
  const paymentId = await till.pay(await fundBuyer(chain), 200n);
  await remove(till);
  expect(await json("merchants", "hold", till.merchantId)).toMatchObject({ heldSince: expect.any(String) });
  first.clock.advance(61_000);
  await till.watch();
  await settle(till, paymentId);
  expect(await till.settlementOf(paymentId)).toMatchObject({ state: "gathering" });
  expect(await usdcBalance(chain, till.destination)).toBe(0n);
  await json("merchants", "release", till.merchantId);
  await settle(till, paymentId);
  expect(await usdcBalance(chain, till.destination)).toBe(2n * UNIT);
});

test("a deleted merchant without a destination keeps a visible balance, which is paid once an operator registers a destination", async () => {
  const till = await open();
  const paymentId = await till.pay(await fundBuyer(chain), 300n);
  good(await deleteDestination(till.deps, { ...owner(till), id: await destinationOf(till) }));
  await remove(till);
  expect(await settle(till, paymentId)).toEqual(["no_destination"]);
  const owed = [{ asset: chain.asset, amount: String(3n * UNIT) }];
  expect(await json("merchants", "show", till.merchantId)).toMatchObject({
    deletedAt: expect.any(String),
    settlements: [],
    owed,
  });
  const of = ["--account", till.accountId, "--mode", "live"];
  expect(await json("merchants", "list", ...of)).toEqual([]);
  expect(await json("merchants", "list", ...of, "--deleted")).toMatchObject([
    { id: till.merchantId, deletedAt: expect.any(String), owed },
  ]);
  const to = `${chain.id}:${till.destination}`;
  const { id } = await json<{ id: string }>("destinations", "add", till.merchantId, "--asset", chain.asset, "--to", to);
  expect(await settle(till, paymentId)).toEqual(["begun"]);
  expect(await usdcBalance(chain, till.destination)).toBe(3n * UNIT);
  expect(await json("merchants", "show", till.merchantId)).toMatchObject({ owed: [] });
  await json("destinations", "remove", till.merchantId, id);
  const today = first.clock.now().toISOString().slice(0, 10);
  const statement = await json<object[]>("statement", till.merchantId, "--from", "2020-01-01", "--until", today);
  expect(statement).toHaveLength(1);
});

test("a deleted merchant's accumulated payout is paid below the minimum, because nothing more will arrive", async () => {
  const till = await open();
  await accumulate(till, { ms: 60_000, minimum: 50n * UNIT });
  const paymentId = await till.pay(await fundBuyer(chain), 200n);
  first.clock.advance(61_000);
  await till.watch();
  await settle(till, paymentId);
  expect(await till.settlementOf(paymentId)).toMatchObject({ state: "gathering" });
  const blocked = { blocked_by: "minimum", blocked_at: new Date(), due_at: new Date(Date.now() + 600_000) };
  await till.db.updateTable("payout_queue").set(blocked).where("merchant_id", "=", till.merchantId).execute();
  await remove(till);
  const queue = () =>
    till.db.selectFrom("payout_queue").select("blocked_by").where("merchant_id", "=", till.merchantId).execute();
  expect(await queue()).toEqual([{ blocked_by: null }]);
  await settle(till, paymentId);
  expect(await usdcBalance(chain, till.destination)).toBe(2n * UNIT);
});

test("an account cannot access its deleted merchant", async () => {
  const till = await open();
  await remove(till);
  expect(await listDestinations(till.deps, owner(till))).toMatchObject({ code: "merchant_not_found" });
  expect(await till.addDestination()).toMatchObject({ code: "merchant_not_found" });
});
