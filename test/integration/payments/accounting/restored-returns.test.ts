import { expect, test } from "vitest";
import { moveRows } from "../../../../db/moves.ts";
import {
  assignException,
  bookException,
  listExceptions,
  returnException,
} from "../../../../payments/accounting/resolve-exceptions.ts";
import { fundBuyer, startChain, usdcBalance } from "../../../support/evm-chain.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { balanceOf, payOut, restoreDatabase, work } from "../../../support/restored-database.ts";
import { testActor } from "../../../support/test-actor.ts";

const AMOUNT = 5_000_000n;
const chain = await startChain();

/** Returns the id of the exception with a payment's money. */
async function findLate(of: MerchantFixture, paymentId: string): Promise<number> {
  const late = (await listExceptions(of.deps, 10)).find((one) => one.paymentId === paymentId);
  if (!late) throw new Error("the payment has no exception");
  return late.id;
}

/** Returns the money of an exception to its sender. */
async function sendBack(of: MerchantFixture, id: number): Promise<void> {
  unwrap(await returnException(of.deps, { actor: testActor, id }));
  const refund = await of.db.selectFrom("refund").select("id").executeTakeFirstOrThrow();
  expect(await of.refund(refund.id)).toEqual(["begun"]);
  await of.relay();
}

test("after a restore, money whose return the chain shows is neither assigned nor booked, and its return is adopted", async () => {
  const first = await makeMerchantFixture(chain);
  const buyer = await fundBuyer(chain);
  const paymentId = await first.create(500n);
  await first.verify(await first.attempt(paymentId, buyer));
  await moveRows(first.db, "payment", { ids: [paymentId], from: "processing", to: "failed", at: first.deps.now() });
  await first.relay();
  await first.watch();
  const before = await usdcBalance(chain, buyer.address);
  const received = async () => (await usdcBalance(chain, buyer.address)) - before;
  const { merchantId, destination } = first;
  const restored = await restoreDatabase(first, chain, async (lost) => sendBack(lost, await findLate(lost, paymentId)));
  expect(await received()).toBe(AMOUNT);

  await work(restored);
  const { deps } = restored;
  const of = { actor: testActor, id: await findLate(restored, paymentId) };
  const refused = {
    code: "invalid_state",
    message: expect.stringContaining("the chain shows that the refund was sent"),
  };
  expect(await assignException(deps, { ...of, paymentId })).toMatchObject(refused);
  expect(await bookException(deps, { ...of, as: "capital", note: "ours" })).toMatchObject(refused);
  await payOut(restored, merchantId);
  expect(await usdcBalance(chain, destination)).toBe(0n);

  await sendBack(restored, of.id);
  await work(restored);
  expect(await received()).toBe(AMOUNT);
  expect(await listExceptions(deps, 10)).toEqual([]);
  expect(await balanceOf(restored, "in_transit", chain.asset)).toBe(0n);
});
