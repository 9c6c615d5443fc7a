import { sql } from "kysely";
import { describe, expect, test } from "vitest";
import { countFindings, findLastCheck } from "../../../../db/queries/ledger-checks.ts";
import type { Db } from "../../../../db/tables.ts";
import { checkLedger, checkLedgerIfDue, findContradictions } from "../../../../payments/accounting/check-ledger.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { fundBuyer, startChain } from "../../../support/evm-chain.ts";
import { makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";

const chain = await startChain();
const fixture = await makeMerchantFixture(chain);
const { deps, db, merchantId } = fixture;
const { asset } = chain;
const stranger = "0x00000000000000000000000000000000000000aa";
const everything = { since: undefined };

const refund = async (paymentId: string, cents: bigint) => {
  const amount = { unit: "iso4217/USD", value: cents };
  return unwrap(await refundPayment(deps, { actor: testActor, paymentId, mode: "live", amount })).refundId;
};

// A history with every kind of row: a payout that arrived, a refund that was sent, one that waits, and a payout that waits.
const paidOut = await fixture.pay(await fundBuyer(chain), 500n);
await fixture.settle((await fixture.settlementOf(paidOut)).id);
const refunded = await fixture.pay(await fundBuyer(chain), 300n);
await fixture.refund(await refund(refunded, 120n));
await fixture.relay();
await fixture.watch();
const waiting = await fixture.pay(await fundBuyer(chain), 200n);
const dueRefund = await refund(waiting, 50n);
const settlementId = (await fixture.settlementOf(waiting)).id;
const paidId = (await fixture.settlementOf(paidOut)).id;

/** Plants rows as the database's superuser, past every trigger and constraint. Returns what the check finds; undoes both. */
async function plant(...statements: string[]): Promise<Record<string, string[]>> {
  const trx = await db.startTransaction().execute();
  try {
    await sql`set local session_replication_role = replica`.execute(trx);
    for (const statement of statements) await sql.raw(statement).execute(trx);
    // The five-minute check, at its least: rows of now.
    const found = await findContradictions(trx, { since: new Date(Date.now() - 24 * 60 * 60_000) });
    return toKinds(found);
  } finally {
    await trx.rollback().execute();
  }
}

const toKinds = (found: Awaited<ReturnType<typeof findContradictions>>) =>
  Object.fromEntries(
    Map.groupBy(found, ({ kind }) => kind)
      .entries()
      .map(([kind, some]) => [kind, some.map(({ subject, found, expected }) => `${subject} ${found} ${expected}`)]),
  );

const newMerchant = `insert into merchant (id, account_id, mode, name, email, created_at)
  values ('mrch_thief', '${fixture.accountId}', 'live', 'Thief', 'thief@example.test', now())`;
const destination = `insert into settlement_destination (id, merchant_id, asset, destination, created_at, updated_at)
  values ('crypto_thief', 'mrch_thief', '${asset}', '${chain.id}:${stranger}', now(), now())`;
const balance = `insert into merchant_balance (merchant_id, asset, amount, next_settlement)
  values ('mrch_thief', '${asset}', 5000000, 2)`;
const settlement = `insert into settlement (id, merchant_id, mode, asset, number, amount, state, created_at, due_at)
  values ('stl_thief', 'mrch_thief', 'live', '${asset}', 1, 5000000, 'due', now(), now())`;
const booking = (kind: string, debit: string, credit: string, amount = 5_000_000) => `
  with booked as (
    insert into ledger_group (kind, subject, at) values ('${kind}', 'forged', now()) returning id
  ), entries as (
    insert into ledger_entry (group_id, account, asset, amount)
    select id, side.account, '${asset}', side.amount
    from booked, (values ('${debit}', ${amount}), ('${credit}', ${-amount})) side (account, amount) returning *
  )
  insert into ledger_day (account, asset, day, shard, amount)
  select account, asset, ledger_day_of(now()), 99, amount from entries`;

test("nothing contradicts itself after payments, payouts and refunds", async () => {
  expect(await checkLedger(db, everything)).toEqual([]);
  expect(await checkLedger(db, { since: new Date(0) })).toEqual([]);
});

describe("rows that someone writes into the database are found", () => {
  test("a destination, a balance and a settlement without a payment behind them", async () => {
    expect(await plant(newMerchant, destination, balance, settlement)).toEqual({
      balance_differs: ["mrch_thief 5000000 0"],
      settlement_without_payments: ["stl_thief 5000000 0"],
    });
  });

  test("the same with a forged booking, so that the balance agrees with the ledger", async () => {
    const forged = booking("payment", "treasury", "payable:mrch_thief");
    expect(await plant(newMerchant, destination, balance, settlement, forged)).toEqual({
      settlement_without_payments: ["stl_thief 5000000 0"],
    });
  });

  test("the same with a forged payment, which the ledger has not booked", async () => {
    const payment = `insert into payment (id, account_id, merchant_id, mode, unit, value, state, tx_id, paid_asset, paid_amount,
        settlement_id, created_at, updated_at, expires_at)
      values ('pay_thief', '${fixture.accountId}', 'mrch_thief', 'live', 'iso4217/USD', 500, 'succeeded', '0x1', '${asset}', 5000000,
        'stl_thief', now(), now(), now())`;
    expect(await plant(newMerchant, destination, balance, settlement, payment)).toEqual({
      balance_differs: ["mrch_thief 5000000 0"],
      settlement_differs: ["stl_thief 5000000 0"],
    });
  });

  test("a larger balance", async () => {
    const before = await balanceOf();
    expect(await plant(`update merchant_balance set amount = amount + 1 where merchant_id = '${merchantId}'`)).toEqual({
      balance_differs: [`${merchantId} ${before + 1n} ${before}`],
      settlements_differ: [`${merchantId} ${before} ${before + 1n}`],
    });
  });

  test("a merchant that the ledger owes less than nothing", async () => {
    expect(await plant(newMerchant, booking("correction", "payable:mrch_thief", "operator_capital"))).toEqual({
      balance_differs: ["mrch_thief 0 -5000000"],
      payable_negative: ["mrch_thief -5000000 0"],
    });
  });

  test("a settlement with a larger amount", async () => {
    const before = await balanceOf();
    expect(await plant(`update settlement set amount = amount + 7 where id = '${settlementId}'`)).toEqual({
      settlement_differs: [`${settlementId} 2000007 2000000`],
      settlements_differ: [`${merchantId} ${before + 7n} ${before}`],
    });
  });

  test("a settlement that is said to be paid, without a booking and a transfer", async () => {
    const before = await balanceOf();
    expect(
      await plant(`update settlement set state = 'paid', paid_at = now(), due_at = null where id = '${settlementId}'`),
    ).toEqual({
      settlement_unbooked: [`${settlementId} 2000000 0`],
      settlement_without_transfer: [`${settlementId} 2000000 0`],
      settlements_differ: [`${merchantId} ${before - 2_000_000n} ${before}`],
    });
  });

  const transferTo = (kind: "settlement" | "refund", id: string) => `
    insert into transfer (id, purpose, ${kind}_id, chain, asset, token, payer, receiver, amount, authorization_nonce,
      valid_before, state, created_at)
    values ('trf_thief', '${kind}', '${id}', '${chain.id}', '${asset}', '${chain.contracts.token.toLowerCase()}',
      '${chain.keys.treasury.address.toLowerCase()}', '${stranger}', 2000000, '0x01', 1, 'ready', now())`;

  test.each([
    ["settlement", settlementId],
    ["refund", dueRefund],
  ] as const)("a transfer for a %s that has not begun", async (kind, id) => {
    expect(await plant(transferTo(kind, id))).toEqual({ transfer_without_purpose: ["trf_thief 2000000 0"] });
  });

  test("a payout's transfer with another amount or another receiver", async () => {
    const [row] = await db.selectFrom("transfer").selectAll().where("settlement_id", "=", paidId).execute();
    const change = (set: string) => plant(`update transfer set ${set} where id = '${row?.id}'`);
    expect(await change("amount = amount + 1")).toEqual({ transfer_differs: [`${row?.id} 5000001 5000000`] });
    expect(await change(`receiver = '${stranger}', state = 'ready'`)).toEqual({
      transfer_receiver_differs: [expect.stringContaining(`${row?.id} ${stranger} 0x`)],
    });
  });

  test("a refund to a stranger, and one of more than was paid", async () => {
    const { receiver } = await findRefund(dueRefund);
    const change = (set: string) => plant(`update refund set ${set} where id = '${dueRefund}'`);
    expect(await change(`receiver = '${stranger}'`)).toEqual({
      refund_receiver_differs: [`${dueRefund} ${stranger} ${receiver}`],
    });
    expect(await change("amount = 2000001")).toEqual({ refunds_exceed_payment: [`${waiting} 2000001 2000000`] });
  });

  test("a refund that has begun without a booking and a transfer", async () => {
    expect(await plant(`update refund set state = 'paying', due_at = null where id = '${dueRefund}'`)).toEqual({
      refund_unbooked: [`${dueRefund} 500000 0`],
      refund_without_transfer: [`${dueRefund} 500000 0`],
    });
  });

  test("a refund of money that no operator has returned", async () => {
    const [group] = await db.selectFrom("ledger_group").select("id").limit(1).execute();
    const row = `insert into refund (id, number, exception_id, asset, amount, receiver, state, created_at, updated_at, due_at)
      values ('rfnd_thief', 1, ${group?.id}, '${asset}', 1000000, '${stranger}', 'due', now(), now(), now())`;
    expect(await plant(row)).toEqual({ refund_unbooked: ["rfnd_thief 1000000 0"] });
  });

  test("a ledger group that does not sum to zero, and a daily sum without entries", async () => {
    const half = `insert into ledger_group (kind, subject, at) values ('correction', 'half', now())`;
    const entry = `insert into ledger_entry (group_id, account, asset, amount)
      select id, 'losses', '${asset}', 3 from ledger_group where subject = 'half'`;
    const day = new Date().toISOString().slice(0, 10);
    expect(await plant(half, entry)).toEqual({
      group_unbalanced: ["correction half 3 0"],
      day_differs: [`losses ${day} 0 3`],
    });
    const sum = `insert into ledger_day (account, asset, day, shard, amount) values ('fees', '${asset}', '${day}', 3, 4)`;
    expect(await plant(sum)).toEqual({ day_differs: [`fees ${day} 4 0`] });
  });
});

test("money that an operator assigns does not hide a planted settlement of the same merchant", async () => {
  const assigned = [
    `update merchant_balance set amount = amount + 5000000 where merchant_id = '${merchantId}'`,
    settlement.replaceAll("mrch_thief", merchantId).replace(", 1, 5000000", ", 90, 5000000"),
    booking("exception_resolved", "exceptions", `payable:${merchantId}`),
  ];
  expect(await plant(...assigned)).toEqual({});
  const planted = assigned.map((statement) =>
    statement.replaceAll("forged", "second").replace("stl_thief', '", "stl_two', '"),
  );
  expect(await plant(...assigned, ...planted.slice(0, 2).map((text) => text.replace(", 90,", ", 91,")))).toMatchObject({
    settlement_without_payments: ["stl_thief 5000000 0", "stl_two 5000000 0"],
  });
});

test("the check runs once in five minutes, logs and counts what it finds, and forgets what is repaired", async () => {
  const counted = async () => toCounts(await countFindings(db));
  const run = () => Promise.all([1, 2, 3].map(() => checkLedgerIfDue(deps)));
  const logged = () => fixture.lines.filter((line) => line.includes("rows of the ledger contradict each other")).length;
  const change = async (by: bigint) =>
    sql`update merchant_balance set amount = amount + ${by}::numeric where merchant_id = ${merchantId}`.execute(db);
  fixture.clock.advance(300_000);
  await run();
  expect(await counted()).toEqual({});
  await change(1n);
  await run();
  expect(await counted()).toEqual({});
  fixture.clock.advance(300_000);
  await run();
  expect(await counted()).toEqual({ balance_differs: 1, settlements_differ: 1 });
  expect(logged()).toBe(2);
  await change(-1n);
  fixture.clock.advance(300_000);
  await run();
  expect(await counted()).toEqual({});
});

test("a part of the check that fails hides no finding of the others, and the check counts as not made", async () => {
  const own = await makeMerchantFixture(chain);
  await own.pay(await fundBuyer(chain), 100n);
  const counted = async () => toCounts(await countFindings(own.db));
  const checkedAt = await findLastCheck(own.db);
  await sql`update merchant_balance set amount = amount + 1`.execute(own.db);
  await sql`alter table settlement_deduction rename to moved_away`.execute(own.db);
  own.clock.advance(300_000);
  await expect(checkLedgerIfDue(own.deps)).rejects.toThrow("settlement_deduction");
  expect(await counted()).toEqual({ balance_differs: 1, settlements_differ: 1 });
  expect(await findLastCheck(own.db)).toEqual(checkedAt);
  // The next check keeps the findings and stores none twice.
  own.clock.advance(300_000);
  await expect(checkLedgerIfDue(own.deps)).rejects.toThrow("settlement_deduction");
  expect(await counted()).toEqual({ balance_differs: 1, settlements_differ: 1 });
  await sql`alter table moved_away rename to settlement_deduction`.execute(own.db);
  await sql`update merchant_balance set amount = amount - 1`.execute(own.db);
  own.clock.advance(300_000);
  await checkLedgerIfDue(own.deps);
  expect(await counted()).toEqual({});
});

const toCounts = (counts: { kind: string; count: number }[]) =>
  Object.fromEntries(counts.map(({ kind, count }) => [kind, count]));

async function balanceOf(of: Db = db): Promise<bigint> {
  const row = await of.selectFrom("merchant_balance").select("amount").where("merchant_id", "=", merchantId).execute();
  return row[0]?.amount ?? 0n;
}

const findRefund = (id: string) => db.selectFrom("refund").selectAll().where("id", "=", id).executeTakeFirstOrThrow();
