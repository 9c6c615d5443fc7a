import { sql, type Transaction } from "kysely";
import pg from "pg";
import { describe, expect, test } from "vitest";
import type { Role } from "../../../../db/grants/roles.ts";
import { limitLockWaits } from "../../../../db/in-transaction.ts";
import { migrateDatabase } from "../../../../db/migrate.ts";
import { openDb } from "../../../../db/open.ts";
import { lockUnprovenAttempts } from "../../../../db/queries/attempts.ts";
import { insertAuditEntries } from "../../../../db/queries/audit-entries.ts";
import { lockReports } from "../../../../db/queries/destination-reports.ts";
import { lockException } from "../../../../db/queries/exceptions.ts";
import { lockInventory } from "../../../../db/queries/inventory.ts";
import { lockLogins } from "../../../../db/queries/operator-sessions.ts";
import { lockForAcceptance } from "../../../../db/queries/pending-transfers.ts";
import { lockReconciliation } from "../../../../db/queries/reconciliations.ts";
import type { Pool, Tables } from "../../../../db/tables.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { roleUrl } from "../../../support/database-roles.ts";
import { execute } from "../../../support/execute-sql.ts";
import { insertMerchant, insertPaymentRow, someAsset, someChain } from "../../../support/insert-rows.ts";
import { openTestDb } from "../../../support/open-test-db.ts";
import { testActor } from "../../../support/test-actor.ts";
import { createEmptyDatabase } from "../../../support/test-database.ts";

// A login that only reads cannot keep the service waiting.

// The functions are those of the sources at hand, also when a mutation has changed them.
const url = await createEmptyDatabase();
await migrateDatabase(url);
const db = openDb(url, { max: 2 });
addCleanup(() => db.destroy());
const NOT_ALLOWED = { code: "42501" };
const TIMED_OUT = { code: "55P03" };

const reader = new pg.Client({ connectionString: await roleUrl(url, "reader"), statement_timeout: 20_000 });
await reader.connect();
addCleanup(() => reader.end());

const entry = { actor: testActor, action: "merchant.updated", subject: "mch_1", before: null, after: null };
const paymentId = await insertPaymentRow(db, await insertMerchant(db));
const exceptionId = await insertException();

async function insertException(): Promise<number> {
  const { rows } = await sql<{ id: number }>`
    insert into ledger_group (kind, subject, at) values ('unmatched', 'movement', now()) returning id`.execute(db);
  return rows[0]?.id ?? 0;
}

const lockPayers = (trx: Transaction<Tables>, payers: readonly string[], lockWaitMs = 100) =>
  lockForAcceptance(trx, {
    paymentIds: [],
    attemptIds: [],
    payers: payers.map((payer) => ({ chain: someChain, payer })),
    lockWaitMs,
  });

type Lock = {
  role: Role;
  /** The text whose hash was the key of the lock while it was advisory. */
  former: string;
  take: (trx: Transaction<Tables>) => Promise<unknown>;
};
const locks: Record<string, Lock> = {
  "a payer": { role: "worker", former: `payer ${someChain} 0xa`, take: (trx) => lockPayers(trx, ["0xa"]) },
  "a payment's confirms": {
    role: "api",
    former: `attempts of ${paymentId}`,
    take: (trx) => lockUnprovenAttempts(trx, paymentId),
  },
  "an inventory": {
    role: "worker",
    former: `inventory ${someAsset}`,
    take: (trx) => lockInventory(trx, someAsset),
  },
  "a reconciliation by a worker": {
    role: "worker",
    former: `reconcile ${someChain}`,
    take: (trx) => lockReconciliation(trx, someChain),
  },
  "a reconciliation by an operator": {
    role: "admin",
    former: `reconcile ${someChain}`,
    take: (trx) => lockReconciliation(trx, someChain),
  },
  "an exception by a worker": {
    role: "worker",
    former: `exception ${exceptionId}`,
    take: (trx) => lockException(trx, exceptionId),
  },
  "an exception by an operator": {
    role: "admin",
    former: `exception ${exceptionId}`,
    take: (trx) => lockException(trx, exceptionId),
  },
  logins: { role: "board", former: "operator_login_attempt", take: lockLogins },
};

