import { parseAbi } from "viem";
import { describe, expect, test } from "vitest";
import { listBalances } from "../../../../db/queries/ledger-balances.ts";
import { reconcileChain } from "../../../../payments/accounting/reconcile-chain.ts";
import { adminIn } from "../../../support/admin.ts";
import { prepareReorg } from "../../../support/chain-reorg.ts";
import { fundBuyer, mine, sendUsdc, startChain, type TestChain, usdcBalance } from "../../../support/evm-chain.ts";
import { execute } from "../../../support/execute-sql.ts";
import { type MerchantFixture, makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";

const failures = (fixture: MerchantFixture) =>
  fixture.db.selectFrom("failed_booking").selectAll().orderBy("id").execute();
const cursor = (fixture: MerchantFixture) =>
  fixture.db.selectFrom("chain_cursor").selectAll().executeTakeFirstOrThrow();
const booked = async (fixture: MerchantFixture, account: string) =>
  (await listBalances(fixture.db, { account }))[0]?.amount ?? 0n;
const retryAll = (fixture: MerchantFixture) =>
  adminIn({ DATABASE_URL: fixture.databaseUrl })("failed-bookings", "retry", "--all");

/** Expects that every block that was read is final and that the ledger matches the chain. */
async function expectReconciled(fixture: MerchantFixture, chain: TestChain) {
  const { number, final_number } = await cursor(fixture);
  expect(number).toBe(Number(await chain.client.getBlockNumber()));
  expect(final_number).toBe(number);
  const lines = unwrap(await reconcileChain(fixture.deps, { chain: chain.id }));
  expect(lines.filter(({ difference }) => difference !== 0n)).toEqual([]);
}

/** Makes the database refuse matching rows of a table. Returns a function that lifts this. */
async function refuse(fixture: MerchantFixture, table: string, when: string): Promise<() => Promise<unknown>> {
  await execute(
    fixture.databaseUrl,
    `create or replace function refuse_row() returns trigger language plpgsql as $$
      begin raise exception 'no such row today'; end $$`,
    `create trigger refuse_row before insert or update on ${table} for each row when (${when}) execute function refuse_row()`,
  );
  return () => execute(fixture.databaseUrl, `drop trigger refuse_row on ${table}`);
}

/** Creates a payment, has its buyer sign it and a lane send it. Returns its id. */
async function relayPayment(fixture: MerchantFixture, chain: TestChain, cents: bigint): Promise<string> {
  const paymentId = await fixture.create(cents);
  await fixture.verify(await fixture.attempt(paymentId, await fundBuyer(chain)));
  await fixture.relay();
  return paymentId;
}

test("a third party's zero-value transferFrom the treasury does not stop payments, bookings or finality", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const treasury = chain.keys.treasury.address;
  const hash = await chain.client.writeContract({
    address: chain.contracts.token,
    abi: parseAbi(["function transferFrom(address from, address to, uint256 value) returns (bool)"]),
    functionName: "transferFrom",
    args: [treasury, `0x${"77".repeat(20)}`, 0n],
  });
  expect((await chain.client.waitForTransactionReceipt({ hash })).logs).toHaveLength(1);
  await fixture.watch();
  await sendUsdc(chain, await fundBuyer(chain), treasury, 7n);
  const paymentId = await fixture.pay(await fundBuyer(chain));
  expect((await fixture.status(paymentId)).state).toBe("succeeded");
  expect(await booked(fixture, "exceptions")).toBe(-7n);
  expect(await failures(fixture)).toEqual([]);
  await expectReconciled(fixture, chain);
});

