import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { parse } from "yaml";
import type { Prometheus } from "../dashboards/start-prometheus.ts";
import { readRunbooks } from "./read-runbooks.ts";
import { type Outcome, runChecks, runRepair } from "./run-steps.ts";
import type { RunbookCase } from "./runbook-case.ts";
import type { TestBed } from "./test-bed.ts";

type Alert = { alert?: string; expr: string; for?: string };
type Rules = { groups: { rules: Alert[] }[] };

/** What following a runbook has shown. */
export type Followed = {
  /** Seconds until the alert's expression was true, and until it was false again; undefined when it did not happen in time. */
  trueAfter?: number | undefined;
  falseAfter?: number | undefined;
  /** Whether the expression was false only with windows of 30 seconds: the alert itself ends when its window has passed. */
  staysForWindow: boolean;
  /** What went wrong; empty when the runbook leads through the fault. */
  problems: string[];
};

const ALERT_WITHIN_MS = 180_000;
const END_WITHIN_MS = 120_000;
/** Longest wait for an alert after its `for` has passed, milliseconds. */
const FIRES_WITHIN_MS = 30_000;
/** How often the expression has to be false, once a second, before it counts: a restarted process has no series for a moment. */
const FALSE_IN_ROW = 8;

const rules = parse(readFileSync(new URL("../../ops/prometheus/alerts.yml", import.meta.url), "utf8")) as Rules;
const alerts = new Map(rules.groups.flatMap((group) => group.rules).map((rule) => [rule.alert, rule]));
const runbooks = new Map(readRunbooks().map((one) => [one.name, one]));

/** Injects a fault, waits for its alert, runs the runbook's steps, ends the fault, and waits for the end of the alert. */
export async function followRunbook(
  bed: TestBed,
  followed: RunbookCase,
  print: (line: string) => void,
): Promise<Followed> {
  const alert = alerts.get(followed.alert);
  const runbook = runbooks.get(followed.runbook);
  if (!alert || !runbook?.text.includes(`\`${followed.alert}\``))
    throw new Error(`there is no alert ${followed.alert} with the runbook ${followed.runbook}`);
  const { expr } = alert;
  const problems: string[] = [];
  const note = ({ step, output, failed }: Outcome) => {
    print(`  > ${step}\n${output.slice(0, 1_500).replaceAll(/^/gm, "    ")}`);
    if (failed) problems.push(`failed: ${step}`);
  };
  if (await isTrue(bed.prometheus, expr)) problems.push(`${followed.alert} was true before the fault`);
  const injected = (await followed.inject(bed)) ?? {};
  try {
    const trueAfter = await waitFor(() => isTrue(bed.prometheus, expr), followed.withinMs ?? ALERT_WITHIN_MS);
    if (trueAfter === undefined) problems.push(`${followed.alert} never became true`);
    print(`  ${followed.alert} is ${trueAfter === undefined ? "NOT true" : `true after ${trueAfter} s`}`);
    if (trueAfter !== undefined && !(await fires(bed.prometheus, alert)))
      problems.push(`${followed.alert} was true and did not fire`);
    const checks = await runChecks(bed, runbook);
    for (const outcome of checks) note(outcome);
    if (followed.shows && !checks.some(({ output }) => followed.shows?.test(output)))
      problems.push(`no step shows ${followed.shows}`);
    await injected.end?.();
    delete injected.end;
    for (const [index, command] of (followed.repair ?? []).entries())
      note(await runRepair(bed.stack, runbook, { command, values: (await injected.values?.(index)) ?? {} }));
    const { falseAfter, staysForWindow } = await waitForEnd(bed.prometheus, expr, followed);
    if (falseAfter === undefined) problems.push(`${followed.alert} stayed true`);
    print(`  it is ${falseAfter === undefined ? "STILL true" : `false after ${falseAfter} s`}`);
    await injected.result?.();
    return { trueAfter, falseAfter, staysForWindow, problems };
  } finally {
    await injected.end?.();
    await injected.cleanUp?.();
  }
}

/**
 * Waits until an alert fires whose `for` is at most three minutes, as another rule may end its condition before. Returns false when it
 * does not. Alerts with a longer one are not waited for.
 */
async function fires(prometheus: Prometheus, { alert, for: lasts = "" }: Alert): Promise<boolean> {
  const minutes = /^([123])m$/.exec(lasts)?.[1];
  if (minutes === undefined) return true;
  const firing = `ALERTS{alertname="${alert}",alertstate="firing"}`;
  const withinMs = Number(minutes) * 60_000 + FIRES_WITHIN_MS;
  return (await waitFor(() => isTrue(prometheus, firing), withinMs)) !== undefined;
}

/** Waits until an alert's expression is false, or would be with windows of 30 seconds, several times in a row. */
async function waitForEnd(
  prometheus: Prometheus,
  expr: string,
  { brief = expr.replaceAll(/\[\d+[mhd](:\d+s)?\]/g, "[30s$1]"), endsWithinMs = END_WITHIN_MS }: RunbookCase,
): Promise<Pick<Followed, "falseAfter" | "staysForWindow">> {
  let inRow = 0;
  const hasEnded = async () => {
    const isOver = !(await isTrue(prometheus, expr)) || (brief !== expr && !(await isTrue(prometheus, brief)));
    inRow = isOver ? inRow + 1 : 0;
    return inRow === FALSE_IN_ROW;
  };
  const falseAfter = await waitFor(hasEnded, endsWithinMs);
  return { falseAfter, staysForWindow: falseAfter !== undefined && (await isTrue(prometheus, expr)) };
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
