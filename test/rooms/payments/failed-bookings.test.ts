import { parseAbi } from "viem";
import { describe, expect, test } from "vitest";
import { listBalances } from "../../../db/balances.ts";
import { reconcileChain } from "../../../payments/reconcile.ts";
import { adminIn } from "../../support/admin.ts";
import { fundBuyer, mine, sendUsdc, startChain, type TestChain, usdcBalance } from "../../support/chain.ts";
import { remember } from "../../support/remember.ts";
import { execute } from "../../support/sql.ts";
import { good, makeTill, type Till } from "../../support/till.ts";

const failures = (till: Till) => till.db.selectFrom("failed_booking").selectAll().orderBy("id").execute();
const cursor = (till: Till) => till.db.selectFrom("chain_cursor").selectAll().executeTakeFirstOrThrow();
const booked = async (till: Till, account: string) => (await listBalances(till.db, { account }))[0]?.amount ?? 0n;
const retryAll = (till: Till) => adminIn({ DATABASE_URL: till.databaseUrl })("failed-bookings", "retry", "--all");

/** Expects that every block that was read is final and that the ledger matches the chain. */
async function expectReconciled(till: Till, chain: TestChain) {
  const { number, final_number } = await cursor(till);
  expect(number).toBe(Number(await chain.client.getBlockNumber()));
  expect(final_number).toBe(number);
  const lines = good(await reconcileChain(till.deps, { chain: chain.id }));
  expect(lines.filter(({ difference }) => difference !== 0n)).toEqual([]);
}

/** Makes the database refuse matching rows of a table. Returns a function that lifts this. */
async function refuse(till: Till, table: string, when: string): Promise<() => Promise<unknown>> {
  await execute(
    till.databaseUrl,
    `create or replace function refuse_row() returns trigger language plpgsql as $$
      begin raise exception 'no such row today'; end $$`,
    `create trigger refuse_row before insert or update on ${table} for each row when (${when}) execute function refuse_row()`,
  );
  return () => execute(till.databaseUrl, `drop trigger refuse_row on ${table}`);
}

/** Creates a payment, has its buyer sign it and a lane send it. Returns its id. */
async function relayPayment(till: Till, chain: TestChain, cents: bigint): Promise<string> {
  const paymentId = await till.create(cents);
  await till.verify(await till.attempt(paymentId, await fundBuyer(chain)));
  await till.relay();
  return paymentId;
}

test("a third party's zero-value transferFrom the treasury does not stop payments, bookings or finality", async () => {
  const chain = await startChain();
  const till = await makeTill(chain);
  const treasury = chain.keys.treasury.address;
  const hash = await chain.client.writeContract({
    address: chain.contracts.token,
    abi: parseAbi(["function transferFrom(address from, address to, uint256 value) returns (bool)"]),
    functionName: "transferFrom",
    args: [treasury, `0x${"77".repeat(20)}`, 0n],
  });
  expect((await chain.client.waitForTransactionReceipt({ hash })).logs).toHaveLength(1);
  await till.watch();
  await sendUsdc(chain, await fundBuyer(chain), treasury, 7n);
  const paymentId = await till.pay(await fundBuyer(chain));
  expect((await till.status(paymentId)).state).toBe("succeeded");
  expect(await booked(till, "exceptions")).toBe(-7n);
  expect(await failures(till)).toEqual([]);
  await expectReconciled(till, chain);
});