describe("a row that cannot be booked", () => {
  test("a confirmed transfer that cannot be booked is set aside while other rows are booked, and a retry completes its payment", async () => {
    const chain = await startChain();
    const fixture = await makeMerchantFixture(chain);
    const allow = await refuse(fixture, "ledger_entry", "new.amount = 2000000");
    const bad = await relayPayment(fixture, chain, 200n);
    const fine = await relayPayment(fixture, chain, 300n);
    await sendUsdc(chain, await fundBuyer(chain), chain.keys.treasury.address, 7n);
    await fixture.watch();
    expect((await fixture.status(fine)).state).toBe("succeeded");
    expect((await fixture.status(bad)).state).toBe("processing");
    expect(await booked(fixture, "exceptions")).toBe(-7n);
    const [transfer] = (await fixture.transfers()).filter((one) => one.payment_id === bad);
    expect(await failures(fixture)).toMatchObject([
      { chain: chain.id, kind: "transfer", subject: transfer?.id, error: "no such row today", retries: 0 },
    ]);
    await expectReconciled(fixture, chain);

    // The watcher skips the row until its retry is due, and sets it aside again while the cause remains.
    await mine(chain);
    await fixture.watch();
    expect((await failures(fixture))[0]?.retries).toBe(0);
    await retryAll(fixture);
    await fixture.watch();
    expect((await failures(fixture))[0]?.retries).toBe(1);
    expect(fixture.lines.filter((line) => line.includes("cannot be booked"))).toHaveLength(2);

    await allow();
    expect(await retryAll(fixture)).toMatchObject({ code: 0 });
    await fixture.watch();
    await fixture.watch();
    expect((await fixture.status(bad)).state).toBe("succeeded");
    expect(await booked(fixture, `payable:${fixture.merchantId}`)).toBe(-5_000_000n);
    expect(await failures(fixture)).toEqual([]);
    expect(fixture.announced).toContain(bad);
    await expectReconciled(fixture, chain);
  });

  test("an unmatched movement that cannot be booked is set aside, and a retry books it once", async () => {
    const chain = await startChain();
    const fixture = await makeMerchantFixture(chain);
    const allow = await refuse(fixture, "ledger_entry", "new.account = 'exceptions' and new.amount = -7");
    const stranger = await fundBuyer(chain);
    for (const amount of [5n, 7n, 9n]) await sendUsdc(chain, stranger, chain.keys.treasury.address, amount);
    await fixture.watch();
    expect(await booked(fixture, "exceptions")).toBe(-14n);
    await fixture.watch();
    expect(await failures(fixture)).toMatchObject([{ kind: "unmatched", retries: 0 }]);
    await expectReconciled(fixture, chain);
    await allow();
    await retryAll(fixture);
    await fixture.watch();
    await fixture.watch();
    expect(await booked(fixture, "exceptions")).toBe(-21n);
    expect(await booked(fixture, "treasury")).toBe(await usdcBalance(chain, chain.keys.treasury.address));
    expect(await failures(fixture)).toEqual([]);
  });

  test("a transaction cost that cannot be booked is set aside, and a retry books it once", async () => {
    const chain = await startChain();
    const fixture = await makeMerchantFixture(chain);
    const allow = await refuse(fixture, "ledger_group", "new.kind = 'gas'");
    const paymentId = await fixture.pay(await fundBuyer(chain));
    expect((await fixture.status(paymentId)).state).toBe("succeeded");
    await mine(chain);
    await fixture.watch();
    expect(await failures(fixture)).toMatchObject([{ kind: "transaction", retries: 0 }]);
    expect(await booked(fixture, "gas_spent")).toBe(0n);
    await expectReconciled(fixture, chain);
    await allow();
    await retryAll(fixture);
    await mine(chain);
    await fixture.watch();
    const [transaction] = await fixture.db.selectFrom("transaction").selectAll().execute();
    expect(transaction?.state).toBe("final");
    expect(await booked(fixture, "gas_spent")).toBe(transaction?.fee);
    expect(await failures(fixture)).toEqual([]);
  });

  test("a transaction whose inclusion cannot be stored is set aside while its transfers are booked", async () => {
    const chain = await startChain();
    const fixture = await makeMerchantFixture(chain);
    const allow = await refuse(fixture, "transaction", "new.state = 'included'");
    const paymentId = await fixture.pay(await fundBuyer(chain));
    expect((await fixture.status(paymentId)).state).toBe("succeeded");
    expect(await failures(fixture)).toMatchObject([{ kind: "transaction" }]);
    await allow();
    await retryAll(fixture);
    await mine(chain);
    await fixture.watch();
    await fixture.watch();
    const transactions = await fixture.db.selectFrom("transaction").selectAll().execute();
    expect(transactions.map(({ state }) => state)).toEqual(["final"]);
    expect(await booked(fixture, "gas_spent")).toBe(transactions[0]?.fee);
    expect(await failures(fixture)).toEqual([]);
    await expectReconciled(fixture, chain);
  });

  test("a movement that cannot be stored is set aside, and its transfer is not made again", async () => {
    const chain = await startChain();
    const fixture = await makeMerchantFixture(chain);
    const allow = await refuse(fixture, "observation", "new.amount = 2000000");
    const bad = await relayPayment(fixture, chain, 200n);
    const fine = await relayPayment(fixture, chain, 300n);
    await fixture.watch();
    expect((await fixture.status(fine)).state).toBe("succeeded");
    expect((await fixture.status(bad)).state).toBe("processing");
    const { movement, ...row } = (await failures(fixture))[0] ?? {};
    expect(row).toMatchObject({ kind: "movement", error: "no such row today" });
    expect(movement).toMatchObject({ amount: "2000000", token: chain.contracts.token.toLowerCase() });
    expect((await fixture.transfers()).map(({ state }) => state)).toEqual(["assigned", "confirmed"]);
    await expectReconciled(fixture, chain);
    await allow();
    await retryAll(fixture);
    await mine(chain);
    await fixture.watch();
    await fixture.watch();
    expect((await fixture.status(bad)).state).toBe("succeeded");
    expect(await failures(fixture)).toEqual([]);
    await expectReconciled(fixture, chain);
  });

  test("an ended transfer that cannot be booked is set aside, and a retry expires its payment", async () => {
    const chain = await startChain();
    const fixture = await makeMerchantFixture(chain);
    const [bad, fine] = [await fixture.create(200n), await fixture.create(300n)];
    for (const id of [bad, fine]) await fixture.verify(await fixture.attempt(id, await fundBuyer(chain)));
    const allow = await refuse(fixture, "payment", `new.id = '${bad}' and new.state = 'expired'`);
    await chain.client.increaseTime({ seconds: 7_200 });
    await mine(chain, 2);
    await fixture.watch();
    await fixture.watch();
    expect([(await fixture.status(bad)).state, (await fixture.status(fine)).state]).toEqual(["processing", "expired"]);
    expect(await failures(fixture)).toMatchObject([{ kind: "ended", retries: 0 }]);
    await allow();
    await retryAll(fixture);
    await fixture.watch();
    expect((await fixture.status(bad)).state).toBe("expired");
    expect(await failures(fixture)).toEqual([]);
  });
});

