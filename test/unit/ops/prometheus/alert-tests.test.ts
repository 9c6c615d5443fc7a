import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { runbooks } from "../../../../ops/bull-board/runbooks.ts";

const folder = new URL("../../../../ops/prometheus/", import.meta.url);
const read = (path: string) => readFileSync(new URL(path, folder), "utf8");

type Alert = { summary: RegExp; severity: string; runbook: string };

/** Returns a value after a key as YAML's plain or quoted text. */
const readText = (key: string, text: string): string =>
  (new RegExp(`${key}: +("?)(.+?)\\1(?:, runbook_url| }|$)`, "m").exec(text)?.[2] ?? "").trim();

const alerts = new Map(
  read("alerts.yml")
    .split("- alert: ")
    .slice(1)
    .map((text): [string, Alert] => {
      const parts = readText("summary", text).split(/\{\{.*?\}\}/);
      const escaped = parts.map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
      const summary = new RegExp(`^${escaped.join(".*")}$`);
      const runbook = /runbook_url: "\{\{ \$externalLabels\.board \}\}\/runbooks\/([\w-]+)"/.exec(text)?.[1] ?? "";
      return [/^\w+/.exec(text)?.[0] ?? "", { summary, runbook, severity: /severity: (\w+)/.exec(text)?.[1] ?? "" }];
    }),
);

/** The checks of one promtool file: an alert's name, and the text of the alerts that it expects. */
const checks = (file: string) =>
  read(`tests/${file}`)
    .split("eval_time: ")
    .filter((text) => text.includes("alertname: "))
    .map((text) => ({
      name: /alertname: (\w+)/.exec(text)?.[1] ?? "",
      expected: text.split("- exp_labels: ").slice(1),
    }));

test.each(readdirSync(new URL("tests/", folder)))(
  "%s expects the texts, severities and runbooks of alerts that exist",
  (file) => {
    expect(checks(file).length).toBeGreaterThan(0);
    for (const { name, expected } of checks(file)) {
      const alert = alerts.get(name);
      if (!alert) throw new Error(`there is no alert ${name}`);
      for (const text of expected) {
        expect(readText("summary", text), name).toMatch(alert.summary);
        expect(/severity: (\w+)/.exec(text)?.[1], name).toBe(alert.severity);
        expect(/runbook_url: https:\/\/board\.example\.test\/runbooks\/([\w-]+)/.exec(text)?.[1], name).toBe(
          alert.runbook,
        );
      }
    }
  },
);

test("every alert has a case in which it fires, one in which it does not, and a runbook that the board serves", () => {
  const all = readdirSync(new URL("tests/", folder)).flatMap(checks);
  const names = [...alerts.keys()];
  const named = (list: typeof all) => new Set(list.map(({ name }) => name));
  const [firing, silent] = [
    all.filter((one) => one.expected.length > 0),
    all.filter((one) => one.expected.length === 0),
  ];
  expect(names.filter((name) => !named(firing).has(name))).toEqual([]);
  // The Watchdog always fires.
  expect(names.filter((name) => !named(silent).has(name))).toEqual(["Watchdog"]);
  expect(names.filter((name) => !((alerts.get(name)?.runbook ?? "") in runbooks))).toEqual([]);
});

test("Alertmanager's routes and inhibitions name alerts and severities that exist", () => {
  const routes = readFileSync(new URL("../alertmanager/alertmanager.yml", folder), "utf8");
  const named = [...routes.matchAll(/alertname=~?"([^"]+)"/g)].flatMap(([, text = ""]) => text.split(/[|()]/));
  const known = [...alerts.keys()];
  expect(named.length).toBeGreaterThan(10);
  const exists = (name: string) =>
    known.some((alert) => alert === name || alert.endsWith(name) || alert.startsWith(name.replace(/\.\*$/, "")));
  expect(named.filter((name) => name !== "" && !exists(name))).toEqual([]);
  const severities = [...routes.matchAll(/severity="(\w+)"/g)].map(([, severity]) => severity);
  expect(severities.toSorted()).toEqual(["none", "page"]);
});

test.each([
  ["a fee above the ceiling", "LaneAtFeeCeiling", /raise maxFeePerGas/],
  ["a paused token", "TokenPaused", /tell the merchants/],
  ["an upgraded token", "TokenUpgraded", /run preflight/],
  ["a blocked treasury", "TreasuryBlocked", /ask the issuer/],
  ["a blocked payer", "PaymentsHeld", /their rows contain the reason/],
  ["a blocked payee", "PayoutsHeld", /their rows contain the reason/],
  ["a halted chain", "ChainHalted", /check the network's status and wait/],
  ["a reorg of final blocks", "FinalBlocksReverted", /raise the finality/],
])("the alert for %s names the remedy", (_, name, remedy) => {
  expect(alerts.get(name)?.summary.source.replaceAll("\\", "")).toMatch(remedy);
});
