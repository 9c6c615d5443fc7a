import { sql } from "kysely";
import { describe, expect, test } from "vitest";
import { listBalances } from "../../../../db/queries/ledger-balances.ts";
import { creditMerchants, debitMerchant, type Entry, insertGroups } from "../../../../db/queries/ledger-groups.ts";
import { insertMerchant, someAsset } from "../../../support/insert-rows.ts";
import { openTestDb } from "../../../support/open-test-db.ts";
import { mapConcurrently } from "../../../support/sign-payments.ts";

const { db } = await openTestDb(24);
const asset = someAsset;
const at = new Date();
let subject = 0;
const book = (entries: Entry[], key = `s${++subject}`, when = at) =>
  db.transaction().execute((trx) => insertGroups(trx, [{ kind: "test", subject: key, entries }], when));
const entry = (account: string, amount: bigint, of = asset): Entry => ({ account, asset: of, amount });
const balanceOf = async (merchantId: string) =>
  db.selectFrom("merchant_balance").selectAll().where("merchant_id", "=", merchantId).executeTakeFirst();

describe("a booking", () => {
  test("a booking that sums to zero is stored", async () => {
    await book([entry("a", 5n), entry("b", -5n)], "kept");
    const rows = await db
      .selectFrom("ledger_group as g")
      .innerJoin("ledger_entry as e", "e.group_id", "g.id")
      .select(["e.account", "e.amount"])
      .where("g.subject", "=", "kept")
      .orderBy("e.id")
      .execute();
    expect(rows).toEqual([
      { account: "a", amount: 5n },
      { account: "b", amount: -5n },
    ]);
  });

  test.each<[string, Entry[]]>([
    ["is off by the smallest unit", [entry("a", 5n), entry("b", -4n)]],
    ["has one side", [entry("a", 5n)]],
    ["sums to zero only across two assets", [entry("a", 5n), entry("b", -5n, "other")]],
    ["is off by one beyond what a float can tell", [entry("a", 10n ** 40n + 1n), entry("b", -(10n ** 40n))]],
  ])("a booking that %s is refused and leaves nothing", async (_how, entries) => {
    const key = `bad${++subject}`;
    await expect(book(entries, key)).rejects.toThrow(/does not sum to zero/);
    expect(await db.selectFrom("ledger_group").select("id").where("subject", "=", key).execute()).toEqual([]);
  });

  test("a second booking of the same subject is refused, even in a race", async () => {
    const key = "once";
    const ends = await Promise.allSettled(
      Array.from({ length: 10 }, () => book([entry("a", 1n), entry("b", -1n)], key)),
    );
    expect(ends.filter((end) => end.status === "fulfilled")).toHaveLength(1);
    for (const end of ends) if (end.status === "rejected") expect(end.reason).toMatchObject({ code: "23505" });
  });

  test("a booking without an amount is refused", async () => {
    await expect(book([entry("a", 0n)])).rejects.toMatchObject({ code: "23514" });
  });
});

describe("the ledger", () => {
  test.each([
    "update ledger_entry set amount = amount * 2",
    "delete from ledger_entry",
    "truncate ledger_entry",
    "update ledger_group set at = now()",
    "delete from ledger_group",
    "truncate ledger_group cascade",
    "update ledger_day set amount = 0",
    "delete from ledger_day",
    "truncate ledger_day",
    "insert into ledger_day values ('a', 'b', '2026-01-01', 0, 1)",
  ])("the ledger is append-only and refuses: %s", async (statement) => {
    await book([entry("a", 5n), entry("b", -5n)]);
    await expect(sql.raw(statement).execute(db)).rejects.toThrow(/append only/);
  });
});