describe("a row that cannot be booked", () => {
  test("a confirmed transfer that cannot be booked is set aside while other rows are booked, and a retry completes its payment", async () => {
    const chain = await startChain();
    const till = await makeTill(chain);
    const allow = await refuse(till, "ledger_entry", "new.amount = 2000000");
    const bad = await relayPayment(till, chain, 200n);
    const fine = await relayPayment(till, chain, 300n);
    await sendUsdc(chain, await fundBuyer(chain), chain.keys.treasury.address, 7n);
    await till.watch();
    expect((await till.status(fine)).state).toBe("succeeded");
    expect((await till.status(bad)).state).toBe("processing");
    expect(await booked(till, "exceptions")).toBe(-7n);
    const [transfer] = (await till.transfers()).filter((one) => one.payment_id === bad);
    expect(await failures(till)).toMatchObject([
      { chain: chain.id, kind: "transfer", subject: transfer?.id, error: "no such row today", retries: 0 },
    ]);
    await expectReconciled(till, chain);

    // The watcher skips the row until its retry is due, and sets it aside again while the cause remains.
    await mine(chain);
    await till.watch();
    expect((await failures(till))[0]?.retries).toBe(0);
    await retryAll(till);
    await till.watch();
    expect((await failures(till))[0]?.retries).toBe(1);
    expect(till.lines.filter((line) => line.includes("cannot be booked"))).toHaveLength(2);

    await allow();
    expect(await retryAll(till)).toMatchObject({ code: 0 });
    await till.watch();
    await till.watch();
    expect((await till.status(bad)).state).toBe("succeeded");
    expect(await booked(till, `payable:${till.merchantId}`)).toBe(-5_000_000n);
    expect(await failures(till)).toEqual([]);
    expect(till.announced).toContain(bad);
    await expectReconciled(till, chain);
  });

  test("an unmatched movement that cannot be booked is set aside, and a retry books it once", async () => {
    const chain = await startChain();
    const till = await makeTill(chain);
    const allow = await refuse(till, "ledger_entry", "new.account = 'exceptions' and new.amount = -7");
    const stranger = await fundBuyer(chain);
    for (const amount of [5n, 7n, 9n]) await sendUsdc(chain, stranger, chain.keys.treasury.address, amount);
    await till.watch();
    expect(await booked(till, "exceptions")).toBe(-14n);
    await till.watch();
    expect(await failures(till)).toMatchObject([{ kind: "unmatched", retries: 0 }]);
    await expectReconciled(till, chain);
    await allow();
    await retryAll(till);
    await till.watch();
    await till.watch();
    expect(await booked(till, "exceptions")).toBe(-21n);
    expect(await booked(till, "treasury")).toBe(await usdcBalance(chain, chain.keys.treasury.address));
    expect(await failures(till)).toEqual([]);
  });

  test("a transaction cost that cannot be booked is set aside, and a retry books it once", async () => {
    const chain = await startChain();
    const till = await makeTill(chain);
    const allow = await refuse(till, "ledger_group", "new.kind = 'gas'");
    const paymentId = await till.pay(await fundBuyer(chain));
    expect((await till.status(paymentId)).state).toBe("succeeded");
    await mine(chain);
    await till.watch();
    expect(await failures(till)).toMatchObject([{ kind: "transaction", retries: 0 }]);
    expect(await booked(till, "gas_spent")).toBe(0n);
    await expectReconciled(till, chain);
    await allow();
    await retryAll(till);
    await mine(chain);
    await till.watch();
    const [transaction] = await till.db.selectFrom("transaction").selectAll().execute();
    expect(transaction?.state).toBe("final");
    expect(await booked(till, "gas_spent")).toBe(transaction?.fee);
    expect(await failures(till)).toEqual([]);
  });

  test("a transaction whose inclusion cannot be stored is set aside while its transfers are booked", async () => {
    const chain = await startChain();
    const till = await makeTill(chain);
    const allow = await refuse(till, "transaction", "new.state = 'included'");
    const paymentId = await till.pay(await fundBuyer(chain));
    expect((await till.status(paymentId)).state).toBe("succeeded");
    expect(await failures(till)).toMatchObject([{ kind: "transaction" }]);
    await allow();
    await retryAll(till);
    await mine(chain);
    await till.watch();
    await till.watch();
    const transactions = await till.db.selectFrom("transaction").selectAll().execute();
    expect(transactions.map(({ state }) => state)).toEqual(["final"]);
    expect(await booked(till, "gas_spent")).toBe(transactions[0]?.fee);
    expect(await failures(till)).toEqual([]);
    await expectReconciled(till, chain);
  });

  test("a movement that cannot be stored is set aside, and its transfer is not made again", async () => {
    const chain = await startChain();
    const till = await makeTill(chain);
    const allow = await refuse(till, "sighting", "new.amount = 2000000");
    const bad = await relayPayment(till, chain, 200n);
    const fine = await relayPayment(till, chain, 300n);
    await till.watch();
    expect((await till.status(fine)).state).toBe("succeeded");
    expect((await till.status(bad)).state).toBe("processing");
    const { movement, ...row } = (await failures(till))[0] ?? {};
    expect(row).toMatchObject({ kind: "movement", error: "no such row today" });
    expect(movement).toMatchObject({ amount: "2000000", token: chain.contracts.token.toLowerCase() });
    expect((await till.transfers()).map(({ state }) => state)).toEqual(["carried", "confirmed"]);
    await expectReconciled(till, chain);
    await allow();
    await retryAll(till);
    await mine(chain);
    await till.watch();
    await till.watch();
    expect((await till.status(bad)).state).toBe("succeeded");
    expect(await failures(till)).toEqual([]);
    await expectReconciled(till, chain);
  });

  test("an ended transfer that cannot be booked is set aside, and a retry expires its payment", async () => {
    const chain = await startChain();
    const till = await makeTill(chain);
    const [bad, fine] = [await till.create(200n), await till.create(300n)];
    for (const id of [bad, fine]) await till.verify(await till.attempt(id, await fundBuyer(chain)));
    const allow = await refuse(till, "payment", `new.id = '${bad}' and new.state = 'expired'`);
    await chain.client.increaseTime({ seconds: 7_200 });
    await mine(chain, 2);
    await till.watch();
    await till.watch();
    expect([(await till.status(bad)).state, (await till.status(fine)).state]).toEqual(["processing", "expired"]);
    expect(await failures(till)).toMatchObject([{ kind: "ended", retries: 0 }]);
    await allow();
    await retryAll(till);
    await till.watch();
    expect((await till.status(bad)).state).toBe("expired");
    expect(await failures(till)).toEqual([]);
  });
});

