import { tmpdir } from "node:os";
import { expect, test } from "vitest";
import { ConfigError } from "../../../runtime/config.ts";
import { createLog } from "../../../runtime/log.ts";
import { createStore } from "../../../signer/create-store.ts";
import { createRepeatedSteps } from "../../../signer/repeated-steps.ts";
import { inReadTransaction, inStoreTransaction, openStore } from "../../../signer/store.ts";

const at = new Date("2026-03-01T10:00:00Z");
const DISK_FULL = "database or disk is full";

/** Returns a store in which noting a run fails as a full disk does: SQLite ends the transaction itself. */
function openFull() {
  const store = createStore(":memory:", { command: "init", at });
  store.exec(`create temp trigger full before insert on last_run begin select raise(rollback, '${DISK_FULL}'); end`);
  const note = () => store.prepare("insert into last_run (id, at) values (1, 1)").run();
  return { store, note, repair: () => store.exec("drop trigger full") };
}

test.each([
  ["written", inStoreTransaction],
  ["read", inReadTransaction],
] as const)(
  "an error that has ended the transaction is thrown as it is when the store is %s",
  (_how, inTransaction) => {
    const { store, note, repair } = openFull();
    expect(() => inTransaction(store, note)).toThrow(DISK_FULL);
    repair();
    expect(inStoreTransaction(store, note)).toMatchObject({ changes: 1 });
  },
);

test("an error that has not ended the transaction rolls it back", () => {
  const { store, note, repair } = openFull();
  repair();
  const fail = () => {
    note();
    throw new Error("no reason");
  };
  expect(() => inStoreTransaction(store, fail)).toThrow("no reason");
  expect(store.prepare("select at from last_run").all()).toEqual([]);
});

test("a store that cannot be opened is named with the reason", () => {
  expect(() => openStore(tmpdir())).toThrow(ConfigError);
  expect(() => openStore(tmpdir())).toThrow(`${tmpdir()} cannot be used: unable to open database file`);
});

test("a step that fails is logged once until it succeeds or fails otherwise, and keeps no other step from running", () => {
  const lines: string[] = [];
  const log = createLog({ level: "info", role: "signer" }, { write: (line) => void lines.push(line) });
  const { store, note, repair } = openFull();
  let others = 0;
  const run = createRepeatedSteps(log, {
    "note the run": () => inStoreTransaction(store, note),
    others: () => {
      others += 1;
    },
  });
  for (let count = 0; count < 3; count++) run();
  expect(others).toBe(3);
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ step: "note the run", err: { message: DISK_FULL } }]);
  repair();
  run();
  run();
  expect(lines).toHaveLength(2);
  expect(lines[1]).toContain("UNIQUE constraint failed");
});
