import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { parse } from "yaml";
import { createProgress } from "../../local/progress.ts";
import { makeScratch } from "../../local/scratch-folder.ts";
import { startStack } from "../../local/stack.ts";
import { readSettings, withFreePorts } from "../../local/stack-settings.ts";
import { listTargets } from "../dashboards/run-dashboards.ts";
import { type Prometheus, startPrometheus } from "../dashboards/start-prometheus.ts";
import { buildService, builtService } from "../support/built-service.ts";
import { faults } from "./faults.ts";
import { readRunbooks } from "./read-runbooks.ts";
import { runSteps } from "./run-steps.ts";

// `npm run runbooks` starts a stack, injects the fault of one runbook after the other, waits until the expression of its alert is
// true, runs the runbook's queries and commands as they are written, and ends the fault. Arguments name single runbooks.

type Rules = { groups: { rules: { alert?: string; expr: string }[] }[] };

/** Longest wait for an alert's expression, and for its end, milliseconds. */
const ALERT_WITHIN_MS = 180_000;
const END_WITHIN_MS = 120_000;

const progress = createProgress();
const wanted = process.argv.slice(2);
const chosen = faults.filter(({ runbook }) => wanted.length === 0 || wanted.includes(runbook));
const rules = parse(await readFile(new URL("../../ops/prometheus/alerts.yml", import.meta.url), "utf8")) as Rules;
const exprs = new Map(rules.groups.flatMap((group) => group.rules).map(({ alert, expr }) => [alert, expr]));
const runbooks = new Map(readRunbooks().map((one) => [one.name, one]));

await buildService();
const dir = await makeScratch("runbooks");
const settings = await withFreePorts(
  readSettings({ ...process.env, STACK_DIR: join(dir, "stack"), WORKERS: "1", LOG_LEVEL: "warn" }),
);
const stack = await startStack(settings, progress.say, { build: builtService });
try {
  const prometheus = await startPrometheus(listTargets(stack));
  try {
    await pause(5_000);
    for (const fault of chosen)
      await follow(prometheus, fault).catch((error: unknown) => progress.print(`  FAILED: ${error}`));
  } finally {
    await prometheus.close();
  }
} finally {
  await stack.stop();
  await rm(dir, { recursive: true, force: true });
}
process.exit(0);

async function follow(
  prometheus: Prometheus,
  { runbook, alert, what, inject }: (typeof faults)[number],
): Promise<void> {
  const expr = exprs.get(alert);
  const text = runbooks.get(runbook);
  if (expr === undefined || !text) throw new Error(`there is no alert ${alert} or runbook ${runbook}`);
  progress.print(`\n## ${runbook}: ${what}`);
  const before = await isTrue(prometheus, expr);
  const end = await inject(stack);
  const firing = await waitFor(() => isTrue(prometheus, expr), ALERT_WITHIN_MS);
  progress.print(
    `  ${alert}: ${before ? "true before; " : ""}${firing === undefined ? "NEVER true" : `true after ${firing} s`}`,
  );
  for (const { step, outcome } of await runSteps(stack, text)) progress.print(`  > ${step}\n    ${outcome}`);
  await end();
  const ended = await waitFor(async () => !(await isTrue(prometheus, expr)), END_WITHIN_MS);
  progress.print(`  ended ${ended === undefined ? "not within two minutes" : `after ${ended} s`}`);
}

async function isTrue(prometheus: Prometheus, expr: string): Promise<boolean> {
  const now = Date.now() / 1_000;
  return (await prometheus.queryRange(expr, { from: now, to: now })).length > 0;
}

/** Returns after how many seconds a condition became true, or undefined when it did not in time. */
async function waitFor(isMet: () => Promise<boolean>, withinMs: number): Promise<number | undefined> {
  const begun = Date.now();
  while (Date.now() - begun < withinMs) {
    if (await isMet()) return Math.round((Date.now() - begun) / 1_000);
    await pause(1_000);
  }
  return undefined;
}
