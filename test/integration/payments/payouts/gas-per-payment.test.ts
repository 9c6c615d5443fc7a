import { expect, test } from "vitest";
import { listDestinations } from "../../../../payments/merchants/destinations.ts";
import { setPayoutSchedule } from "../../../../payments/payouts/payout-policies.ts";
import { fundBuyers, sendUsdc, startChain } from "../../../support/evm-chain.ts";
import { makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";

/** docs/decisions/gas-per-payment.md derives what is possible. */
const MOST_GAS = 45_000;
const PAYMENTS = 61;

test("a payment and its share of a payout take at most 45,000 gas on a busy chain", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const { accountId, merchantId, mode, deps } = fixture;
  const owner = { accountId, merchantId, mode };
  // As on a chain that is in use: the first transfer to an account costs 17,100 gas more.
  const [first, ...buyers] = await fundBuyers(chain, PAYMENTS + 1);
  if (!first) throw new Error("no buyer");
  const warm = await fixture.pay(first);
  await fixture.settle((await fixture.settlementOf(warm)).id);
  await fixture.relay();
  await sendUsdc(chain, first, chain.keys.treasury.address, 1n);
  const [destination] = unwrap(await listDestinations(deps, owner));
  unwrap(await setPayoutSchedule(deps, { ...owner, id: destination?.id ?? "", schedule: { ms: 60_000 } }));
  await fixture.watch();
  const before = (await transactionsOf()).length;

  const attempts: string[] = [];
  for (const buyer of buyers) attempts.push(await fixture.attempt(await fixture.create(), buyer));
  await fixture.verify(...attempts);
  await fixture.relay();
  await fixture.watch();
  fixture.clock.advance(61_000);
  await fixture.watch();
  const due = await fixture.db.selectFrom("settlement").selectAll().where("state", "=", "accumulating").execute();
  expect(due).toMatchObject([{ amount: BigInt(PAYMENTS) * 1_000_000n }]);
  await fixture.settle(...due.map(({ id }) => id));
  await fixture.relay();
  await fixture.watch();

  const sent = (await transactionsOf()).slice(before);
  expect(sent, "one batch and one payout").toHaveLength(2);
  const perPayment = sent.reduce((sum, { gas_used }) => sum + Number(gas_used), 0) / PAYMENTS;
  process.stderr.write(`gas per payment: ${perPayment} ${sent.map(({ gas_used }) => gas_used)}\n`);
  expect(perPayment).toBeLessThanOrEqual(MOST_GAS);

  function transactionsOf() {
    return fixture.db.selectFrom("transaction").selectAll().orderBy("nonce").execute();
  }
});
