import { sql } from "kysely";
import { expect, test } from "vitest";
import { insertObservations } from "../../../../db/queries/observations.ts";
import { dispatchSettlements, takePayouts } from "../../../../payments/payouts/dispatch-payouts.ts";
import { settlementNonce } from "../../../../payments/payouts/sign-payout.ts";
import { accumulatePayouts } from "../../../support/accumulate-payouts.ts";
import { fundBuyer, startChain, usdcBalance } from "../../../support/evm-chain.ts";
import { insertSettlementRow } from "../../../support/insert-rows.ts";
import { type MerchantFixture, makeMerchantFixture } from "../../../support/merchant-fixture.ts";

const chain = await startChain();
const DAY_MS = 24 * 60 * 60_000;

/** Inserts settlements of one minor unit that fell due a day ago, and credits them to the merchant. */
async function insertBacklog({ db, merchantId, accountId, deps }: MerchantFixture, count: number): Promise<void> {
  const dueAt = new Date(deps.now().getTime() - DAY_MS);
  const more = { asset: chain.asset, dueAt };
  for (let index = 0; index < count; index += 1)
    await insertSettlementRow(db, { accountId, merchantId }, { ...more, number: 1_000 + index });
  await sql`update merchant_balance set amount = amount + ${count}::numeric where merchant_id = ${merchantId}`.execute(
    db,
  );
}

/** Inserts the movement of a settlement's payout, which the database has forgotten. */
async function insertForgottenPayout(fixture: MerchantFixture, id: string): Promise<void> {
  const { db, deps, destination } = fixture;
  const row = await db.selectFrom("settlement").selectAll().where("id", "=", id).executeTakeFirstOrThrow();
  const payment = (await fixture.transfers()).find(({ purpose }) => purpose === "payment");
  const movement = {
    token: payment?.token ?? "",
    payer: chain.keys.treasury.address.toLowerCase(),
    receiver: destination.toLowerCase(),
    amount: row.amount,
    authorization_nonce: settlementNonce(deps, row),
  };
  const place = { chain: chain.id, block_id: "0x01", block_number: 1, tx_hash: "0x02", log_index: 0 };
  await insertObservations(db, [{ ...place, ...movement, transfer_id: null, observed_at: deps.now() }]);
}

/** Takes and dispatches the merchant's settlements for three rounds, as the sweep and its jobs do. */
async function sweep(fixture: MerchantFixture): Promise<void> {
  for (let round = 0; round < 3; round += 1) {
    fixture.clock.advance(600_000);
    await fixture.watch();
    for (const { ids } of await takePayouts(fixture.deps, "settlement")) await dispatchSettlements(fixture.deps, ids);
  }
}

const stateOf = async ({ db }: MerchantFixture, id: string) =>
  (await db.selectFrom("settlement").select("state").where("id", "=", id).executeTakeFirstOrThrow()).state;
/** Returns how many of the merchant's settlements have begun. */
const countBegun = async ({ db, merchantId }: MerchantFixture) => {
  const states = await db.selectFrom("settlement").select("state").where("merchant_id", "=", merchantId).execute();
  return states.filter(({ state }) => state !== "due" && state !== "accumulating").length;
};

test("a forgotten payout behind a backlog of 150 settlements is adopted, and then the backlog is paid", async () => {
  const fixture = await makeMerchantFixture(chain);
  const payment = await fixture.pay(await fundBuyer(chain), 100n);
  const { id } = await fixture.settlementOf(payment);
  await insertBacklog(fixture, 150);
  await insertForgottenPayout(fixture, id);

  await sweep(fixture);
  expect(await stateOf(fixture, id)).toBe("paying");
  // The others may be what was paid, so they wait for the adoption.
  expect(await countBegun(fixture)).toBe(1);
  await fixture.relay();
  const payout = (await fixture.transfers()).find(({ settlement_id }) => settlement_id === id);
  expect(payout).toMatchObject({ state: "included" });
  expect(await usdcBalance(chain, fixture.destination)).toBe(0n);
  await sweep(fixture);
  expect(await countBegun(fixture)).toBe(151);
});

test("a forgotten payout of a settlement that accumulates below its minimum does not hold the due settlements", async () => {
  const fixture = await makeMerchantFixture(chain);
  await accumulatePayouts(fixture, { ms: DAY_MS });
  const payment = await fixture.pay(await fundBuyer(chain), 100n);
  const { id } = await fixture.settlementOf(payment);
  await fixture.db.updateTable("settlement_destination").set({ minimum: 1_000_000_000n }).execute();
  await insertBacklog(fixture, 3);
  await insertForgottenPayout(fixture, id);

  await sweep(fixture);
  expect(await stateOf(fixture, id)).toBe("paying");
  expect(await countBegun(fixture)).toBe(1);
  await fixture.relay();
  await sweep(fixture);
  expect(await countBegun(fixture)).toBe(4);
});
