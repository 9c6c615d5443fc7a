import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { execute } from "../../local/execute-sql.ts";
import type { Stack } from "../../local/stack.ts";
import type { Runbook } from "./read-runbooks.ts";

/** What a step of a runbook returned: the rows of a query, or what a command printed. */
export type Outcome = { step: string; output: string; failed: boolean };

const run = promisify(execFile);
const COMMAND_WITHIN_MS = 120_000;
/** Commands of `npm run admin --` that only read. */
const READS = /^[a-z-]+ (list|show|status|blocked|balances|verify|check)\b/;
/** What stands for a value of the operator's. */
const HAS_PLACEHOLDER = /[<…A-Z]/;

/** Runs the queries of a runbook, and its commands that only read and need no value of the operator's, as they are written. */
export async function runChecks(stack: Stack, { queries, adminCommands, text }: Runbook): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const query of queries) outcomes.push(await runQuery(stack, query));
  const commands = adminCommands.filter((line) => READS.test(line) && !HAS_PLACEHOLDER.test(line));
  for (const line of new Set(commands)) outcomes.push(await runProgram(stack, "ops/admin/main.ts", line.split(" ")));
  // These exit with 1 when they find something.
  if (/^ *npm run reconcile$/m.test(text) || text.includes("`npm run reconcile`"))
    outcomes.push(await runProgram(stack, "ops/reconcile/main.ts", [], { worstCode: 1 }));
  if (text.includes("`npm run preflight -- --networks FILE`")) {
    const args = ["--networks", join(stack.dir, "networks.json")];
    outcomes.push(await runProgram(stack, "ops/preflight/main.ts", args, { worstCode: 1 }));
  }
  return outcomes;
}

/**
 * Runs a command that the runbook names.
 * @param args.values the values of its placeholders, such as `<id>`; that of an option which is followed by `…` is named by the option
 */
export async function runRepair(
  stack: Stack,
  { adminCommands, name }: Runbook,
  { command, values }: { command: string; values: Readonly<Record<string, string>> },
): Promise<Outcome> {
  if (!adminCommands.includes(command)) throw new Error(`${name} has no command "${command}"`);
  const words = command.split(" ");
  const filled = words.map((word, index) => {
    if (word.startsWith("--")) return word;
    return values[word === "…" ? (words[index - 1] ?? "") : word] ?? word;
  });
  const open = filled.find((word) => /^[<…]/.test(word));
  if (open !== undefined) throw new Error(`no value for ${open} of "${command}"`);
  return await runProgram(stack, "ops/admin/main.ts", filled);
}

async function runQuery(stack: Stack, query: string): Promise<Outcome> {
  const step = query.replaceAll(/\s+/g, " ");
  try {
    const rows = await execute(stack.file().postgresUrl, query);
    return { step, output: `${rows.length} rows ${JSON.stringify(rows.slice(0, 3))}`, failed: false };
  } catch (error) {
    return { step, output: String(error), failed: true };
  }
}

async function runProgram(
  stack: Stack,
  program: string,
  args: string[],
  { worstCode }: { worstCode: number } = { worstCode: 0 },
): Promise<Outcome> {
  const step = [program, ...args].join(" ");
  const env = { ...process.env, STACK_DIR: stack.dir };
  const line = ["local/with-stack-env.ts", program, ...args];
  const { stdout, stderr, code } = await run(process.execPath, line, { env, timeout: COMMAND_WITHIN_MS }).then(
    (done) => ({ ...done, code: 0 }),
    (error: { stdout?: string; stderr?: string; code?: number }) => ({ stdout: "", stderr: "", code: 1, ...error }),
  );
  return { step, output: `exit code ${code} ${stdout}${stderr}`.trim(), failed: code > worstCode };
}
