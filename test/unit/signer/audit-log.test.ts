import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Registry } from "prom-client";
import { afterAll, describe, expect, test } from "vitest";
import { readHeadLines } from "../../../runtime/audit-head-lines.ts";
import { createLog } from "../../../runtime/log.ts";
import { createMetrics } from "../../../runtime/metrics.ts";
import { appendEntry, ownActor, readEntries, workerActor } from "../../../signer/audit/entries.ts";
import { exportHeads, readAuditHead, setLogAges } from "../../../signer/audit/heads.ts";
import { recordLimits } from "../../../signer/audit/limits-changes.ts";
import { sealRecords } from "../../../signer/audit/seal-records.ts";
import { verifyLog } from "../../../signer/audit/verify-log.ts";
import { claimDestinations } from "../../../signer/claim-destinations.ts";
import { insertColdTransfer } from "../../../signer/cold-transfers.ts";
import { createStore } from "../../../signer/create-store.ts";
import { type Limits, openLimits } from "../../../signer/limits.ts";
import { insertDeposits, insertPayout } from "../../../signer/records.ts";
import { signText, writeStatement } from "../../../signer/statements.ts";
import { inStoreTransaction, openStore, type Store } from "../../../signer/store.ts";
import { makeApprovalKey } from "../../support/approval-key.ts";

