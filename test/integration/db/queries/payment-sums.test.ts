import { sql } from "kysely";
import { expect, test } from "vitest";
import { roles } from "../../../../db/grants/roles.ts";
import { moveRows } from "../../../../db/moves.ts";
import { openDb } from "../../../../db/open.ts";
import { addToSums, insertSummedAccount, lockSums, type SummedAccount } from "../../../../db/queries/ended-payments.ts";
import type { PaymentFilter } from "../../../../db/queries/payment-filters.ts";
import { listPaymentRows, type PaymentOrder } from "../../../../db/queries/payment-lists.ts";
import { type PaymentTotals, sumPayments } from "../../../../db/queries/payment-sums.ts";
import type { Db } from "../../../../db/tables.ts";
import { sumEndedPayments } from "../../../../payments/maintenance/sum-payments.ts";
import { canonicalUnit } from "../../../../payments/money.ts";
import { createLog } from "../../../../runtime/log.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { createDatabase } from "../../../support/test-database.ts";

const db = openDb(await createDatabase(), { max: 10 });
addCleanup(() => db.destroy());

const logged: unknown[] = [];
const log = createLog({ level: "error", role: "test" }, { write: (line) => void logged.push(JSON.parse(line)) });
const deps = { db, log, now: () => new Date() };

const assets = ["eip155:1/erc20:0xaa", "eip155:1/erc20:0xbb", "solana:5ey/token:cc"] as const;
/** The payments of the 100 days before it are of two years. */
const newest = Date.parse("2026-02-15T15:00:00Z");
const DAY_MS = 86_400_000;
const live = "live" as const;
/** The payments of all tests, which are numbered. */
const made = { payments: 0 };

/** A repeatable series of numbers below a bound. */
function makeRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
}

async function addAccount(name: string): Promise<{ accountId: string; merchants: string[] }> {
  const accountId = `acct_${name}`;
  const merchants = [1, 2, 3].map((n) => `mrch_${name}${n}`);
  const created_at = new Date(0);
  await db.insertInto("account").values({ id: accountId, name, created_at }).execute();
  const named = { account_id: accountId, mode: live, name, email: "a@example.test", created_at, ...none };
  await db
    .insertInto("merchant")
    .values(merchants.map((id) => ({ id, ...named })))
    .execute();
  return { accountId, merchants };
}
/** Returns the accounts with payments that have ended and are not in the sums. */
const countUnsummed = () =>
  db
    .selectFrom("ended_payment")
    .select(["account_id", (e) => e.fn.countAll<number>().as("count")])
    .groupBy("account_id")
    .orderBy("account_id")
    .execute();

const none = { icon_url: null, logo_id: null, deleted_at: null };

const toDay = (at: number) => new Date(at).toISOString().slice(0, 10);

/** Returns the day before which the sets of an account's merchants are complete. */
async function readSettled({ account_id, mode }: SummedAccount): Promise<string | undefined> {
  const { rows } = await sql<{ day: string }>`
    select sets_before::text as day from summed_owner
    where account_id = ${account_id} and mode = ${mode} and merchant_id = ''`.execute(db);
  return rows[0]?.day;
}

/** Lets the next customer of an account get this number. */
const addCustomers = (account_id: string, customers: number) =>
  db.insertInto("summed_owner").values({ account_id, mode: live, merchant_id: "", customers }).execute();

