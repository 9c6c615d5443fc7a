import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { openDb } from "../../../../db/open.ts";
import { listAuditEntries } from "../../../../db/queries/audit-entries.ts";
import {
  acceptSignerLog,
  isSignerLogContradicted,
  recordSignerHead,
} from "../../../../payments/maintenance/signer-log.ts";
import { createLog } from "../../../../runtime/log.ts";
import { createMetrics } from "../../../../runtime/metrics.ts";
import { appendEntry, ownActor } from "../../../../signer/audit/entries.ts";
import { readAuditHead } from "../../../../signer/audit/heads.ts";
import { createStore } from "../../../../signer/create-store.ts";
import { insertPayout } from "../../../../signer/records.ts";
import { inStoreTransaction, openStore, type Store } from "../../../../signer/store.ts";
import { addCleanup } from "../../../support/cleanups.ts";
import { unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";
import { createDatabase } from "../../../support/test-database.ts";

const folder = mkdtempSync(join(tmpdir(), "signer-head-"));
addCleanup(async () => rmSync(folder, { recursive: true, force: true }));
let files = 0;

async function setUp() {
  const db = openDb(await createDatabase(), { max: 1 });
  addCleanup(() => db.destroy());
  let time = Date.parse("2026-03-01T12:00:00Z");
  const now = () => new Date(time);
  const advance = (ms: number) => {
    time += ms;
  };
  files += 1;
  const file = join(folder, `${files}.sqlite`);
  const store = createStore(file, { command: "init", at: now() });
  addCleanup(async () => store.close());
  const decide = (of: Store, subject: string) =>
    inStoreTransaction(of, () => {
      appendEntry(of, { actor: ownActor, action: "decided", subject, before: null, after: null, at: now() });
    });
  const log = createLog({ level: "silent", role: "worker" });
  const metrics = createMetrics(new Registry(), "worker");
  /** Returns when the worker has last compared, Unix seconds; 0 before the first time. */
  const comparedAt = async () => (await metrics.signerLogCompared.get()).values[0]?.value;
  /** Reports as the worker does each minute, while this store is the signer's; undefined while the signer does not answer. */
  const report = (of: Store | undefined) =>
    recordSignerHead({
      db,
      now,
      log,
      metrics,
      signer: { readAuditHead: async ({ known }) => (of ? readAuditHead({ store: of, now }, known) : undefined) },
    });
  const entries = async () => {
    const found = await listAuditEntries(db, { day: undefined, subject: "signer-log", actor: undefined, limit: 100 });
    return found.map(({ action, after }) =>
      `${action} ${(JSON.parse(after ?? "") as { problem?: string }).problem ?? ""}`.trim(),
    );
  };
  const isContradicted = () => isSignerLogContradicted({ db });
  decide(store, "first");
  decide(store, "second");
  await report(store);
  return { db, now, advance, file, store, decide, report, entries, isContradicted, comparedAt };
}

test("the newest entry of the signer's log is written to the audit log, once", async () => {
  const { store, decide, report, entries, isContradicted } = await setUp();
  await report(store);
  expect(await entries()).toEqual(["signer_log.reported"]);
  decide(store, "third");
  await report(store);
  expect(await entries()).toEqual(["signer_log.reported", "signer_log.reported"]);
  expect(await isContradicted()).toBe(false);
});

test("the metric of the last comparison stands still while the signer does not answer", async () => {
  const { now, advance, store, report, comparedAt } = await setUp();
  const first = now().getTime() / 1000;
  expect(await comparedAt()).toBe(first);
  advance(60_000);
  await report(undefined);
  expect(await comparedAt()).toBe(first);
  await report(store);
  expect(await comparedAt()).toBe(first + 60);
});

test("an older copy of the signer's store is noticed until the newer one is back", async () => {
  const { file, store, decide, report, entries, isContradicted } = await setUp();
  store.exec("pragma wal_checkpoint(truncate)");
  copyFileSync(file, `${file}.copy`);
  decide(store, "third");
  await report(store);
  const copy = openStore(`${file}.copy`);
  addCleanup(async () => copy.close());
  await report(copy);
  await report(copy);
  expect(await isContradicted()).toBe(true);
  expect((await entries())[0]).toBe("signer_log.contradicted shortened");
  expect(await entries()).toHaveLength(3);
  await report(store);
  expect(await isContradicted()).toBe(false);
});

test("an older copy that lacks only payouts is noticed, also when it has signed as many others since", async () => {
  const { now, file, store, report, entries, isContradicted } = await setUp();
  const pay = (of: Store, nonce: string) =>
    insertPayout(
      of,
      {
        ...{ nonce, kind: "settlement", treasury: "0x01", asset: "usdc", amount: 5n, counted: 5n },
        ...{ receiver: "0x02", merchantId: "mrch_1", paymentId: null },
      },
      now(),
    );
  pay(store, "0x01");
  await report(store);
  store.exec("pragma wal_checkpoint(truncate)");
  copyFileSync(file, `${file}.copy`);
  pay(store, "0x02");
  await report(store);
  await report(store);
  expect(await isContradicted()).toBe(false);
  const copy = openStore(`${file}.copy`);
  addCleanup(async () => copy.close());
  await report(copy);
  expect((await entries())[0]).toBe("signer_log.contradicted shortened");
  pay(copy, "0x03");
  await report(copy);
  expect((await entries())[0]).toBe("signer_log.contradicted changed");
  expect(await isContradicted()).toBe(true);
  await report(store);
  expect(await isContradicted()).toBe(false);
});

test("a log that was written anew is noticed, and is accepted by an operator only", async () => {
  const { db, now, file, report, decide, entries, isContradicted } = await setUp();
  const other = createStore(`${file}.other`, { command: "rebuild", at: now() });
  addCleanup(async () => other.close());
  await report(other);
  expect((await entries())[0]).toBe("signer_log.contradicted shortened");
  decide(other, "first");
  decide(other, "second");
  decide(other, "third");
  await report(other);
  expect((await entries())[0]).toBe("signer_log.contradicted changed");
  expect(await isContradicted()).toBe(true);
  unwrap(await acceptSignerLog({ db, now }, { actor: testActor }));
  expect(await isContradicted()).toBe(false);
  await report(other);
  expect((await entries())[0]).toBe("signer_log.accepted");
  expect(await acceptSignerLog({ db, now }, { actor: testActor })).toMatchObject({ ok: false });
});