/** Opens the database with two connections as a role. */
async function openAs(role: Role): Promise<Pool> {
  const opened = openDb(await roleUrl(url, role), { max: 2 });
  addCleanup(() => opened.destroy());
  return opened;
}

/** Takes a lock and keeps it for no longer than its transaction. Rejects when another transaction holds it. */
const takeOnce = (pool: Pool, { take }: Lock) =>
  pool.transaction().execute(async (trx) => {
    await limitLockWaits(trx, 100);
    await take(trx);
  });

describe.each(Object.entries(locks))("the lock of %s", (_name, lock) => {
  test("cannot be held by a reader, who may take every advisory lock", async () => {
    await reader.query("select pg_advisory_lock(hashtextextended($1, 0)), pg_advisory_lock(hashtext($1))", [
      lock.former,
    ]);
    await takeOnce(await openAs(lock.role), lock);
  });

  test("is held until the transaction ends, and a second transaction waits for it", async () => {
    const pool = await openAs(lock.role);
    await pool.transaction().execute(async (trx) => {
      await lock.take(trx);
      await expect(takeOnce(pool, lock)).rejects.toMatchObject(TIMED_OUT);
    });
    await takeOnce(pool, lock);
  });
});

test("payers of different locks do not wait for each other", async () => {
  await db.transaction().execute(async (trx) => {
    await lockPayers(trx, ["0xa", "0xb"]);
    await db.transaction().execute((other) => lockPayers(other, ["0xc", "0xd"]));
  });
});

test("transactions that name the same payers in opposite orders do not deadlock", async () => {
  const payers = Array.from({ length: 100 }, (_, index) => `0x${index}`);
  const accept = (mine: string[]) => db.transaction().execute((trx) => lockPayers(trx, mine, 60_000));
  for (let round = 0; round < 10; round += 1) await Promise.all([accept(payers), accept(payers.toReversed())]);
});

test("a payer whose row is missing is reported, and nothing is accepted without a lock", async () => {
  const deleted = db.transaction().execute(async (trx) => {
    await sql`delete from payer_lock`.execute(trx);
    await lockPayers(trx, ["0xa"]);
  });
  await expect(deleted).rejects.toThrow("the table payer_lock lacks rows");
});

test("a reader that holds the advisory locks of the same names stops neither an audited change nor a report", async () => {
  for (const name of ["audit_entry", "destination reports"])
    await reader.query("select pg_advisory_lock(hashtextextended($1, 0))", [name]);
  await insertAuditEntries(db, [{ ...entry, at: new Date() }]);
  expect(await db.transaction().execute(lockReports)).toBe(true);
});

test.each([
  "select from named_lock for update",
  "select from named_lock for key share",
  "select from payer_lock for key share",
  "select from ledger_group for key share",
  "select lock_audit_chain()",
  "select try_lock_destination_reports()",
  "select lock_name('audit chain')",
  "select lock_payers('{0xa}')",
  "select lock_inventory('a')",
  "select lock_reconciliation('a')",
  "select lock_exception(1)",
  "select lock_logins()",
])("a reader may not run: %s", async (statement) => {
  await expect(reader.query(statement)).rejects.toMatchObject(NOT_ALLOWED);
});

test("one worker reports at a time, and the next one when it has committed", async () => {
  await db.transaction().execute(async (first) => {
    expect(await lockReports(first)).toBe(true);
    expect(await db.transaction().execute(lockReports)).toBe(false);
  });
  expect(await db.transaction().execute(lockReports)).toBe(true);
});

test("a lock whose row is missing is an error, and no lock that another worker has", async () => {
  const lost = await openTestDb(1);
  await execute(lost.url, "delete from named_lock");
  await expect(lost.db.transaction().execute(lockReports)).rejects.toThrow("lacks the destination reports");
  await expect(insertAuditEntries(lost.db, [{ ...entry, at: new Date() }])).rejects.toThrow("lacks the audit chain");
});