/** Creates payments of the 100 days before `newest`, each with an option, in this many of three merchants. */
async function addPayments(
  { accountId }: { accountId: string },
  count: number,
  value = "1 + n % 97",
): Promise<string[]> {
  const first = made.payments + 1;
  made.payments += count;
  await sql`
    insert into payment (id, account_id, merchant_id, mode, reference_id, unit, value, state, created_at, updated_at, expires_at)
    select 'pay_' || n, ${accountId}, replace(${accountId}, 'acct', 'mrch') || 1 + n % 3, 'live', 'order ' || n,
      case when n % 4 = 0 then 'iso4217/EUR' else 'iso4217/USD' end, ${sql.raw(value)}, 'requires_action',
      ${new Date(newest)}::timestamptz - (n * 7919 % 8640000) * interval '1 second', now(), now() + interval '1 day'
    from generate_series(${first}::bigint, ${first + count - 1}::bigint) n`.execute(db);
  await sql`
    insert into payment_option (id, payment_id, account, chain, asset, token, payer, receiver, amount, authorization_nonce,
      valid_before, kind, created_at)
    select 'opt_' || n, 'pay_' || n, 'a', split_part(asset, '/', 1), asset, 't', 'payer ' || n * 31 % 150, 'r', 5, n::text, 1, 'eip3009', now()
    from (select n, (${[...assets]}::text[])[1 + n % 3] as asset from generate_series(${first}::bigint, ${first + count - 1}::bigint) n) o`.execute(
    db,
  );
  return Array.from({ length: count }, (_, n) => `pay_${first + n}`);
}

/** Moves a payment as buyers, the clock and merchants do: 6 of 10 succeed, one remains open. */
async function end(id: string, draw: number): Promise<void> {
  const at = new Date();
  const ids = [id];
  const optionId = id.replace("pay", "opt");
  const asset = assets[Number(id.slice(4)) % 3] as string;
  const move = { ids, at };
  await db.transaction().execute(async (db) => {
    if (draw === 0) return;
    if (draw === 1) await moveRows(db, "payment", { ...move, from: "requires_action", to: "expired" });
    else if (draw === 2) await moveRows(db, "payment", { ...move, from: "requires_action", to: "cancelled" });
    else {
      await moveRows(db, "payment", {
        ...move,
        from: "requires_action",
        to: "processing",
        set: { option_id: optionId, asset },
      });
      if (draw === 3) await moveRows(db, "payment", { ...move, from: "processing", to: "failed" });
      const paid = { tx_id: "0x", paid_asset: asset, paid_amount: 5n };
      if (draw > 3) await moveRows(db, "payment", { ...move, from: "processing", to: "succeeded", set: paid });
    }
  });
}

/** The totals by the plainest statements. */
async function sumPlainly(db: Db, filter: PaymentFilter): Promise<PaymentTotals> {
  const merchants = [filter.onlyMerchants, filter.merchantIds].filter((ids) => ids);
  const selected = sql`
    from payment p left join payment_option o on o.id = p.option_id
    where p.account_id = ${filter.accountId} and p.mode = 'live'
      and ${sql.join([sql`true`, ...merchants.map((ids) => sql`p.merchant_id = any(${ids})`)], sql` and `)}
      and p.created_at >= coalesce(${filter.from}::timestamptz, '-infinity')
      and p.created_at < coalesce(${filter.before}::timestamptz, 'infinity')
      and (${filter.states}::text[] is null or p.state = any(${filter.states}))
      and (${filter.chains}::text[] is null or o.chain = any(${filter.chains}))
      and (${filter.assets}::text[] is null or o.asset = any(${filter.assets}))
      and (${filter.reference}::text is null or p.reference_id ilike '%' || ${filter.reference} || '%')`;
  const { rows } = await sql<{ unit: string; value: bigint }>`
    select p.unit, sum(p.value) as value ${selected} and p.state = 'succeeded' group by 1 order by 1`.execute(db);
  const counts = await sql<{ transactions: number; customers: number }>`
    select count(*) as transactions, count(distinct o.payer) filter (where p.state = 'succeeded') as customers ${selected}`.execute(
    db,
  );
  return { revenue: rows, ...(counts.rows[0] as { transactions: number; customers: number }) };
}

