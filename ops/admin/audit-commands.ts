import { readFileSync } from "node:fs";
import { type Command, InvalidArgumentError } from "commander";
import { z } from "zod";
import type { StoredEntry } from "../../db/audit-chain.ts";
import { listAuditEntries, readAuditEntries } from "../../db/queries/audit-entries.ts";
import type { AuditHead } from "../../db/queries/audit-heads.ts";
import { verifyAudit } from "../../payments/maintenance/verify-audit.ts";
import { type AddAction, describeEach, UsageError, wholeNumber } from "./command.ts";

/** Adds the commands that read, verify and export the audit log. */
export function addAuditCommands(program: Command, addAction: AddAction): void {
  const audit = program
    .command("audit")
    .description("the log of every change that a key, an operator or a worker made");
  addAction(
    audit
      .command("list")
      .description("list entries, newest first")
      .option("--day <date>", "only of this day, UTC", day)
      .option("--subject <id>", "only about this object")
      .option("--actor <id>", "only by this key or operator")
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
      .command("export")
      .description("print the entries of a day as JSON lines, oldest first, with all that their hashes cover")
      .requiredOption("--day <date>", "the day, UTC", day),
    async (context, _args, { day }) => {
      const value = (await readAuditEntries(context.db, { day })).map(toJson);
      return { value, lines: value.map((entry) => JSON.stringify(entry)) };
    },
  );
}

const toJson = (entry: StoredEntry) => ({
  ...entry,
  at: entry.at.toISOString(),
  hash: entry.hash.toString("hex"),
});

const headLine = z.object({ day: z.iso.date(), sequence: z.int(), hash: z.string().regex(/^[0-9a-f]{64}$/) });

function readHeads(file: string): AuditHead[] {
  const lines = readFileSync(file, "utf8").split("\n");
  return lines.filter(Boolean).map((line, index) => {
    const parsed = headLine.safeParse(parseJson(line));
    if (!parsed.success) throw new UsageError(`--heads: line ${index + 1} is not a head of the audit log`);
    return parsed.data;
  });
}

function parseJson(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

function day(text: string): string {
  if (!z.iso.date().safeParse(text).success) throw new InvalidArgumentError("expected a date such as 2026-03-31");
  return text;
}