test("a reorg discards a movement that could not be stored, and the watcher reads it again from the new block", async () => {
  const chain = await startChain();
  const till = await makeTill(chain, { change: { finality: { blocks: 3 } } });
  await mine(chain, 3);
  await till.watch();
  const allow = await refuse(till, "sighting", "new.amount = 7");
  const stranger = await fundBuyer(chain);
  await till.watch();
  const reorg = await remember(chain);
  await sendUsdc(chain, stranger, chain.keys.treasury.address, 7n);
  await till.watch();
  expect(await failures(till)).toMatchObject([{ kind: "movement" }]);
  await reorg();
  await till.watch();
  expect(await failures(till)).toEqual([]);
  await allow();
  await mine(chain, 5);
  await till.watch();
  await till.watch();
  expect(await booked(till, "treasury")).toBe(await usdcBalance(chain, chain.keys.treasury.address));
});

test("a database deadlock sets no row aside, and the watcher repeats the pass", async () => {
  const chain = await startChain();
  const till = await makeTill(chain);
  const allow = await (async () => {
    await execute(
      till.databaseUrl,
      `create function deadlock() returns trigger language plpgsql as $$
        begin raise exception 'deadlock detected' using errcode = '40P01'; end $$`,
      "create trigger deadlock before insert on ledger_entry for each row execute function deadlock()",
    );
    return () => execute(till.databaseUrl, "drop trigger deadlock on ledger_entry");
  })();
  const paymentId = await relayPayment(till, chain, 200n);
  await expect(till.watch()).rejects.toMatchObject({ code: "40P01" });
  expect(await failures(till)).toEqual([]);
  await allow();
  await till.watch();
  expect((await till.status(paymentId)).state).toBe("succeeded");
});

describe("the failed-bookings command", () => {
  test("the command lists failed bookings, retries one by id and refuses unknown ids", async () => {
    const chain = await startChain();
    const till = await makeTill(chain);
    const admin = adminIn({ DATABASE_URL: till.databaseUrl });
    expect(await admin("failed-bookings", "list")).toMatchObject({ code: 0, stdout: "none\n" });
    expect(await admin("failed-bookings", "retry", "--all")).toMatchObject({ code: 1 });
    const allow = await refuse(till, "ledger_entry", "new.account = 'exceptions'");
    const stranger = await fundBuyer(chain);
    for (const amount of [5n, 7n]) await sendUsdc(chain, stranger, chain.keys.treasury.address, amount);
    await till.watch();
    const [first, second] = await failures(till);
    const listed = await admin("failed-bookings", "list");
    expect(listed.stdout).toContain("no such row today");
    expect(JSON.parse((await admin("failed-bookings", "list", "--json")).stdout)).toMatchObject([
      { id: first?.id, kind: "unmatched", subject: first?.subject, retries: 0 },
      { id: second?.id },
    ]);
    await allow();
    expect(await admin("failed-bookings", "retry", String(first?.id))).toMatchObject({ code: 0 });
    await till.watch();
    expect(await failures(till)).toMatchObject([{ id: second?.id }]);
    expect(await admin("failed-bookings", "retry", String(first?.id))).toMatchObject({ code: 1 });
    for (const wrong of [["retry"], ["retry", "x"], ["retry", "1", "--all"], ["list", "--limit", "x"]])
      expect(await admin("failed-bookings", ...wrong)).toMatchObject({ code: 2 });
    const actions = await till.db.selectFrom("operator_action").select(["action", "subject"]).execute();
    expect(actions).toEqual([{ action: "failed-bookings retry", subject: String(first?.id) }]);
  });
});