/** Draws a filter: each member is set in one of three. */
function drawFilter(random: (below: number) => number, own: { accountId: string; merchants: string[] }): PaymentFilter {
  const pick = <T>(from: readonly T[]): T[] => [...from, ...from].filter(() => random(3) === 0);
  const maybe = <T>(value: T) => (random(3) === 0 ? value : undefined);
  const from = newest - random(110 * 86_400) * 1_000;
  const length = random(2) ? random(110 * 86_400) * 1_000 : random(100) * DAY_MS;
  return {
    accountId: own.accountId,
    mode: live,
    onlyMerchants: maybe(pick([...own.merchants, "mrch_stranger"])) ?? null,
    merchantIds: maybe(pick([...own.merchants, "mrch_other1"])),
    from: maybe(random(2) ? new Date(from) : new Date(from - (from % DAY_MS))),
    before: maybe(new Date(from + length)),
    states: maybe(pick(["requires_action", "processing", "succeeded", "failed", "expired", "cancelled"] as const)),
    chains: maybe(pick(["eip155:1", "solana:5ey"])),
    assets: maybe(pick(assets)),
    reference: random(12) === 0 ? "ORDER 1" : undefined,
  };
}

const inSnapshot = <T>(work: (db: Db) => Promise<T>) =>
  db.transaction().setIsolationLevel("repeatable read").execute(work);

/** Expects that both ways return the same totals of some filters, in one snapshot. */
async function expectSameTotals(
  random: (below: number) => number,
  own: Awaited<ReturnType<typeof addAccount>>,
  count: number,
) {
  for (let n = 0; n < count; n += 1) {
    const filter = n === 0 ? { accountId: own.accountId, mode: live } : drawFilter(random, own);
    await inSnapshot(async (db) =>
      expect(await sumPayments(db, filter), JSON.stringify(filter)).toEqual(await sumPlainly(db, filter)),
    );
  }
}

test("totals are exact for every filter while payments end and several workers add them to the sums", async () => {
  const own = await addAccount("one");
  const other = await addAccount("other");
  // The numbers of customers cross the end of a chunk.
  await addCustomers(own.accountId, 32_700);
  const random = makeRandom(1);
  const ids = [...(await addPayments(own, 900)), ...(await addPayments(other, 60))];
  let isEnding = true;
  const ending = async (from: number) => {
    for (let n = from; n < ids.length; n += 3) await end(ids[n] as string, random(10));
  };
  const summing = async () => {
    while (isEnding) await sumEndedPayments(deps, { atLeast: 3, batch: 50 });
  };
  const reading = async () => {
    while (isEnding) await expectSameTotals(random, own, 4);
  };
  const endings = Promise.all([ending(0), ending(1), ending(2)]).finally(() => {
    isEnding = false;
  });
  await Promise.all([endings, summing(), summing(), reading()]);
  while ((await sumEndedPayments(deps, { atLeast: 1, batch: 50 })) === "more");
  expect(await db.selectFrom("ended_payment").selectAll().execute()).toEqual([]);
  await expectSameTotals(random, own, 100);
  await expectSameTotals(random, other, 10);
});