test("a reorg discards a movement that could not be stored, and the watcher reads it again from the new block", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain, { change: { finality: { blocks: 3 } } });
  await mine(chain, 3);
  await fixture.watch();
  const allow = await refuse(fixture, "observation", "new.amount = 7");
  const stranger = await fundBuyer(chain);
  await fixture.watch();
  const reorg = await prepareReorg(chain);
  await sendUsdc(chain, stranger, chain.keys.treasury.address, 7n);
  await fixture.watch();
  expect(await failures(fixture)).toMatchObject([{ kind: "movement" }]);
  await reorg();
  await fixture.watch();
  expect(await failures(fixture)).toEqual([]);
  await allow();
  await mine(chain, 5);
  await fixture.watch();
  await fixture.watch();
  expect(await booked(fixture, "treasury")).toBe(await usdcBalance(chain, chain.keys.treasury.address));
});

test("a database deadlock sets no row aside, and the watcher repeats the pass", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const allow = await (async () => {
    await execute(
      fixture.databaseUrl,
      `create function deadlock() returns trigger language plpgsql as $$
        begin raise exception 'deadlock detected' using errcode = '40P01'; end $$`,
      "create trigger deadlock before insert on ledger_entry for each row execute function deadlock()",
    );
    return () => execute(fixture.databaseUrl, "drop trigger deadlock on ledger_entry");
  })();
  const paymentId = await relayPayment(fixture, chain, 200n);
  await expect(fixture.watch()).rejects.toMatchObject({ code: "40P01" });
  expect(await failures(fixture)).toEqual([]);
  await allow();
  await fixture.watch();
  expect((await fixture.status(paymentId)).state).toBe("succeeded");
});

describe("the failed-bookings command", () => {
  test("the command lists failed bookings, retries one by id and refuses unknown ids", async () => {
    const chain = await startChain();
    const fixture = await makeMerchantFixture(chain);
    const admin = adminIn({ DATABASE_URL: fixture.databaseUrl });
    expect(await admin("failed-bookings", "list")).toMatchObject({ code: 0, stdout: "none\n" });
    expect(await admin("failed-bookings", "retry", "--all")).toMatchObject({ code: 1 });
    const allow = await refuse(fixture, "ledger_entry", "new.account = 'exceptions'");
    const stranger = await fundBuyer(chain);
    for (const amount of [5n, 7n]) await sendUsdc(chain, stranger, chain.keys.treasury.address, amount);
    await fixture.watch();
    const [first, second] = await failures(fixture);
    const listed = await admin("failed-bookings", "list");
    expect(listed.stdout).toContain("no such row today");
    expect(JSON.parse((await admin("failed-bookings", "list", "--json")).stdout)).toMatchObject([
      { id: first?.id, kind: "unmatched", subject: first?.subject, retries: 0 },
      { id: second?.id },
    ]);
    await allow();
    expect(await admin("failed-bookings", "retry", String(first?.id))).toMatchObject({ code: 0 });
    await fixture.watch();
    expect(await failures(fixture)).toMatchObject([{ id: second?.id }]);
    expect(await admin("failed-bookings", "retry", String(first?.id))).toMatchObject({ code: 1 });
    for (const wrong of [["retry"], ["retry", "x"], ["retry", "1", "--all"], ["list", "--limit", "x"]])
      expect(await admin("failed-bookings", ...wrong)).toMatchObject({ code: 2 });
    const actions = await fixture.db
      .selectFrom("audit_entry")
      .select(["action", "subject"])
      .where("actor_id", "<>", testActor.id)
      .execute();
    expect(actions).toEqual([{ action: "failed_booking.retried", subject: String(first?.id) }]);
  });
});
