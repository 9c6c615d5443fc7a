import { sql } from "kysely";
import { getAddress } from "viem";
import { expect, test } from "vitest";
import { openDb } from "../../../../db/open.ts";
import { selectMerchantBalances, selectStatementRows } from "../../../../db/queries/statement-lines.ts";
import { openStatement, readBalances, readStatementPage } from "../../../../payments/accounting/read-statements.ts";
import { toCsvLine } from "../../../../payments/accounting/statement-csv.ts";
import { readStatementLines } from "../../../../payments/accounting/statement-lines.ts";
import { readDebt } from "../../../../payments/maintenance/operator-actions.ts";
import { setFee } from "../../../../payments/merchants/fee-policies.ts";
import { createMerchant } from "../../../../payments/merchants/merchants.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { adminIn } from "../../../support/admin.ts";
import { collect } from "../../../support/collect.ts";
import { fundBuyer, mine, startChain } from "../../../support/evm-chain.ts";
import { makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";
import { makeClock } from "../../../support/test-deps.ts";

const chain = await startChain();
const DAY_MS = 86_400_000;
// The clocks of the service and of the chain begin at noon, so that no test runs into the next day.
const noonTomorrow = Math.ceil(Date.now() / DAY_MS) * DAY_MS + DAY_MS / 2;
const clock = makeClock();
clock.advance(noonTomorrow - Date.now());
await chain.client.setNextBlockTimestamp({ timestamp: BigInt(Math.floor(noonTomorrow / 1_000)) });
await mine(chain);
const fixture = await makeMerchantFixture(chain, { clock });
const { merchantId, deps } = fixture;
const dayAfter = (days: number) => new Date(noonTomorrow + days * DAY_MS).toISOString().slice(0, 10);
async function read(from: number, until = from) {
  const period = { from: dayAfter(from), until: dayAfter(until) };
  return (await collect(readStatementLines(deps, { merchant: merchantId, ...period }))).map(({ line }) => line);
}
const scope = { accountId: fixture.accountId, mode: "live" as const };
/** Runs `work` with the clock advanced by `days`. */
async function on<T>(days: number, work: () => Promise<T>): Promise<T> {
  fixture.clock.advance(days * DAY_MS);
  await fixture.watch();
  const made = await work();
  fixture.clock.advance(-days * DAY_MS);
  return made;
}

test("a statement lists every payment, fee, payout and refund, and its balances follow from them", async () => {
  await setFee(deps, {
    actor: testActor,
    accountId: fixture.accountId,
    merchantId: null,
    basisPoints: 100,
    fixedMicros: 0n,
  });
  const one = await fixture.pay(await fundBuyer(chain), 1_000n);
  const buyer = await fundBuyer(chain);
  const two = await fixture.pay(buyer, 500n);
  const settlement = await fixture.settlementOf(one);
  await on(1, async () => {
    await fixture.settle(settlement.id);
    await fixture.relay();
    await fixture.watch();
  });
  const { refundId } = unwrap(
    await refundPayment(deps, {
      actor: testActor,
      paymentId: two,
      mode: "live",
      amount: { unit: "iso4217/USD", value: 100n },
    }),
  );
  await on(2, () => fixture.refund(refundId));

  expect(await read(0)).toMatchObject([
    { kind: "opening", asset: chain.asset, balance: 0n, at: null, change: null },
    { kind: "payment", paymentId: one, gross: 10_000_000n, fee: 100_000n, change: 9_900_000n, balance: 9_900_000n },
    { kind: "payment", paymentId: two, gross: 5_000_000n, fee: 50_000n, change: 4_950_000n, balance: 14_850_000n },
    { kind: "closing", balance: 14_850_000n },
  ]);
  const hash = (await fixture.transfers()).find(({ settlement_id: of }) => of === settlement.id);
  const { tx_hash } = await fixture.db
    .selectFrom("ledger_group")
    .select("tx_hash")
    .where("subject", "=", hash?.id ?? "")
    .executeTakeFirstOrThrow();
  expect(await read(1)).toMatchObject([
    { kind: "opening", balance: 14_850_000n },
    { kind: "settlement", change: -9_900_000n, to: `${chain.id}:${getAddress(fixture.destination)}`, txHash: tx_hash },
    { kind: "closing", balance: 4_950_000n },
  ]);
  expect(await read(2)).toMatchObject([
    { kind: "opening", balance: 4_950_000n },
    {
      ...{ kind: "refund", paymentId: two, refundId, change: -1_000_000n, txHash: null },
      to: `${chain.id}:${buyer.address}`,
    },
    { kind: "closing", balance: 3_950_000n },
  ]);
  expect((await read(0, 2)).map(({ kind }) => kind)).toEqual([
    ...["opening", "payment", "payment", "settlement", "refund", "closing"],
  ]);
  expect(await read(3, 40)).toMatchObject([{ balance: 3_950_000n }, { kind: "closing", balance: 3_950_000n }]);
  const unknown = { merchant: "mrch_none", from: dayAfter(0), until: dayAfter(1) };
  expect(await collect(readStatementLines(deps, unknown))).toEqual([]);
});

test("pages of any length have the lines of the whole statement, for a merchant and for an account of several", async () => {
  const details = { ...scope, actor: testActor, name: "Second", email: "second@example.test" };
  const { id: second } = await createMerchant(deps, details);
  const period = { from: dayAfter(0), until: dayAfter(2) };
  const all = unwrap(await openStatement(deps, { ...scope, ...period }));
  const whole = await collect(all);
  expect(whole.map(({ merchantId: of, kind, decimals }) => [of, kind, decimals])).toContainEqual([
    merchantId,
    "closing",
    6,
  ]);
  for (const owner of [scope, { ...scope, merchantId }, { ...scope, onlyMerchants: [merchantId] }])
    for (const limit of [1, 2, 5, 100]) {
      const lines = [];
      let cursor: string | undefined;
      do {
        const page = unwrap(await readStatementPage(deps, { ...owner, ...period, cursor, limit }));
        lines.push(...page.items);
        cursor = page.nextCursor ?? undefined;
      } while (cursor !== undefined);
      expect(lines).toEqual(whole);
    }
  const { nextCursor } = unwrap(await readStatementPage(deps, { ...scope, ...period, limit: 2 }));
  const another = { ...scope, from: dayAfter(0), until: dayAfter(1), cursor: nextCursor ?? "", limit: 2 };
  expect(await readStatementPage(deps, another)).toMatchObject({ code: "params_validation" });
  const empty = unwrap(await readStatementPage(deps, { ...scope, ...period, merchantId: second, limit: 5 }));
  expect(empty).toEqual({ items: [], nextCursor: null });
});

test.each([0, 1])(
  "a statement whose replica fails after %i lines continues on the primary where it stopped",
  async (at) => {
    const period = { from: dayAfter(0), until: dayAfter(2) };
    const whole = await collect(unwrap(await openStatement(deps, { ...scope, ...period })));
    const replica = openDb(fixture.databaseUrl, { max: 1 });
    // A pool that has never connected would connect after its end.
    await sql`select 1`.execute(replica);
    const errors: unknown[] = [];
    const standIn = { db: deps.db, onUse: (error: unknown) => void errors.push(error) };
    const lines = unwrap(await openStatement({ ...deps, db: replica }, { ...scope, ...period, standIn }));
    const begun = [];
    while (begun.length < at) begun.push((await lines.next()).value);
    await replica.destroy();
    expect([...begun, ...(await collect(lines))]).toEqual(whole);
    expect(errors).toEqual([expect.any(Error)]);
  },
);

test("balances are what a merchant is owed and has not been paid, and those of others are not shown", async () => {
  const { items } = unwrap(await readBalances(deps, { ...scope, limit: 10 }));
  const of = { asset: chain.asset, amount: 3_950_000n, inTransit: 0n };
  expect(items).toEqual([{ merchantId, symbol: "USDC", decimals: 6, ...of }]);
  for (const other of [
    { ...scope, accountId: "acct_other" },
    { ...scope, mode: "test" as const },
    { ...scope, onlyMerchants: ["mrch_other"] },
  ]) {
    expect(unwrap(await readBalances(deps, { ...other, limit: 10 })).items).toEqual([]);
    expect(await readBalances(deps, { ...other, merchantId, limit: 10 })).toMatchObject({ code: "merchant_not_found" });
    const period = { from: dayAfter(0), until: dayAfter(2), limit: 10 };
    expect(unwrap(await readStatementPage(deps, { ...other, ...period })).items).toEqual([]);
    const page = unwrap(await readStatementPage(deps, { ...scope, ...period, limit: 1 }));
    const stolen = { ...other, ...period, cursor: page.nextCursor ?? "" };
    expect(await readStatementPage(deps, stolen)).toMatchObject({ code: "params_validation" });
  }
});

test("a payout that has begun is in transit until it is final, in balances and in what operators see", async () => {
  const other = await makeMerchantFixture(chain, { clock });
  const read = async () =>
    unwrap(await readBalances(other.deps, { accountId: other.accountId, mode: "live", limit: 10 })).items;
  const { id } = await other.settlementOf(await other.pay(await fundBuyer(chain), 500n));
  expect(await read()).toMatchObject([{ amount: 5_000_000n, inTransit: 0n }]);
  expect(await other.settle(id)).toEqual(["begun"]);
  expect(await read()).toMatchObject([{ merchantId: other.merchantId, amount: 0n, inTransit: 5_000_000n }]);
  const owed = [{ asset: chain.asset, amount: 0n, inTransit: 5_000_000n }];
  expect(await readDebt(other.deps, other.merchantId)).toMatchObject({ owed });
  await other.relay();
  await other.watch();
  expect(await read()).toEqual([]);
  expect(await readDebt(other.deps, other.merchantId)).toMatchObject({ owed: [] });
});

test("statements and balances read their indexes", async () => {
  const plans = await deps.db.transaction().execute(async (db) => {
    await sql`set local enable_seqscan = off`.execute(db);
    const explain = async (query: object) => {
      const { rows } = await sql<Record<string, string>>`explain ${query as never}`.execute(db);
      return rows.map((row) => Object.values(row)[0]).join("\n");
    };
    const period = { account: "payable:mrch_1", asset: "a", from: "2026-01-01", until: "2026-01-31" };
    return [
      await explain(selectStatementRows({ ...period, after: 0, limit: 5 })),
      await explain(selectMerchantBalances({ ...scope, after: ["", ""], limit: 5 })),
    ];
  });
  expect(plans[1]).toContain("settlement_in_transit");
  expect(plans[0]).toContain("ledger_entry_account");
  expect(plans[1]).toContain("merchant_balance_pkey");
});

test("a CSV statement has a line for each change and no cell that a spreadsheet would evaluate as a formula", () => {
  const line = {
    merchantId: "mrch_1",
    asset: "a",
    at: new Date(0),
    kind: "payment" as const,
    paymentId: "pay_1",
    refundId: null,
    referenceId: '=1+1,"x"',
    description: "@SUM(A1)",
    metadata: { order: "7" },
    gross: 5n,
    fee: 1n,
    paid: null,
    change: -4n,
    balance: -4n,
    to: null,
    txHash: "0x1",
  };
  const head = `mrch_1,a,6,1970-01-01T00:00:00.000Z,payment,pay_1,"'=1+1,""x""",'@SUM(A1),"{""order"":""7""}"`;
  const usdc = { symbol: "USDC", decimals: 6 };
  expect(toCsvLine(line, { asset: usdc, paid: null })).toBe(`${head},5,1,-4,-4,,0x1,,,,,,USDC,`);
  const converted = { ...line, gross: null, fee: null, paid: { asset: "b", amount: 700n, fee: 3n } };
  const of = { asset: usdc, paid: { symbol: "EURX", decimals: 8 } };
  expect(toCsvLine(converted, of)).toBe(`${head},,,-4,-4,,0x1,b,8,700,3,,USDC,EURX`);
  const refunded = { ...line, refundId: "rfnd_1" };
  expect(toCsvLine(refunded, { asset: { symbol: null, decimals: null }, paid: null })).toBe(
    `${head.replace(",6,", ",,")},5,1,-4,-4,,0x1,,,,,rfnd_1,,`,
  );
  // Some programs drop blanks before a formula, or read the full-width signs of Japanese keyboards like the narrow ones.
  for (const formula of [
    "\n=1+1",
    " =1+1",
    "\u00a0@SUM(A1)",
    "\ufeff=1+1",
    "\uff1d1+1",
    "\uff0b1",
    "\uff0d1",
    "\uff20SUM(A1)",
  ])
    expect(toCsvLine({ ...line, description: formula }, { asset: usdc, paid: null })).toContain(`'${formula}`);
});

test("the statement command prints CSV and JSON", async () => {
  const run = (...args: string[]) => adminIn({ DATABASE_URL: fixture.databaseUrl })("merchants", "statement", ...args);
  const period = ["--from", dayAfter(0), "--until", dayAfter(2)];
  const { stdout } = await run(merchantId, ...period, "--format", "csv");
  expect(stdout.trim().split("\n")).toHaveLength(1 + 2 + 4);
  expect(JSON.parse((await run(merchantId, ...period, "--json")).stdout)).toContainEqual(
    expect.objectContaining({ kind: "closing", balance: "3950000" }),
  );
  expect(await run("mrch_0", ...period)).toMatchObject({ code: 1 });
  expect(await run(merchantId, "--from", "2026-02-30", "--until", "2026-03-01")).toMatchObject({ code: 2 });
  expect(await run(merchantId, "--from", dayAfter(2), "--until", dayAfter(0))).toMatchObject({ code: 2 });
});