test("a page lists the same payments as a plain statement, for every filter and order", async () => {
  const own = { accountId: "acct_one", merchants: ["mrch_one1", "mrch_one2", "mrch_one3"] };
  const random = makeRandom(2);
  for (let n = 0; n < 30; n += 1) {
    const drawn = drawFilter(random, own);
    // Half of them search for a digit of a reference.
    const filter = n % 2 ? { ...drawn, reference: String(n % 10) } : drawn;
    const { rows: all } = await sql<{
      id: string;
      created_at: Date;
      value: bigint;
      merchant_id: string;
      state: string;
      asset: string;
      reference_id: string;
    }>`
      select p.id, p.reference_id, p.created_at, p.value, p.merchant_id, p.state, o.asset from payment p left join payment_option o on o.id = p.option_id
      where p.account_id = ${own.accountId}`.execute(db);
    const chainOf = (asset: string | null) => asset?.split("/")[0] ?? "";
    const selected = all.filter(
      (row) =>
        [filter.onlyMerchants, filter.merchantIds].every((ids) => !ids || ids.includes(row.merchant_id)) &&
        (!filter.from || row.created_at >= filter.from) &&
        (!filter.before || row.created_at < filter.before) &&
        (!filter.states || filter.states.some((state) => state === row.state)) &&
        (!filter.chains || filter.chains.includes(chainOf(row.asset))) &&
        (!filter.assets || filter.assets.includes(row.asset)) &&
        row.reference_id.includes(filter.reference?.toLowerCase() ?? ""),
    );
    for (const by of ["date", "amount"] as const)
      for (const dir of ["asc", "desc"] as const)
        for (const matching of [1, 50_000, 500_000]) {
          const keyOf = (row: (typeof all)[number]) => (by === "date" ? row.created_at.getTime() : Number(row.value));
          const sorted = selected.toSorted((a, b) => keyOf(a) - keyOf(b) || (a.id < b.id ? -1 : 1));
          const expected = (dir === "asc" ? sorted : sorted.toReversed()).map(({ id }) => id);
          const start = random(expected.length + 1);
          const last = selected.find(({ id }) => id === expected[start - 1]);
          const after =
            last && ([by === "date" ? last.created_at.toISOString() : String(last.value), last.id] as const);
          const order: PaymentOrder = { by, dir, after };
          const rows = await listPaymentRows(db, filter, { order, limit: 11, matching });
          expect(rows.map(({ id }) => id)).toEqual(expected.slice(start, start + 11));
        }
  }
});

test("a page of a reference is full although payments of the same time are in the sums and beside them", async () => {
  const own = await addAccount("twins");
  const [summed = "", ended = "", ...older] = await addPayments(own, 4);
  await sql`update payment set created_at = ${new Date(newest)} where id in (${summed}, ${ended})`.execute(db);
  await end(summed, 2);
  expect(await sumEndedPayments(deps, { atLeast: 1 })).toBe("done");
  for (const id of [ended, ...older]) await end(id, 2);
  const filter = { accountId: own.accountId, mode: live, reference: "order" };
  for (const limit of [1, 2, 3, 4]) {
    const order = { by: "date", dir: "desc" } as const;
    const rows = await listPaymentRows(db, filter, { order, limit, matching: 4 });
    expect(rows.map(({ id }) => id)).toEqual([ended, summed, ...older].slice(0, limit));
  }
  await db.deleteFrom("ended_payment").execute();
});

test("the spellings of one unit are one kind, and those of a case-sensitive one are not", async () => {
  const own = await addAccount("spelt");
  const ids = await addPayments(own, 6);
  const units = ["caip19/eip155:1/erc20:0xab", "caip19/EIP155:1/erc20:0xAB", "caip19/eip155:1/ERC20:0xaB"];
  const spelt = [...units, "caip19/solana:5ey/token:ab", "caip19/solana:5ey/token:aB", "iso4217/USD"];
  for (const [n, id] of ids.entries()) {
    await db.updateTable("payment").set({ unit: spelt[n] }).where("id", "=", id).execute();
    await end(id, 9);
  }
  expect(await sumEndedPayments(deps, { atLeast: 1 })).toBe("done");
  const { revenue } = await sumPayments(db, { accountId: own.accountId, mode: live });
  expect(revenue.map(({ unit }) => unit)).toEqual([...new Set(spelt.map(canonicalUnit))].toSorted());
});

test("totals of thousands of kinds take no time that grows with their square", async () => {
  const own = await addAccount("kinds");
  const filter = { accountId: own.accountId, mode: live, onlyMerchants: own.merchants };
  const ids = await addPayments(own, 6_000);
  await sql`update payment set state = 'cancelled', unit = 'iso4217/' || id where id = any(${ids})`.execute(db);
  while ((await sumEndedPayments(deps, { atLeast: 1 })) === "more");
  for (const before of [undefined, new Date(newest)]) {
    const startedAt = performance.now();
    expect((await sumPayments(db, { ...filter, before })).transactions).toBe(ids.length);
    expect(performance.now() - startedAt).toBeLessThan(2_000);
  }
});

