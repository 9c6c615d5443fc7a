import { join } from "node:path";
import { onInterrupt } from "../../local/interrupt.ts";
import { createProgress } from "../../local/progress.ts";
import { startStack } from "../../local/stack.ts";
import { readSettings, withFreePorts } from "../../local/stack-settings.ts";
import { readArguments } from "../../runtime/command-arguments.ts";
import { buildService, builtService } from "../support/built-service.ts";
import { runCleanups } from "../support/cleanups.ts";
import { type DrillResult, runDrill } from "./run-drill.ts";

const help = `usage: npm run drill -- [options]

Rehearses the loss of everything on a stack of its own: takes a base backup and archives the WAL while buyers pay on EVM and
Solana, kills and deletes Postgres, flushes Redis and kills every process, restores Postgres to a moment before the end, starts
the service by the steps of docs/operations/drill.md, and resolves what the restored database has forgotten. Prints what was
forgotten, found on the chain and adopted. Exits with 1 when anything is lost, doubled or unexplained.

  --payments N     payments that have succeeded before the base backup (default 10)
  --recoverable N  seconds of payments between the backup and the moment of the restore (default 6)
  --lost N         seconds of payments after that moment, which the restore forgets (default 6)
  --help           print this text

It takes about three minutes, and longer with more payments: the shop creates four of them per second. The logs of the processes
are in .local/drill/logs.`;

const { values, refuse } = readArguments(help, {
  payments: { type: "string", default: "10" },
  recoverable: { type: "string", default: "6" },
  lost: { type: "string", default: "6" },
});
for (const name of ["payments", "recoverable", "lost"] as const)
  if (!/^[1-9]\d{0,3}$/.test(values[name])) {
    refuse(`--${name} takes a whole number`);
  }

// The drill destroys its services, so it never uses those of the environment.
for (const name of ["DATABASE_URL", "REDIS_URL"]) delete process.env[name];
const progress = createProgress();
const interrupted = new AbortController();
const begin = async () => {
  await buildService();
  // The signer would hold the payouts of assigned money until operators have approved them.
  const settings = readSettings({ SIGNER: "embedded", ...process.env });
  const own = await withFreePorts({ ...settings, STACK_DIR: join(settings.STACK_DIR, "drill") });
  return startStack(own, progress.say, { signal: interrupted.signal, build: builtService });
};
const starting = begin();
const stopAll = async () => {
  await (await starting.catch(() => undefined))?.stop();
  await runCleanups();
};
onInterrupt(async () => {
  interrupted.abort();
  await stopAll();
  process.exit(130);
});

let isClean = false;
try {
  const options = {
    payments: Number(values.payments),
    recoverable: Number(values.recoverable),
    lost: Number(values.lost),
  };
  isClean = report(await runDrill(await starting, options, progress));
} catch (error) {
  progress.print(`The drill failed: ${error instanceof Error ? error.stack : error}`);
}
if (!interrupted.signal.aborted) {
  await stopAll();
  process.exit(isClean ? 0 : 1);
}

/** Prints the result. Returns true when nothing is lost, doubled or unexplained. */
function report({ lines, violations, reconciliation }: DrillResult): boolean {
  const { print } = progress;
  const row = (cells: readonly (string | number)[]) =>
    `  ${cells.map((cell, index) => (index === 0 ? String(cell).padEnd(20) : String(cell).padStart(9))).join(" ")}`;
  print(`\n${row(["", "known", "restored", "forgotten", "found"])}`);
  for (const { what, before, restored, forgotten, found, others } of lines)
    print(`${row([what, before, restored, forgotten, found])}${others && `  ${others}`}`);
  print(`\nnpm run reconcile:\n${reconciliation}`);
  for (const violation of violations) print(violation);
  print(violations.length === 0 ? "Nothing is lost, doubled or unexplained." : `${violations.length} violations.`);
  return violations.length === 0;
}
