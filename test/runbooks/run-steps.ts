import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { createPayment } from "../../local/buyer-client.ts";
import { execute } from "../../local/execute-sql.ts";
import type { Stack } from "../../local/stack.ts";
import { shopOf } from "./bed-actions.ts";
import type { Runbook } from "./read-runbooks.ts";
import type { TestBed } from "./test-bed.ts";

/** What a step of a runbook returned: the rows of a query, or what a command printed. */
export type Outcome = { step: string; output: string; failed: boolean };

const run = promisify(execFile);
const COMMAND_WITHIN_MS = 120_000;
/** Commands of `npm run admin --` that only read. */
const READS = /^[a-z-]+ (list|show|status|blocked|balances|verify|check)\b/;
/** What stands for a value of the operator's. */
const HAS_PLACEHOLDER = /[<…]|\b[A-Z]{3,}\b/;
const PREFLIGHT = "preflight -- --networks FILE";
/** For a command that exits with 1 when it finds something. */
const FINDS = { worstCode: 1 };

/** Runs the queries of a runbook, and its commands that only read and need no value of the operator's, as they are written. */
export async function runChecks(bed: TestBed, { queries, text, ...runbook }: Runbook): Promise<Outcome[]> {
  const { stack } = bed;
  const files = { networks: join(stack.dir, "networks.json"), heads: bed.auditSink };
  // Only where a step names one: some faults keep payments from being created.
  const payment = text.includes("pay_…")
    ? await createPayment(shopOf(bed), { referenceId: `step of ${runbook.name}`, cents: "500" })
    : "";
  const fill = (line: string) => fillCommand(line, { ...files, pages: bed.pages.url, payment });
  const outcomes: Outcome[] = [];
  for (const query of queries) outcomes.push(await runQuery(stack, query));
  const commands = runbook.adminCommands.filter((line) => READS.test(line)).map(fill);
  for (const line of new Set(commands.filter((line) => !HAS_PLACEHOLDER.test(line))))
    outcomes.push(await runProgram(stack, "ops/admin/main.ts", line, FINDS));
  if (/^ *npm run reconcile$/m.test(text) || text.includes("`npm run reconcile`"))
    outcomes.push(await runProgram(stack, "ops/reconcile/main.ts", "", FINDS));
  if (text.includes(`npm run ${PREFLIGHT}`))
    outcomes.push(await runProgram(stack, "ops/preflight/main.ts", fill("--networks FILE"), FINDS));
  for (const line of new Set(runbook.signerCommands.map(fill)))
    outcomes.push(await runProgram(stack, "signer/main.ts", line, FINDS));
  return outcomes;
}

/** Returns a command of a runbook with the files, the public address and a payment of a stack in place of the text's. */
export const fillCommand = (
  line: string,
  { networks, heads, pages, payment }: { networks: string; heads: string; pages: string; payment: string },
): string =>
  line
    .replace("--networks FILE", `--networks ${networks}`)
    .replace(/--heads (FILE|heads\.jsonl)/, `--heads ${heads}`)
    .replace("--url https://…", `--url ${pages}`)
    .replace("--payment pay_…", `--payment ${payment}`);

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
  line: string | readonly string[],
  { worstCode }: { worstCode: number } = { worstCode: 0 },
): Promise<Outcome> {
  const args = typeof line === "string" ? line.split(" ").filter(Boolean) : line;
  const step = [program, ...args].join(" ");
  const signer = {
    SIGNER_STORE: join(stack.dir, "signer.sqlite"),
    SIGNER_LIMITS_FILE: join(stack.dir, "limits.jsonc"),
  };
  const env = { ...process.env, STACK_DIR: stack.dir, SIGNER_LISTEN: "unix:unused", ...signer };
  const { stdout, stderr, code } = await run(process.execPath, ["local/with-stack-env.ts", program, ...args], {
    env,
    timeout: COMMAND_WITHIN_MS,
  }).then(
    (done) => ({ ...done, code: 0 }),
    (error: { stdout?: string; stderr?: string; code?: number }) => ({ stdout: "", stderr: "", code: 1, ...error }),
  );
  return { step, output: `exit code ${code} ${stdout}${stderr}`.trim(), failed: code > worstCode };
}