test("a worker that is killed before its commit changes no sum", async () => {
  const own = await addAccount("killed");
  for (const id of await addPayments(own, 30)) await end(id, 9);
  const account = { account_id: own.accountId, mode: live };
  await insertSummedAccount(db, account);
  const killed = db.transaction().execute(async (trx) => {
    expect(await lockSums(trx, account)).toBe(true);
    expect(await addToSums(trx, account, 20)).toMatchObject({ count: 20 });
    // Meanwhile another worker finds the account locked and does not wait.
    expect(await sumEndedPayments(deps, { atLeast: 1 })).toBe("done");
    const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(trx);
    await sql`select pg_terminate_backend(${rows[0]?.pid})`.execute(db);
    await sql`select 1`.execute(trx);
  });
  await expect(killed).rejects.toThrow();
  await expectSameTotals(makeRandom(3), own, 20);
  expect(await sumEndedPayments(deps, { atLeast: 1 })).toBe("done");
  await expectSameTotals(makeRandom(3), own, 20);
});

test("amounts of 78 digits, of which a column of amounts holds one, are added up", async () => {
  const big = await addAccount("big");
  const ids = await addPayments(big, 24, "repeat('9', 78)::numeric");
  for (const [n, id] of ids.entries()) await end(id, n < 12 ? 9 : 2);
  expect(await sumEndedPayments(deps, { atLeast: 1, batch: 10 })).toBe("more");
  expect(await sumEndedPayments(deps, { atLeast: 1 })).toBe("done");
  expect(await countUnsummed()).toEqual([]);
  const { revenue } = await sumPayments(db, { accountId: big.accountId, mode: live });
  expect(revenue.reduce((sum, { value }) => sum + value, 0n)).toBe(12n * (10n ** 78n - 1n));
  await expectSameTotals(makeRandom(4), big, 10);
});

test("an account whose payments cannot be summed is logged, stops no other account, and its totals stay exact", async () => {
  const [bad, good] = [await addAccount("bad"), await addAccount("good")];
  const { accountId } = bad;
  // The number of the next customer does not fit into its column.
  await addCustomers(accountId, 2 ** 31 - 1);
  for (const id of [...(await addPayments(bad, 3)), ...(await addPayments(good, 3))]) await end(id, 9);
  logged.length = 0;
  expect(await sumEndedPayments(deps, { atLeast: 1, batch: 2 })).toBe("more");
  expect(await countUnsummed()).toEqual([
    { account_id: accountId, count: 3 },
    { account_id: good.accountId, count: 1 },
  ]);
  await expect(sumEndedPayments(deps, { atLeast: 1, batch: 2 })).rejects.toThrow("integer out of range");
  expect(await countUnsummed()).toEqual([{ account_id: accountId, count: 3 }]);
  expect(logged).toEqual(Array(2).fill(expect.objectContaining({ level: "error", account: accountId, mode: live })));
  await expectSameTotals(makeRandom(4), bad, 10);
  await db.deleteFrom("ended_payment").where("account_id", "=", accountId).execute();
});

test("no login can count a payment twice: a payment that has ended keeps its state, and the database alone notes its end", async () => {
  const own = await addAccount("forged");
  const [id = "", other = ""] = await addPayments(own, 2);
  await end(id, 2);
  const move = (state: string) =>
    db
      .updateTable("payment")
      .set({ state: state as "failed" })
      .where("id", "=", id)
      .execute();
  for (const state of ["requires_action", "failed"])
    await expect(move(state)).rejects.toThrow(`payment cannot move from cancelled to ${state}`);
  // A statement that inserts no event is not a move, but ends a payment as well.
  await sql`update payment set state = 'expired' where id = ${other}`.execute(db);
  expect(await countUnsummed()).toEqual([{ account_id: own.accountId, count: 2 }]);
  const { rows } = await sql`
    select role from unnest(${Object.values(roles)}::text[]) role where has_table_privilege(role, 'ended_payment', 'insert, update')`.execute(
    db,
  );
  expect(rows).toEqual([]);
  expect(await sumEndedPayments(deps, { atLeast: 1 })).toBe("done");
  await expectSameTotals(makeRandom(5), own, 5);
});

