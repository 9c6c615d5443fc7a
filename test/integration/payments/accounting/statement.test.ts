import { expect, test } from "vitest";
import { readStatements, toCsv } from "../../../../payments/accounting/merchant-statements.ts";
import { setFee } from "../../../../payments/merchants/fee-policies.ts";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { adminIn } from "../../../support/admin.ts";
import { fundBuyer, startChain } from "../../../support/evm-chain.ts";
import { makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";

const chain = await startChain();
const fixture = await makeMerchantFixture(chain);
const { merchantId, deps } = fixture;
const DAY_MS = 86_400_000;
const dayAfter = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString().slice(0, 10);
const read = (from: number, until = from) =>
  readStatements(deps, { merchantId, from: dayAfter(from), until: dayAfter(until) });
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
  const two = await fixture.pay(await fundBuyer(chain), 500n);
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

  const [first, ...others] = await read(0);
  expect(others).toEqual([]);
  expect(first).toMatchObject({
    asset: chain.asset,
    opening: 0n,
    closing: 14_850_000n,
    payments: 15_000_000n,
    fees: 150_000n,
    settled: 0n,
    refunded: 0n,
    lines: [
      { kind: "payment", paymentId: one, gross: 10_000_000n, fee: 100_000n, change: 9_900_000n, balance: 9_900_000n },
      { kind: "payment", paymentId: two, gross: 5_000_000n, fee: 50_000n, change: 4_950_000n, balance: 14_850_000n },
    ],
  });
  const [second] = await read(1);
  const hash = (await fixture.transfers()).find(({ settlement_id: of }) => of === settlement.id);
  const { tx_hash } = await fixture.db
    .selectFrom("ledger_group")
    .select("tx_hash")
    .where("subject", "=", hash?.id ?? "")
    .executeTakeFirstOrThrow();
  expect(second).toMatchObject({
    opening: 14_850_000n,
    closing: 4_950_000n,
    settled: 9_900_000n,
    payments: 0n,
    lines: [{ kind: "settlement", change: -9_900_000n, to: `${chain.id}:${fixture.destination}`, txHash: tx_hash }],
  });
  const [third] = await read(2);
  expect(third).toMatchObject({
    opening: 4_950_000n,
    closing: 3_950_000n,
    refunded: 1_000_000n,
    lines: [{ kind: "refund", paymentId: two, change: -1_000_000n, txHash: null }],
  });
  const [whole] = await read(0, 2);
  expect(whole).toMatchObject({ opening: 0n, closing: 3_950_000n });
  expect(whole?.lines).toHaveLength(4);
  const [later] = await read(3, 40);
  expect(later).toMatchObject({ opening: 3_950_000n, closing: 3_950_000n, lines: [] });
  expect(await readStatements(deps, { merchantId: "mrch_none", from: dayAfter(0), until: dayAfter(1) })).toEqual([]);
});

test("a CSV statement has a line for each change and no cell that a spreadsheet would evaluate as a formula", () => {
  const line = {
    at: new Date(0),
    kind: "payment" as const,
    paymentId: "pay_1",
    referenceId: '=1+1,"x"',
    gross: 5n,
    fee: 1n,
    change: -4n,
    balance: -4n,
    to: null,
    txHash: "0x1",
  };
  const statement = {
    merchantId: "mrch_1",
    asset: "a",
    from: "2026-01-01",
    until: "2026-01-31",
    opening: 0n,
    closing: -4n,
    payments: 5n,
    fees: 1n,
    settled: 0n,
    refunded: 0n,
    lines: [line],
  };
  expect(toCsv([statement])).toEqual([
    "asset,at,kind,paymentId,referenceId,gross,fee,change,balance,to,txHash",
    "a,2026-01-01,opening,,,,,,0,,",
    'a,1970-01-01T00:00:00.000Z,payment,pay_1,"\'=1+1,""x""",5,1,-4,-4,,0x1',
    "a,2026-01-31,closing,,,,,,-4,,",
  ]);
});

test("the statement command prints CSV and JSON", async () => {
  const run = (...args: string[]) => adminIn({ DATABASE_URL: fixture.databaseUrl })("statement", ...args);
  const period = ["--from", dayAfter(0), "--until", dayAfter(2)];
  const { stdout } = await run(merchantId, ...period, "--format", "csv");
  expect(stdout.trim().split("\n")).toHaveLength(1 + 2 + 4);
  expect(JSON.parse((await run(merchantId, ...period, "--json")).stdout)).toMatchObject([{ closing: "3950000" }]);
  expect(await run("mrch_0", ...period)).toMatchObject({ code: 1 });
  expect(await run(merchantId, "--from", "2026-02-30", "--until", "2026-03-01")).toMatchObject({ code: 2 });
  expect(await run(merchantId, "--from", dayAfter(2), "--until", dayAfter(0))).toMatchObject({ code: 2 });
});
