import { readFileSync } from "node:fs";
import { type Command, InvalidArgumentError } from "commander";
import { z } from "zod";
import { listAuditEntries, readAuditEntries } from "../../db/queries/audit-entries.ts";
import { acceptSignerLog } from "../../payments/maintenance/signer-log.ts";
import { verifyAudit } from "../../payments/maintenance/verify-audit.ts";
import type { AuditHead, StoredEntry } from "../../runtime/audit-chain.ts";
import { readHeadLines } from "../../runtime/audit-head-lines.ts";
import { type AddAction, describeEach, toJsonLine, UsageError, unwrap, wholeNumber } from "./command.ts";

/** Adds the commands that read, verify and export the audit log. */
export function addAuditCommands(program: Command, addAction: AddAction): void {
  const audit = program
    .command("audit")
    .description("the log of every change that a key, an operator, a worker or a database login made");
  addAction(
    audit
      .command("list")
      .description("list entries, newest first")
      .option("--day <date>", "only of this day, UTC", day)
      .option("--subject <id>", "only about this object")
      .option("--actor <id>", "only by this key, operator or database login")
      .option("--limit <number>", "most entries to list", wholeNumber, "50"),
    async (context, _args, { day, subject, actor, limit }) => {
      const entries = await listAuditEntries(context.db, { day, subject, actor, limit: Number(limit) });
      const value = entries.map(toJson);
      return { value, lines: describeEach(value) };
    },
  );
  addAction(
    audit
      .command("verify")
      .description("recompute the hash of every entry, and name entries that were changed or are missing")
      .option("--day <date>", "only of this day, UTC", day)
      .option("--heads <file>", "heads that AUDIT_SINK received, one JSON object a line, to compare with")
      .addHelpText(
        "after",
        "\nExits with 1 when something is wrong. Without --heads it trusts the heads in the database, which a superuser can\nrewrite together with the log.",
      ),
    async (context, _args, { day, heads }) => {
      const exported = heads === undefined ? [] : readHeads(heads);
      const value = await verifyAudit(context, { day, exported });
      const { entries, head, findings } = value;
      const newest = head ? `, the newest is ${head.day}/${head.sequence} with hash ${head.hash}` : "";
      return {
        value,
        lines: [
          `${entries} entries${newest}`,
          ...findings.map(({ day, sequence, problem }) => `${day}/${sequence}: ${problem}`),
        ],
        ...(findings.length > 0 ? { refusal: "the audit log is not as it was written" } : {}),
      };
    },
  );
  addAction(
    audit
      .command("accept-signer")
      .description("accept the audit log that the signer has now, after its store was rebuilt")
      .addHelpText(
        "after",
        "\nThe alert SignerLogContradicted says that the log was shortened or changed (ops/runbooks/signer-log.md).",
      ),
    async (context) => ({ value: unwrap(await acceptSignerLog(context, { actor: await context.actor("approver") })) }),
  );
  addAction(
    audit
      .command("export")
      .description("print the entries of a day as JSON lines, oldest first, with all that their hashes cover")
      .requiredOption("--day <date>", "the day, UTC", day),
    async (context, _args, { day }) => {
      const value = (await readAuditEntries(context.db, { day })).map(toJson);
      return { value, lines: value.map(toJsonLine) };
    },
  );
}

const toJson = (entry: StoredEntry) => ({
  ...entry,
  at: entry.at.toISOString(),
  hash: entry.hash.toString("hex"),
});

function readHeads(file: string): AuditHead[] {
  const heads = readHeadLines(readText(file), "service");
  if ("problem" in heads) throw new UsageError(`--heads: ${heads.problem}`);
  return heads;
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new UsageError(`--heads: the file ${file} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

function day(text: string): string {
  if (!z.iso.date().safeParse(text).success) throw new InvalidArgumentError("expected a date such as 2026-03-31");
  return text;
}
