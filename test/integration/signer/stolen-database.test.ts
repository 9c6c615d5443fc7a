import { describe, expect, test } from "vitest";
import { newKey } from "../../../local/networks-document.ts";
import { fundBuyer, startChain, usdcBalance } from "../../support/evm-chain.ts";
import { execute } from "../../support/execute-sql.ts";
import { type MerchantFixture, makeMerchantFixture } from "../../support/merchant-fixture.ts";
import { startTestSigner } from "../../support/test-signer.ts";

// A thief who controls the service's database, as its superuser, obtains nothing from the treasury.

const chain = await startChain();
const signing = await startTestSigner(chain);
const fixture = await makeMerchantFixture(chain, { signer: signing.signer });
const { databaseUrl } = fixture;
const { id: chainId, asset } = chain;

/** A second merchant of the same deployment, which the thief controls. */
const thief = await makeMerchantFixture(chain, { databaseUrl, clock: fixture.clock, signer: signing.signer });
const stranger = newKey().address;

const held = () => usdcBalance(chain, chain.keys.treasury.address);

/** Runs statements with all triggers off, as only a superuser can. */
const asSuperuser = (...statements: string[]) =>
  execute(databaseUrl, `set session_replication_role = replica; ${statements.join("; ")}`);

/** Plants a settlement in the state `due`, without anything behind it. */
async function plantSettlement(
  of: MerchantFixture,
  { amount, number }: { amount: bigint; number: number },
): Promise<string> {
  const id = `stl_planted${number}${of.merchantId.slice(-8)}`;
  await asSuperuser(
    `insert into merchant_balance (merchant_id, asset, amount) values ('${of.merchantId}', '${asset}', ${amount})
      on conflict (merchant_id, asset) do update set amount = merchant_balance.amount + excluded.amount`,
    `insert into settlement (id, merchant_id, mode, asset, number, amount, state, created_at, due_at)
      values ('${id}', '${of.merchantId}', 'live', '${asset}', ${number}, ${amount}, 'due', now(), now())`,
  );
  return id;
}

const redirect = (of: MerchantFixture, to: string) =>
  asSuperuser(
    `update settlement_destination set destination = '${chainId}:${to}' where merchant_id = '${of.merchantId}'`,
  );

/** Tries to pay settlements, and expects that no transfer is made and the treasury keeps its money. */
async function expectUnpaid(settlementId: string, reason: string): Promise<void> {
  await fixture.relay();
  await fixture.watch();
  const before = await held();
  expect(await fixture.settle(settlementId)).toEqual([reason]);
  await fixture.relay();
  await fixture.watch();
  expect(await held()).toBe(before);
  const made = await fixture.db.selectFrom("transfer").select("id").where("settlement_id", "=", settlementId).execute();
  expect(made).toEqual([]);
}

/** Pays the merchant with the treasury's money, so that there is something to take. */
const earn = async (of: MerchantFixture, cents: bigint) => of.pay(await fundBuyer(chain), cents);

