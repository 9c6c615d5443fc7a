import { beforeEach, expect, test } from "vitest";
import { readInventory } from "../../../../db/queries/inventory.ts";
import { type Group, insertGroups } from "../../../../db/queries/ledger-groups.ts";
import { openTestDb } from "../../../support/open-test-db.ts";

const ASSET = "eip155:1/erc20:0x01";
const at = new Date("2026-03-01T12:00:00Z");
let db: Awaited<ReturnType<typeof openTestDb>>["db"];
beforeEach(async () => {
  ({ db } = await openTestDb(2));
});

const currentInventory = () => db.transaction().execute((trx) => readInventory(trx, ASSET));

/** Books between two accounts and returns the group's id; the unique key is its kind and subject. */
async function book(kind: string, subject: string, debit: string, credit: string, amount: bigint): Promise<string> {
  const entries = [
    { account: debit, asset: ASSET, amount },
    { account: credit, asset: ASSET, amount: -amount },
  ];
  const group: Group = { kind, subject, entries };
  await db.transaction().execute((trx) => insertGroups(trx, [group], at));
  const { id } = await db
    .selectFrom("ledger_group")
    .select("id")
    .where("kind", "=", kind)
    .where("subject", "=", subject)
    .executeTakeFirstOrThrow();
  return String(id);
}

const bookDeposit = (subject: string, amount: bigint) => book("unmatched", subject, "treasury", "exceptions", amount);
const bookOutflow = (subject: string, amount: bigint) => book("unmatched", subject, "exceptions", "treasury", amount);

test("an unmatched deposit is owed in full, although as much has left the treasury", async () => {
  await bookDeposit("a", 5n);
  expect(await currentInventory()).toBe(0n);
  await bookOutflow("b", 5n);
  expect(await currentInventory(), "the treasury is empty and owes five").toBe(-5n);
});

test("an overpaid payout does not reduce what is owed for unmatched deposits", async () => {
  await bookDeposit("a", 5n);
  await book("overpaid", "transfer", "exceptions", "treasury", 3n);
  expect(await currentInventory()).toBe(-3n);
});

test("a closed exception no longer counts, whether it was owed or lost", async () => {
  const deposit = await bookDeposit("a", 5n);
  const loss = await bookOutflow("b", 2n);
  await book("exception_resolved", deposit, "exceptions", "operator_capital", 5n);
  await book("exception_resolved", loss, "losses", "exceptions", 2n);
  expect(await currentInventory(), "five of capital, minus two lost").toBe(3n);
});

test("reversing a closed exception restores the earlier inventory", async () => {
  const loss = await bookOutflow("b", 2n);
  await book("exception_resolved", loss, "losses", "exceptions", 2n);
  await book("exception_reversed", loss, "treasury", "losses", 2n);
  await bookDeposit("a", 5n);
  expect(await currentInventory()).toBe(0n);
});

test("manual corrections cancel each other and never what is owed for unmatched deposits", async () => {
  await bookDeposit("a", 5n);
  await book("correction", "ticket 1", "exceptions", "treasury", 4n);
  expect(await currentInventory()).toBe(-4n);
  await book("correction", "ticket 2", "treasury", "exceptions", 4n);
  expect(await currentInventory()).toBe(0n);
  await book("correction", "ticket 3", "treasury", "exceptions", 6n);
  expect(await currentInventory()).toBe(0n);
});