test("sets of merchants that cannot be written stop no sum, and are complete later", async () => {
  const own = await addAccount("unset");
  const account = { account_id: own.accountId, mode: live };
  for (const id of await addPayments(own, 40)) await end(id, 9);
  await sql`alter table customer_set add constraint refused check (span <> 'year') not valid`.execute(db);
  await expect(sumEndedPayments(deps, { atLeast: 1 })).rejects.toThrow("refused");
  expect(await countUnsummed()).toEqual([]);
  expect(await readSettled(account)).toBe("-infinity");
  await expectSameTotals(makeRandom(6), own, 20);
  await sql`alter table customer_set drop constraint refused`.execute(db);
  for (const id of await addPayments(own, 40)) await end(id, 9);
  expect(await sumEndedPayments(deps, { atLeast: 1, batch: 40 }), "a whole batch, so there may be more").toBe("more");
  expect(await readSettled(account)).not.toBe("-infinity");
  await expectSameTotals(makeRandom(6), own, 20);
});

test("a payment whose time is ahead of ours settles no day that gets further payments", async () => {
  const own = await addAccount("ahead");
  const [id = ""] = await addPayments(own, 1);
  const now = new Date(newest);
  await db
    .updateTable("payment")
    .set({ created_at: new Date(newest + 400 * DAY_MS) })
    .where("id", "=", id)
    .execute();
  await end(id, 9);
  expect(await sumEndedPayments({ ...deps, now: () => now }, { atLeast: 1 })).toBe("done");
  expect(await readSettled({ account_id: own.accountId, mode: live })).toBe(toDay(newest - DAY_MS));
});

test("times of years that Postgres writes differently than JavaScript select all payments or none", async () => {
  const all = await sumPayments(db, { accountId: "acct_one", mode: live });
  const [first, last] = [new Date("0000-01-01T00:00:00+14:00"), new Date("9999-12-31T23:59:59-05:00")];
  const order: PaymentOrder = { by: "date", dir: "desc", after: undefined };
  for (const [from, before, transactions] of [
    [first, last, all.transactions],
    [last, undefined, 0],
    [undefined, first, 0],
  ] as const)
    for (const reference of [undefined, "order"]) {
      const filter = { accountId: "acct_one", mode: live, from, before, reference };
      expect(await sumPayments(db, filter)).toEqual(transactions > 0 ? all : expect.objectContaining({ transactions }));
      const rows = await listPaymentRows(db, filter, { order, limit: 1, matching: all.transactions });
      expect(rows).toHaveLength(Math.min(transactions, 1));
    }
});

test("a merchant of another account adds nothing, and a merchant named twice counts once", async () => {
  const totals = (merchantIds: string[]) => sumPayments(db, { accountId: "acct_one", mode: live, merchantIds });
  expect((await totals(["mrch_other1"])).transactions).toBe(0);
  expect(await totals(["mrch_one1", "mrch_one1"])).toEqual(await totals(["mrch_one1"]));
});

test("a reference is searched as it is written, also with characters that patterns give a meaning", async () => {
  const own = await addAccount("patterns");
  const references = ["A_b%c\\D", "axbyczd", "50 % off", "_", "\\"];
  const ids = await addPayments(own, references.length);
  for (const [n, id] of ids.entries()) {
    await db.updateTable("payment").set({ reference_id: references[n] }).where("id", "=", id).execute();
    await end(id, 2);
  }
  const count = async (reference: string) =>
    (await sumPayments(db, { accountId: own.accountId, mode: live, reference })).transactions;
  const searches = ["a_B%C\\d", "_", "%", "\\", "b%", "\\_", "d"];
  const expected = [1, 2, 2, 2, 1, 0, 2];
  expect(await Promise.all(searches.map(count))).toEqual(expected);
  expect(await sumEndedPayments(deps, { atLeast: 1 })).toBe("done");
  expect(await Promise.all(searches.map(count)), "as part of the sums").toEqual(expected);
});

