import { expect, test } from "vitest";
import { listDestinations } from "../../../../payments/merchants/destinations.ts";
import { setPayoutSchedule } from "../../../../payments/payouts/payout-policies.ts";
import { fundBuyers, sendUsdc, startChain } from "../../../support/evm-chain.ts";
import { makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";

/** Payments in a full batch (docs/decisions/gas-per-payment.md): `batchGas` by the gas limit of a transfer. */
const PAYMENTS = 61;

/** Payments that a payout of a busy merchant pays, at least. Its gas does not depend on their number. */
const PAID_OUT = 4 * PAYMENTS;

/** A merchant on a chain in use, whose payouts accumulate. Returns what pays payments, in one batch and one payout. */
async function openBusyShop() {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const { accountId, merchantId, mode, deps, db } = fixture;
  const owner = { accountId, merchantId, mode };
  const transactions = () => db.selectFrom("transaction").selectAll().orderBy("nonce").execute();
  // The first transfer to an account takes 17,100 gas more.
  const [first] = await fundBuyers(chain, 1);
  if (!first) throw new Error("no buyer");
  await fixture.settle((await fixture.settlementOf(await fixture.pay(first))).id);
  await fixture.relay();
  await sendUsdc(chain, first, chain.keys.treasury.address, 1n);
  const [destination] = unwrap(await listDestinations(deps, owner));
  unwrap(
    await setPayoutSchedule(deps, { actor: testActor, ...owner, id: destination?.id ?? "", schedule: { ms: 60_000 } }),
  );
  await fixture.watch();

  /** Pays the payments of a batch, each by the next of the buyers, and pays them out. Returns the gas per payment. */
  return async (payers: number): Promise<{ relay: number; payout: number }> => {
    const buyers = await fundBuyers(chain, payers);
    const before = (await transactions()).length;
    const attempts: string[] = [];
    for (let index = 0; index < PAYMENTS; index += 1)
      attempts.push(await fixture.attempt(await fixture.create(), buyers[index % payers] ?? first));
    await fixture.verify(...attempts);
    await fixture.relay();
    await fixture.watch();
    fixture.clock.advance(61_000);
    await fixture.watch();
    const due = await db.selectFrom("settlement").selectAll().where("state", "=", "accumulating").execute();
    expect(due).toMatchObject([{ amount: BigInt(PAYMENTS) * 1_000_000n }]);
    await fixture.settle(...due.map(({ id }) => id));
    await fixture.relay();
    await fixture.watch();
    const [batch, payout, ...more] = (await transactions()).slice(before);
    expect(more).toEqual([]);
    return { relay: Number(batch?.gas_used) / PAYMENTS, payout: Number(payout?.gas_used) / PAID_OUT };
  };
}

test("a payment and its share of a payout take at most 45,000 gas, and 51,300 when no payer pays twice", async () => {
  const payBatch = await openBusyShop();
  const returning = await payBatch(8);
  expect(returning.relay + returning.payout).toBeLessThanOrEqual(45_000);
  const distinct = await payBatch(PAYMENTS);
  expect(distinct.relay + distinct.payout).toBeLessThanOrEqual(51_300);
});
