import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, onTestFinished, test, vi } from "vitest";
import type { SignerConfig } from "../../../runtime/config.ts";
import { runAuditCommand } from "../../../signer/audit/audit-command.ts";
import { readAuditHead } from "../../../signer/audit/heads.ts";
import { createStore } from "../../../signer/create-store.ts";
import { insertDeposits, insertPayout } from "../../../signer/records.ts";
import { openStore, type Store } from "../../../signer/store.ts";

const runbook = readFileSync(new URL("../../../ops/runbooks/signer-log.md", import.meta.url), "utf8");
const [, compare = ""] = /^ *(grep -vxFf newer\.jsonl .+)$/m.exec(runbook) ?? [];
const [, lastOfBoth = ""] = /`(grep -xFf newer\.jsonl [^`]+)`/.exec(runbook.replaceAll(/\s+/g, " ")) ?? [];
const account = `0x${"c1".repeat(20)}`;
const asset = `eip155:31337/erc20:0x${"a1".repeat(20)}`;
const base = mkdtempSync(join(tmpdir(), "signer-copy-"));
afterAll(() => rmSync(base, { recursive: true, force: true }));

let minutes = 0;
/** Seals all records, as a worker's question for the newest entry does. */
const ask = (store: Store) =>
  readAuditHead({ store, now: () => new Date(Date.parse("2026-03-01T10:00:00Z") + ++minutes * 60_000) }, null);

function deposit(store: Store, number: number): void {
  const place = { chain: "eip155:31337", txHash: `0x${number}`, logIndex: 0, asset, amount: 10n, payer: account };
  const paid = { merchantId: "mrch_1", paymentId: `pay_${number}` };
  insertDeposits(store, [{ ...place, ...paid, blockNumber: number }], new Date(0));
}

function pay(store: Store, number: number): void {
  const money = { treasury: account, asset, amount: 10n, counted: 10n, receiver: account };
  const payout = { ...money, nonce: `0x${number}`, kind: "settlement", merchantId: "mrch_1", paymentId: null };
  insertPayout(store, payout, new Date(0));
}

/** Returns what an entry has sealed. */
const sealedBy = (line: string) => JSON.parse((JSON.parse(line) as { after: string }).after) as unknown;

/** Returns a newer store and an older copy of it, which was made before the newer one signed payout 2. */
function makeBoth() {
  const folder = mkdtempSync(join(base, "both-"));
  const [newerFile, olderFile] = [join(folder, "newer.sqlite"), join(folder, "older.sqlite")];
  const newer = createStore(newerFile, { command: "init", at: new Date("2026-03-01T10:00:00Z") });
  deposit(newer, 1);
  pay(newer, 1);
  ask(newer);
  newer.exec("pragma wal_checkpoint(truncate)");
  copyFileSync(newerFile, olderFile);
  const older = openStore(olderFile);
  deposit(newer, 2);
  pay(newer, 2);
  ask(newer);
  /** Runs a command of the runbook on what `signer audit list` prints of both stores. Returns what the entries that it prints have sealed. */
  const run = (command: string): unknown[] => {
    for (const [name, file] of Object.entries({ newer: newerFile, older: olderFile })) {
      const lines: string[] = [];
      const log = vi.spyOn(console, "log").mockImplementation((line: string) => void lines.push(line));
      onTestFinished(() => log.mockRestore());
      runAuditCommand({ SIGNER_STORE: file } as SignerConfig, ["list"]);
      log.mockRestore();
      writeFileSync(join(folder, `${name}.jsonl`), `${lines.join("\n")}\n`);
    }
    const text = execFileSync("sh", ["-c", `${command} || true`], { cwd: folder, encoding: "utf8" });
    return text.split("\n").filter(Boolean).map(sealedBy);
  };
  return { newer, older, run };
}

test("the runbook's comparison prints nothing of an older copy that has signed nothing", () => {
  const { older, run } = makeBoth();
  ask(older);
  expect(run(compare)).toEqual([]);
});

test("the runbook's comparison shows that an older copy has signed a payout that the newer store lacks", () => {
  const { older, run } = makeBoth();
  deposit(older, 3);
  pay(older, 3);
  ask(older);
  expect(run(compare)).toMatchObject([{ payout: { last: 2 } }]);
  expect(run(lastOfBoth)).toMatchObject([{ payout: { last: 1 } }]);
});

test("the runbook's comparison shows that an older copy has only recorded deposits", () => {
  const { older, run } = makeBoth();
  deposit(older, 3);
  ask(older);
  const [both] = run(lastOfBoth) as [object];
  expect(both).toMatchObject({ deposit: { last: 1 } });
  expect(run(compare)).toEqual([{ ...both, deposit: { last: 2, hash: expect.any(String) } }]);
});