test("payments of one amount or one time are listed once each, page by page, although a page has fewer than them", async () => {
  const own = await addAccount("ties");
  const ids = await addPayments(own, 40, "5");
  const tied = ids.slice(0, 12);
  await sql`update payment set created_at = ${new Date(newest)} where id = any(${tied})`.execute(db);
  for (const id of ids) await end(id, 2);
  expect(await sumEndedPayments(deps, { atLeast: 1 })).toBe("done");
  const filter = { accountId: own.accountId, mode: live, reference: "order" };
  for (const by of ["date", "amount"] as const)
    for (const dir of ["asc", "desc"] as const)
      for (const limit of [1, 7]) {
        const listed: string[] = [];
        let after: PaymentOrder["after"];
        for (;;) {
          const rows = await listPaymentRows(db, filter, { order: { by, dir, after }, limit, matching: ids.length });
          const last = rows.at(-1);
          if (!last) break;
          listed.push(...rows.map(({ id }) => id));
          after = [by === "date" ? last.created_at.toISOString() : String(last.value), last.id];
        }
        expect(listed.toSorted(), `by ${by}, ${dir}, ${limit}`).toEqual(ids.toSorted());
      }
});

test("a search for a long reference among long ones takes about as long as one for a short reference", async () => {
  const own = await addAccount("long");
  const ids = await addPayments(own, 4_000);
  await sql`update payment set state = 'cancelled', reference_id = repeat('a', 254) || 'c' where id = any(${ids})`.execute(
    db,
  );
  // Its trigrams are in every row of the index.
  await sql`update payment set reference_id = 'aab aba baa' where id = any(${ids.filter((_, n) => n % 25 === 0)})`.execute(
    db,
  );
  while ((await sumEndedPayments(deps, { atLeast: 1 })) === "more");
  const measure = async (reference: string) => {
    const startedAt = performance.now();
    await sumPayments(db, { accountId: own.accountId, mode: live, reference });
    return performance.now() - startedAt;
  };
  // Ten rounds, as another process may take the processor meanwhile. With patterns of all characters the long one takes ten times as long.
  let [short, long] = [Infinity, Infinity];
  for (let round = 0; round < 10; round++) {
    short = Math.min(short, await measure("aaa"));
    long = Math.min(long, await measure(`${"a".repeat(254)}b`));
  }
  expect(long).toBeLessThan(4 * short);
});

test("the references of a merchant and day are kept in rows of at most 100", async () => {
  const own = await addAccount("rows");
  const ids = await addPayments(own, 330);
  await sql`update payment set created_at = ${new Date(newest)}, state = 'cancelled' where id = any(${ids})`.execute(
    db,
  );
  while ((await sumEndedPayments(deps, { atLeast: 1 })) === "more");
  const { rows } = await sql<{ payments: number }>`
    select cardinality(s.kinds) as payments from summed_payment s join summed_owner o on o.id = s.owner
    where o.account_id = ${own.accountId}`.execute(db);
  expect(rows.map(({ payments }) => payments).toSorted((a, b) => a - b)).toEqual([10, 10, 10, 100, 100, 100]);
});

test("payments that have ended take no time that grows with their square, also before Postgres has counted them", async () => {
  const own = await addAccount("unsummed");
  await sql`analyze`.execute(db);
  const ids = await addPayments(own, 6_000);
  await sql`update payment set state = 'cancelled' where id = any(${ids})`.execute(db);
  const startedAt = performance.now();
  const filter = { accountId: own.accountId, mode: live, onlyMerchants: own.merchants };
  expect((await sumPayments(db, filter)).transactions).toBe(ids.length);
  expect(performance.now() - startedAt).toBeLessThan(2_000);
  await db.deleteFrom("ended_payment").execute();
});