describe("a balance", () => {
  const own = "dated";
  const balance = async (account: string, day?: string) =>
    (await listBalances(db, { account, asset: own, day }))[0]?.amount ?? 0n;

  test("a balance includes every booking up to the end of a UTC day, however many are booked at once", async () => {
    const days = ["2026-03-01T00:00:00Z", "2026-03-01T23:59:59.999Z", "2026-03-02T00:00:00Z"].map(
      (one) => new Date(one),
    );
    const numbers = Array.from({ length: 60 }, (_, index) => index);
    await mapConcurrently(numbers, 24, (index) => {
      const [big, small] = [`big${index % 2}`, `small${index % 7}`];
      const sides = [entry(big, 3n, own), entry(small, -3n, own)];
      return book(index % 3 ? sides : sides.toReversed(), `dated${index}`, days[index % 3]);
    });
    expect(await balance("big0", "2026-02-28")).toBe(0n);
    expect(await balance("big0", "2026-03-01")).toBe(60n);
    expect(await balance("big0", "2026-03-02")).toBe(90n);
    expect((await balance("big0")) + (await balance("big1"))).toBe(180n);
    const all = await listBalances(db, { asset: own });
    const entries = await db.selectFrom("ledger_entry").selectAll().where("asset", "=", own).execute();
    for (const { account, amount } of all)
      expect(amount).toBe(entries.filter((one) => one.account === account).reduce((sum, one) => sum + one.amount, 0n));
    expect(all.map(({ account }) => account)).toHaveLength(9);
  });

  test("a booking that is rolled back leaves the balance as it was", async () => {
    const before = await balance("big0");
    await expect(book([entry("big0", 5n, own), entry("small0", -4n, own)])).rejects.toThrow();
    expect(await balance("big0")).toBe(before);
  });

  test("a balance that returns to zero is not listed", async () => {
    await book([entry("there", 5n, own), entry("back", -5n, own)]);
    await book([entry("there", -5n, own), entry("back", 5n, own)]);
    expect(await listBalances(db, { account: "there" })).toEqual([]);
  });
});

describe("a merchant's balance", () => {
  test("racing payouts never take a balance below zero", async () => {
    const { merchantId } = await insertMerchant(db);
    await creditMerchants(db, [{ merchantId, asset, amount: 105n, settlements: 1 }]);
    const debits = Array.from({ length: 50 }, () => ({ merchantId, asset, amount: 10n }));
    const taken = await mapConcurrently(debits, 24, (debit) => debitMerchant(db, debit));
    expect(taken.filter(Boolean)).toHaveLength(10);
    expect((await balanceOf(merchantId))?.amount).toBe(5n);
  });

  test("a balance pays out to the last unit, and only in its own asset", async () => {
    const { merchantId } = await insertMerchant(db);
    expect(await debitMerchant(db, { merchantId, asset, amount: 1n })).toBe(false);
    await creditMerchants(db, [{ merchantId, asset, amount: 7n, settlements: 1 }]);
    expect(await debitMerchant(db, { merchantId, asset: "other", amount: 7n })).toBe(false);
    expect(await debitMerchant(db, { merchantId, asset, amount: 7n })).toBe(true);
    expect((await balanceOf(merchantId))?.amount).toBe(0n);
  });

  test("racing credits get settlement numbers from 1 without a gap, and none is lost", async () => {
    const merchants = await Promise.all([insertMerchant(db), insertMerchant(db), insertMerchant(db)]);
    const ids = merchants.map(({ merchantId }) => merchantId);
    const rounds = Array.from({ length: 20 }, (_, round) => {
      // Each transaction credits the merchants in another order, some of them twice.
      const order = [...ids, ids[round % 3] as string];
      const turned = round % 2 ? order : order.toReversed();
      const credits = turned.map((merchantId) => ({ merchantId, asset, amount: 3n, settlements: 1 }));
      return db
        .transaction()
        .execute((trx) => creditMerchants(trx, credits))
        .then((numbers) => credits.map(({ merchantId }, index) => ({ merchantId, number: numbers[index] ?? 0 })));
    });
    const given = (await Promise.all(rounds)).flat();
    for (const merchantId of ids) {
      const numbers = given.filter((one) => one.merchantId === merchantId).map(({ number }) => number);
      expect(numbers.toSorted((a, b) => a - b)).toEqual(numbers.map((_number, index) => index + 1));
      expect(await balanceOf(merchantId)).toMatchObject({
        amount: 3n * BigInt(numbers.length),
        next_settlement: numbers.length + 1,
      });
    }
  });
});