describe("a thief who is the database's superuser", () => {
  test("an honest settlement is paid through the signer", async () => {
    const paymentId = await earn(fixture, 500n);
    expect(await fixture.settle((await fixture.settlementOf(paymentId)).id)).toEqual(["begun"]);
    await fixture.relay();
    await fixture.watch();
    expect(await usdcBalance(chain, fixture.destination)).toBe(5_000_000n);
    expect(await fixture.settlementOf(paymentId)).toMatchObject({ state: "paid" });
    expect(signing.deps.shortPayouts.oldestSeconds()).toBe(0);
  });

  test("a destination, a balance and a due settlement with no payment behind them pay nothing", async () => {
    await earn(fixture, 500n);
    await redirect(thief, stranger);
    await expectUnpaid(await plantSettlement(thief, { amount: 5_000_000n, number: 901 }), "funds_short");
    // What pages, whatever the thief writes into the queue of payouts.
    expect(signing.deps.shortPayouts.oldestSeconds()).toBeGreaterThan(0);
    expect(await usdcBalance(chain, stranger)).toBe(0n);
  });

  test("forged ledger rows pay nothing", async () => {
    await earn(fixture, 500n);
    await asSuperuser(
      `insert into ledger_group (kind, subject, at) values ('payment', 'trf_forged', now())`,
      `insert into ledger_entry (group_id, account, asset, amount)
        select id, 'treasury', '${asset}', 5000000 from ledger_group where subject = 'trf_forged'
        union all select id, 'payable:${thief.merchantId}', '${asset}', -5000000 from ledger_group where subject = 'trf_forged'`,
    );
    await expectUnpaid(await plantSettlement(thief, { amount: 5_000_000n, number: 902 }), "funds_short");
  });

  test("a settlement whose amount was raised above its payments is not paid", async () => {
    const paymentId = await earn(thief, 100n);
    const { id } = await thief.settlementOf(paymentId);
    await asSuperuser(
      `update settlement set amount = 2000000 where id = '${id}'`,
      `update merchant_balance set amount = amount + 1000000 where merchant_id = '${thief.merchantId}'`,
    );
    await expectUnpaid(id, "funds_short");
    await asSuperuser(`update settlement set amount = 1000000 where id = '${id}'`);
    expect(await fixture.settle(id)).toEqual(["begun"]);
  });

  test("a log that has paid for one settlement pays for no second one", async () => {
    const paymentId = await earn(thief, 300n);
    expect(await thief.settle((await thief.settlementOf(paymentId)).id)).toEqual(["begun"]);
    const id = await plantSettlement(thief, { amount: 3_000_000n, number: 903 });
    await asSuperuser(`update payment set settlement_id = '${id}' where id = '${paymentId}'`);
    await expectUnpaid(id, "funds_short");
  });

  test("a log whose transaction is written in capital letters pays for no second settlement", async () => {
    const paymentId = await earn(thief, 300n);
    expect(await thief.settle((await thief.settlementOf(paymentId)).id)).toEqual(["begun"]);
    const id = await plantSettlement(thief, { amount: 3_000_000n, number: 905 });
    await asSuperuser(
      `update observation set tx_hash = '0x' || upper(substr(tx_hash, 3))
        where transfer_id in (select id from transfer where payment_id = '${paymentId}')`,
      `update payment set settlement_id = '${id}' where id = '${paymentId}'`,
    );
    await expectUnpaid(id, "deposit_not_found");
  });

  test("a payment that was moved to another merchant pays that merchant nothing", async () => {
    const paymentId = await earn(fixture, 400n);
    const id = await plantSettlement(thief, { amount: 4_000_000n, number: 904 });
    await asSuperuser(
      `update payment set merchant_id = '${thief.merchantId}', settlement_id = '${id}' where id = '${paymentId}'`,
    );
    await expectUnpaid(id, "deposit_mismatch");
  });

  test("a deposit that the chain does not show pays nothing", async () => {
    const paymentId = await earn(thief, 100n);
    const { id } = await thief.settlementOf(paymentId);
    await asSuperuser(
      `update observation set tx_hash = '0x${"ab".repeat(32)}'
        where transfer_id in (select id from transfer where payment_id = '${paymentId}')`,
    );
    await expectUnpaid(id, "deposit_not_found");
  });

  test("a row that no signer can read does not stop the payouts of the same batch", async () => {
    const paymentId = await earn(thief, 100n);
    const { id } = await thief.settlementOf(paymentId);
    const other = await makeMerchantFixture(chain, { databaseUrl, clock: fixture.clock, signer: signing.signer });
    const bad = await plantSettlement(other, { amount: 1n, number: -905 });
    expect(await fixture.settle(bad, id)).toEqual(["invalid_request", "begun"]);
  });

  test("a refund to an account that did not pay is not signed", async () => {
    const paymentId = await earn(thief, 700n);
    await asSuperuser(
      `insert into refund (id, payment_id, number, account_id, mode, merchant_id, asset, amount, receiver, state, created_at, updated_at, due_at)
        values ('rfnd_stolen', '${paymentId}', 1, '${thief.accountId}', '${thief.mode}', '${thief.merchantId}', '${asset}', 7000000, '${stranger.toLowerCase()}', 'due', now(), now(), now())`,
    );
    const before = await held();
    expect(await thief.refund("rfnd_stolen")).toEqual(["receiver_not_payer"]);
    expect(await held()).toBe(before);
    await asSuperuser("delete from refund where id = 'rfnd_stolen'");
  });

  test("a swapped destination receives nothing for 72 hours, also when the rows say that it is old", async () => {
    const honest = await makeMerchantFixture(chain, { databaseUrl, clock: fixture.clock, signer: signing.signer });
    const first = await earn(honest, 100n);
    expect(await honest.settle((await honest.settlementOf(first)).id)).toEqual(["begun"]);
    const second = await earn(honest, 200n);
    const { id } = await honest.settlementOf(second);
    await redirect(honest, stranger);
    await expectUnpaid(id, "destination_waiting");
    const receiver = stranger.toLowerCase();
    const warnings = signing.lines.filter((line) => line.includes("destination waits") && line.includes(receiver));
    expect(warnings).toHaveLength(1);

    signing.clock.advance(71 * 3_600_000);
    await expectUnpaid(id, "destination_waiting");
    await redirect(honest, honest.destination);
    expect(await honest.settle(id)).toEqual(["begun"]);
  });
});
