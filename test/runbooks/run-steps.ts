import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { execute } from "../../local/execute-sql.ts";
import type { Stack } from "../../local/stack.ts";
import type { Runbook } from "./read-runbooks.ts";

/** What a step of a runbook returned: the number of rows of a query, or the end and the first lines of a command. */
export type Outcome = { step: string; outcome: string };

const run = promisify(execFile);

/** Runs the queries of a runbook, and its commands that need no value of the operator's, exactly as they are written. */
export async function runSteps(stack: Stack, { queries, adminCommands, text }: Runbook): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const query of queries) {
    const step = query.replaceAll(/\s+/g, " ").slice(0, 120);
    const outcome = await execute(stack.file().postgresUrl, query).then(
      (rows) => `${rows.length} rows ${JSON.stringify(rows[0] ?? {}).slice(0, 200)}`,
      (error: unknown) => `FAILED ${String(error)}`,
    );
    outcomes.push({ step, outcome });
  }
  const commands = adminCommands.filter((line) => /^[a-z-]+ [a-z-]+( --[a-z-]+ [a-z0-9-]+)*$/.test(line));
  const programs = commands.map((line) => ["ops/admin/main.ts", ...line.split(" ")]);
  if (text.includes("`npm run reconcile`") || text.includes("\n   npm run reconcile\n"))
    programs.push(["ops/reconcile/main.ts"]);
  for (const args of programs) {
    const env = { ...process.env, STACK_DIR: stack.dir };
    const outcome = await run(process.execPath, ["local/with-stack-env.ts", ...args], { env, timeout: 120_000 }).then(
      ({ stdout }) => `0: ${stdout.slice(0, 600)}`,
      (error: unknown) => `FAILED ${String(error).slice(0, 600)}`,
    );
    outcomes.push({ step: args.join(" "), outcome });
  }
  return outcomes;
}