const asset = `eip155:31337/erc20:0x${"a1".repeat(20)}`;
const [old, fresh, treasury] = ["d1", "d2", "c1"].map((byte) => `0x${byte.repeat(20)}`) as [string, string, string];
const merchantId = "mrch_1";
const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const operator = makeApprovalKey();
const folder = mkdtempSync(join(tmpdir(), "signer-log-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A signer with a deposit, a payout and, on the next day, a destination that an operator has rejected. */
function setUp(file = ":memory:") {
  let now = Date.parse("2026-03-01T10:00:00Z");
  const clock = () => new Date(now);
  const advance = (ms: number) => {
    now += ms;
  };
  const store = createStore(file, { command: "init", at: clock() });
  const limits: Limits = {
    paused: false,
    destinationWaitingHours: 72,
    assets: {},
    operators: [{ name: "ana", publicKey: operator.publicKey }],
  };
  const log = createLog({ level: "silent", role: "test" });
  const caller = workerActor("worker-1");
  const metrics = createMetrics(new Registry(), "signer");
  const deps = { store, readLimits: () => limits, deployment: "test", log, metrics, now: clock, caller };
  const nothing = { destinations: [], statements: [], approvalKeys: [], revokedKeys: [] };
  const claim = (receiver: string) =>
    claimDestinations(deps, { ...nothing, destinations: [{ merchantId, asset, receiver, state: "requested" }] });
  const pay = (number: number) => {
    const place = { chain: "eip155:31337", txHash: `0x${number}`, logIndex: 0, asset, amount: 10n, payer: old };
    const paid = { merchantId, paymentId: `pay_${number}` };
    const payout = {
      nonce: `0x${number}`,
      kind: "settlement",
      treasury,
      asset,
      amount: 10n,
      counted: 10n,
      receiver: old,
    };
    inStoreTransaction(store, () => {
      insertDeposits(store, [{ ...place, ...paid, blockNumber: number }], clock());
      insertPayout(store, { ...payout, merchantId, paymentId: null }, clock());
    });
  };
  claim(old);
  pay(1);
  pay(2);
  sealRecords(deps);
  advance(DAY);
  claim(fresh);
  const subject = { action: "reject destination", merchantId, asset, receiver: fresh } as const;
  const text = writeStatement(subject, { deployment: "test", at: clock() });
  const statement = { text, signer: "ana", signature: signText(operator.privateKey, text) };
  claimDestinations(deps, { ...nothing, statements: [statement] });
  const findings = (exported: Parameters<typeof verifyLog>[1] = []) => verifyLog(store, exported).findings;
  return { store, deps, advance, claim, pay, findings };
}

/** Changes the store as someone does who can write its file: its triggers do not stop them. */
function tamper(store: Store, statement: string) {
  const triggers = store.prepare("select name from sqlite_master where type = 'trigger'").all();
  for (const { name } of triggers) store.exec(`drop trigger ${String(name)}`);
  store.exec(`pragma foreign_keys = off; ${statement}`);
}

describe("the signer's audit log", () => {
  test("says who has decided what, and when", () => {
    const { store, findings } = setUp();
    const entries = readEntries(store, { after: undefined, limit: 100 });
    expect(entries.map(({ actor_kind, actor_id, action }) => `${actor_kind} ${actor_id}: ${action}`)).toEqual([
      expect.stringMatching(/^operator uid \d+: store\.created$/),
      "worker worker-1: destination.claimed",
      "signer signer: records.sealed",
      "worker worker-1: destination.claimed",
      "operator ana: destination.rejected",
    ]);
    expect(entries.at(-1)).toMatchObject({
      day: "2026-03-02",
      sequence: 2,
      actor_address: operator.publicKey,
      before: expect.stringContaining(fresh),
      after: expect.stringContaining("reject destination"),
    });
    expect(findings()).toEqual([]);
  });

  test.each([
    ["a changed entry", "update audit_entry set actor_id = 'eve' where id = 2", "entry 2026-03-01/2: changed"],
    ["a removed entry", "delete from audit_entry where id = 2", "entry 2026-03-01/2: missing"],
    [
      "an entry that was removed from the end",
      "delete from audit_entry where id = 5",
      "row destination_event/1: has no entry",
    ],
    ["a rejection that was removed", "delete from destination_event", "row destination_event/1: missing"],
    [
      "a changed receiver",
      `update destination set receiver = '${treasury}' where id = 1`,
      "row destination/1: changed",
    ],
    ["a removed payout", "delete from payout where id = 2", "rows payout/1 to payout/2: changed or missing"],
    ["a changed deposit", "update deposit set amount = '99'", "rows deposit/1 to deposit/2: changed or missing"],
  ])("%s is found", (_title, statement, finding) => {
    const { store, findings } = setUp();
    tamper(store, statement);
    expect(findings()).toContain(finding);
  });

  test("a log whose end was removed together with what it says differs from the exported heads", async () => {
    const { store, deps, advance, findings } = setUp();
    advance(DAY);
    const lines: string[] = [];
    await exportHeads(deps, async (line) => void lines.push(line));
    const exported = readHeadLines(lines.join("\n"), "signer");
    if ("problem" in exported) throw new Error(exported.problem);
    expect(exported.map(({ day, sequence }) => `${day}/${sequence}`)).toEqual(["2026-03-01/3", "2026-03-02/2"]);
    expect(findings(exported)).toEqual([]);
    tamper(
      store,
      `delete from audit_entry where id > 3; delete from audit_head where day > '2026-03-01';
      delete from destination_event; delete from destination where id = 2`,
    );
    expect(findings()).toEqual([]);
    expect(findings(exported)).toEqual(["entry 2026-03-02/1: missing", "entry 2026-03-02/2: missing"]);
  });

  test("a head is exported until the sink accepts it, and once", async () => {
    const { deps, advance } = setUp();
    advance(DAY);
    await expect(exportHeads(deps, () => Promise.reject(new Error("the sink is down")))).rejects.toThrow("down");
    const lines: string[] = [];
    await exportHeads(deps, async (line) => void lines.push(line));
    await exportHeads(deps, async (line) => void lines.push(line));
    expect(lines.map((line) => (JSON.parse(line) as { log: string; day: string }).day)).toEqual([
      "2026-03-01",
      "2026-03-02",
    ]);
  });

  test("the ages of a head that is not exported, and of an entry that no head covers, grow until it is", async () => {
    const { store, deps, advance, claim } = setUp();
    const metrics = createMetrics(new Registry(), "signer");
    const ages = async () => {
      setLogAges({ ...deps, metrics });
      const gauges = await Promise.all([metrics.signerHeadAgeSeconds.get(), metrics.signerEntryAgeSeconds.get()]);
      return gauges.map(({ values }) => Number(values[0]?.value) / 3_600);
    };
    expect(await ages()).toEqual([0, 24]);
    await exportHeads(deps, undefined);
    advance(HOUR);
    expect(await ages()).toEqual([1, 1]);
    await exportHeads(deps, async () => undefined);
    expect(await ages()).toEqual([0, 1]);
    // A clock that is wrong for a moment begins a later day, which takes all entries from then on.
    advance(300 * DAY);
    claim(treasury);
    expect(readEntries(store, { after: undefined, limit: 100 }).at(-1)?.day).toBe("2026-12-27");
    await exportHeads(deps, async () => undefined);
    advance(-300 * DAY);
    claim(old);
    advance(3 * DAY);
    await exportHeads(deps, async () => undefined);
    expect(await ages()).toEqual([0, 72]);
  });

  test("a day that has ended takes no more entries, whatever the clock says", async () => {
    const { store, deps, advance, claim, findings } = setUp();
    advance(DAY);
    await exportHeads(deps, undefined);
    advance(-2 * DAY);
    claim(old);
    claim(fresh);
    expect(readEntries(store, { after: undefined, limit: 100 }).at(-1)?.day).toBe("2026-03-03");
    expect(findings()).toEqual([]);
  });

  test("an older copy of the store lacks the entry that was reported from the newer one", () => {
    const file = join(folder, "store.sqlite");
    const { store, deps, claim } = setUp(file);
    store.exec("pragma wal_checkpoint(truncate)");
    copyFileSync(file, `${file}.copy`);
    claim(old);
    claim(fresh);
    const { head } = readAuditHead(deps, null);
    if (!head) throw new Error("the log is empty");
    expect(readAuditHead(deps, head)).toEqual({ head, knownHash: head.hash });
    const copy = openStore(`${file}.copy`);
    expect(readAuditHead({ ...deps, store: copy }, head).knownHash).toBeNull();
    copy.close();
  });

  test("a verification beside a signer that runs does not report what the signer writes meanwhile", () => {
    const file = join(folder, "verified-beside.sqlite");
    const { claim, findings } = setUp(file);
    const other = openStore(file);
    const prepare = other.prepare.bind(other);
    let claims = 0;
    other.prepare = (text) => {
      // The entries have been read, and the rows have not.
      if (text === "select * from destination order by id") {
        claim(`0x${"e1".repeat(20)}`);
        claims += 1;
      }
      return prepare(text);
    };
    const before = verifyLog(other, []);
    expect([before.findings, claims]).toEqual([[], 1]);
    other.prepare = prepare;
    expect(verifyLog(other, [])).toMatchObject({ findings: [], entries: before.entries + 1 });
    expect([findings(), other.isTransaction]).toEqual([[], false]);
    other.close();
  });

  test("a change without its entry cannot commit, nor an entry without its change", () => {
    const { store } = setUp();
    const at = new Date();
    const entry = { actor: ownActor, action: "x", subject: "y", before: null, after: null, at };
    expect(() => appendEntry(store, entry)).toThrow("transaction");
    const count = () => verifyLog(store, []).entries;
    const before = count();
    const transfer = { treasury, asset, number: 1, amount: 5n, receiver: old };
    const failing = () =>
      inStoreTransaction(store, () => {
        insertColdTransfer(store, transfer, at);
        throw new Error("the process fails here");
      });
    expect(failing).toThrow("fails here");
    expect([count(), store.prepare("select count(*) as rows from cold_transfer").get()]).toEqual([before, { rows: 0 }]);
    store.exec("create trigger broken before insert on audit_entry begin select raise(abort, 'no entry'); end");
    expect(() => inStoreTransaction(store, () => insertColdTransfer(store, transfer, at))).toThrow("no entry");
    expect(store.prepare("select count(*) as rows from cold_transfer").get()).toEqual({ rows: 0 });
  });

  test("deposits and payouts are sealed once an hour, and unsealed ones cause no finding", () => {
    const { store, deps, advance, pay, findings } = setUp();
    const seals = () =>
      readEntries(store, { after: undefined, limit: 100 }).filter(({ action }) => action === "records.sealed").length;
    pay(3);
    advance(-DAY + HOUR / 2);
    sealRecords(deps);
    expect(seals()).toBe(1);
    expect(findings()).toEqual([]);
    advance(HOUR / 2);
    sealRecords(deps);
    sealRecords(deps);
    expect(seals()).toBe(2);
    tamper(store, "update payout set amount = '11' where id = 3");
    expect(findings()).toEqual(["rows payout/3 to payout/3: changed or missing"]);
  });
});

test("each content of the limits file is recorded before it decides, also one that was written while no signer ran", () => {
  const { store, deps, findings } = setUp();
  const file = join(folder, "limits.jsonc");
  const open = () => openLimits(file, { log: deps.log, observe: recordLimits(deps) });
  const states = () =>
    store
      .prepare("select state from limits_file order by id")
      .all()
      .map(({ state }) => state);
  const read = open();
  expect(read()).toBeUndefined();
  writeFileSync(file, '{"paused": false, "assets": {}}');
  expect(read()).toMatchObject({ paused: false });
  read();
  writeFileSync(file, '{"paused": true, "assets": {}}');
  read();
  expect(states()).toEqual(["unusable", "valid", "paused"]);
  open()();
  expect(states()).toHaveLength(3);
  writeFileSync(file, '{"paused": false, "assets": {}}');
  // Inside a transaction, as when a transfer to the cold address is authorized: a rollback forgets no change.
  const restarted = open();
  const rolledBack = () =>
    inStoreTransaction(store, () => {
      restarted();
      throw new Error("rolled back");
    });
  expect(rolledBack).toThrow("rolled back");
  expect(states()).toHaveLength(3);
  restarted();
  expect(states().at(-1)).toBe("valid");
  expect(findings()).toEqual([]);
});
