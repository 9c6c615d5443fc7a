import { rm } from "node:fs/promises";
import { createProgress } from "../../local/progress.ts";
import { makeScratch } from "../../local/scratch-folder.ts";
import { readArguments } from "../../runtime/command-arguments.ts";
import { buildService } from "../support/built-service.ts";
import { addCleanup, runCleanups } from "../support/cleanups.ts";
import { allCases } from "./cases/all-cases.ts";
import { type Followed, followRunbook } from "./follow-runbook.ts";
import { startTestBed } from "./test-bed.ts";

const names = [...new Set(allCases.map(({ runbook }) => runbook))];
const help = `usage: npm run runbooks -- [options]

Starts a local stack and follows the runbooks of ops/runbooks on it, one after the other: injects a fault, waits until the
expression of its alert is true and the alert fires (where its "for" is at most three minutes), runs the runbook's queries and
commands as they are written, and waits until the expression is false. Exits with 0 when all of this happened, with 1 when something did not, and with 2 for wrong arguments.

  --only NAME   only this runbook; may be repeated (default: all, which takes about an hour and a half)
  --help        print this text

${names.join(", ")}`;

const { values, refuse } = readArguments(help, { only: { type: "string", multiple: true, default: [] } });
const unknown = values.only.filter((name) => !names.includes(name));
if (unknown.length > 0) refuse(`there is no fault for the runbook ${unknown.join(", ")}`);
const chosen = allCases.filter(({ runbook }) => values.only.length === 0 || values.only.includes(runbook));

for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => void runCleanups().finally(() => process.exit(130)));

const progress = createProgress();
const rows: string[] = [];
let failures = 0;
try {
  await buildService();
  const dir = await makeScratch("runbooks");
  addCleanup(() => rm(dir, { recursive: true, force: true }));
  const bed = await startTestBed(dir, progress.say);
  for (const [index, one] of chosen.entries()) {
    progress.print(`\n## ${index + 1} of ${chosen.length}: ${one.runbook}: ${one.what}`);
    const followed = await followRunbook(bed, one, progress.print).catch(
      (error: unknown): Followed => ({ staysForWindow: false, problems: [String(error)] }),
    );
    for (const problem of followed.problems) progress.print(`  PROBLEM: ${problem}`);
    failures += Math.min(1, followed.problems.length);
    rows.push(writeRow(one, followed));
  }
} finally {
  await runCleanups();
}
progress.print(`\n| runbook | alert | fault | true after | false after |\n${rows.join("\n")}`);
process.exit(failures === 0 ? 0 : 1);

/** Returns a row of the table in docs/operations/runbooks-followed.md. */
function writeRow(
  { runbook, alert, what }: (typeof allCases)[number],
  { trueAfter, falseAfter, staysForWindow, problems }: Followed,
): string {
  const seconds = (after: number | undefined) => (after === undefined ? "never" : `${after} s`);
  const end = `${seconds(falseAfter)}${staysForWindow ? ", then its window" : ""}`;
  const faults = problems.length > 0 ? ` **${problems.join("; ")}**` : "";
  return `| [${runbook}](../../ops/runbooks/${runbook}.md) | ${alert} | ${what}${faults} | ${seconds(trueAfter)} | ${end} |`;
}
