import { expect, test } from "vitest";
import { requestRetries } from "../../../../db/queries/failed-bookings.ts";
import { listBalances } from "../../../../db/queries/ledger-balances.ts";
import { execute } from "../../../support/execute-sql.ts";
import { makeSolanaMerchantFixture } from "../../../support/solana-merchant-fixture.ts";
import { fundSolanaBuyer, sendTokens, startTestSolana } from "../../../support/test-solana.ts";

const solana = await startTestSolana();

/** Returns a merchant fixture whose database refuses matching ledger groups until `allow` is called. */
async function makeRefusingFixture(when: string) {
  const fixture = await makeSolanaMerchantFixture(solana);
  await execute(
    fixture.databaseUrl,
    `create function refuse_row() returns trigger language plpgsql as $$
      begin raise exception 'no such row today'; end $$`,
    `create trigger refuse_row before insert on ledger_group for each row when (${when}) execute function refuse_row()`,
  );
  const failures = () => fixture.db.selectFrom("failed_booking").selectAll().orderBy("id").execute();
  return {
    fixture,
    failures,
    booked: async (account: string) => (await listBalances(fixture.db, { account }))[0]?.amount ?? 0n,
    finalNumber: async () =>
      (await fixture.db.selectFrom("chain_cursor").select("final_number").executeTakeFirstOrThrow()).final_number,
    allow: async () => {
      await execute(fixture.databaseUrl, "drop trigger refuse_row on ledger_group");
      await requestRetries(fixture.db, undefined);
      await fixture.watchUntil(async () => (await failures()).length === 0);
    },
  };
}

test("a Solana payment that cannot be booked does not delay finality, and a retry books it", async () => {
  const { fixture, failures, finalNumber, allow, booked } = await makeRefusingFixture("new.kind = 'payment'");
  const paymentId = await fixture.create();
  await fixture.verify(await fixture.attempt(paymentId, await fundSolanaBuyer(solana)));
  await fixture.submit();
  await fixture.watchUntil(async () => (await failures()).length === 1);
  expect(await failures()).toMatchObject([{ chain: solana.id, kind: "transfer", retries: 0 }]);
  const before = await finalNumber();
  await fixture.watchUntil(async () => (await finalNumber()) > before + 20);
  expect((await fixture.status(paymentId)).state).toBe("processing");
  expect(await failures()).toMatchObject([{ retries: 0 }]);
  await allow();
  expect((await fixture.status(paymentId)).state).toBe("succeeded");
  expect(await booked(`payable:${fixture.merchantId}`)).toBe(-1_000_000n);
});

test("a Solana fee that cannot be booked delays neither payments nor finality, and a retry books it once", async () => {
  const { fixture, failures, finalNumber, allow, booked } = await makeRefusingFixture("new.kind = 'gas'");
  const paymentId = await fixture.pay(await fundSolanaBuyer(solana));
  expect((await fixture.status(paymentId)).state).toBe("succeeded");
  await fixture.watchUntil(async () => (await failures()).length > 0);
  const before = await finalNumber();
  await fixture.watchUntil(async () => (await finalNumber()) > before + 20);
  const transactions = await fixture.transactions();
  const failed = transactions.map(({ hash: subject }) => ({ kind: "transaction", subject, retries: 0 }));
  expect((await failures()).toSorted((a, b) => a.id - b.id)).toMatchObject(failed);
  await allow();
  expect((await fixture.transactions()).map(({ state }) => state)).toEqual(transactions.map(() => "final"));
  expect(await booked("gas_spent")).toBe(
    (await fixture.transactions()).reduce((sum, { fee }) => sum + (fee ?? 0n), 0n),
  );
});

test("an unmatched Solana deposit that cannot be booked does not delay payments, and a retry books it", async () => {
  const { fixture, failures, allow, booked } = await makeRefusingFixture("new.kind = 'unmatched'");
  const stranger = await fundSolanaBuyer(solana);
  await sendTokens(solana, { from: stranger, to: fixture.keys.treasury.address, amount: 7_000n });
  await fixture.watchUntil(async () => (await failures()).length > 0);
  const paymentId = await fixture.pay(await fundSolanaBuyer(solana));
  expect((await fixture.status(paymentId)).state).toBe("succeeded");
  expect(await failures()).toMatchObject([{ kind: "unmatched" }]);
  await allow();
  expect(await booked("exceptions")).toBe(-7_000n);
});
