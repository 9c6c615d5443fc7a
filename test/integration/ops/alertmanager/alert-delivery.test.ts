import { readdirSync, readFileSync } from "node:fs";
import fastify from "fastify";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { serveRunbooks } from "../../../../ops/bull-board/serve-runbooks.ts";
import { type PostedAlert, startAlertmanager } from "../../../support/alertmanager.ts";
import { listen } from "../../../support/listen.ts";
import { waitFor } from "../../../support/wait-for.ts";

type Expected = { exp_labels: Record<string, unknown>; exp_annotations: Record<string, string> };
type RuleTests = { tests: { alert_rule_test?: { alertname: string; exp_alerts: Expected[] }[] }[] };

const board = fastify();
serveRunbooks(board);
await board.ready();
const boardUrl = await listen(board.server);
const { delivered, post } = await startAlertmanager();

/** The first alert of each name that promtool expects, as Prometheus sends it with the board's address. */
const alerts = new Map<string, PostedAlert>();
const folder = new URL("../../../../ops/prometheus/tests/", import.meta.url);
for (const file of readdirSync(folder)) {
  const { tests } = parse(readFileSync(new URL(file, folder), "utf8")) as RuleTests;
  for (const {
    alertname,
    exp_alerts: [first],
  } of tests.flatMap((one) => one.alert_rule_test ?? [])) {
    if (!first || alerts.has(alertname)) continue;
    const labels = Object.fromEntries(Object.entries(first.exp_labels).map(([name, value]) => [name, String(value)]));
    const { summary = "", runbook_url = "" } = first.exp_annotations;
    const annotations = { summary, runbook_url: runbook_url.replace("https://board.example.test", boardUrl) };
    alerts.set(alertname, { labels: { ...labels, alertname }, annotations });
  }
}

/** Returns an alert with other labels. */
function alert(alertname: string, labels: Record<string, string> = {}): PostedAlert {
  const found = alerts.get(alertname);
  if (!found) throw new Error(`promtool expects no alert ${alertname}`);
  return { ...found, labels: { ...found.labels, ...labels } };
}

/** Returns the notifications of an alert, by its labels. */
const received = ({ labels }: PostedAlert) =>
  delivered.filter((one) => Object.entries(labels).every(([name, value]) => one.labels[name] === value));
const arrival = (one: PostedAlert) =>
  waitFor(() => received(one).length > 0, { within: 20_000, what: `${one.labels["alertname"]} arrives` });

const receivers: Readonly<Record<string, string>> = { page: "/page", ticket: "/ticket", none: "/watchdog" };

test("every alert reaches the receiver of its severity, with a runbook that opens on the board and names it", async () => {
  const own = [...alerts.keys()].map((name, index) => {
    const { labels } = alert(name);
    const others = Object.keys(labels).filter((label) => label !== "alertname" && label !== "severity");
    return alert(name, Object.fromEntries(others.map((label) => [label, `${label}-${index}`])));
  });
  // These inhibit others whatever their labels are.
  const last = ["PaymentErrorBudgetBurnFast", "NoPaymentSucceeds"];
  const isLast = ({ labels }: PostedAlert) => last.includes(labels["alertname"] ?? "");
  const batches = [own.filter((one) => !isLast(one)), ...last.map((name) => [alert(name)])];
  for (const batch of batches) {
    await post(batch);
    await Promise.all(batch.map(arrival));
  }
  expect(own.length).toBeGreaterThan(60);
  for (const one of own) {
    const paths = new Set(received(one).map(({ path }) => path));
    expect([one.labels["alertname"], ...paths]).toEqual([
      one.labels["alertname"],
      receivers[one.labels["severity"] ?? ""],
    ]);
    const [first] = received(one);
    expect(first?.annotations["summary"]).toBe(one.annotations["summary"]);
    const opened = await fetch(first?.annotations["runbook_url"] ?? "");
    expect([opened.status, await opened.text()]).toEqual([200, expect.stringContaining(one.labels["alertname"] ?? "")]);
  }
});

test("endpoints that are all down send one page, and another chain's alerts arrive", async () => {
  const [cause, ...effects] = [
    "RpcAllDown",
    "RpcEndpointDown",
    "WatcherBehind",
    "ConfirmationsStopped",
    "LaneStuck",
    "EndpointsDisagree",
    "EndpointAgreementPending",
    "HistoryNotListed",
    "HistoryUnreadable",
    "PaymentsOverdue",
    "PaymentStuck",
  ].map((name) => alert(name, { chain: "dead", role: "worker" }));
  if (!cause) throw new Error("there is no cause");
  const elsewhere = alert("WatcherBehind", { chain: "alive" });
  // The signer's endpoints say nothing about what the workers do.
  const ofSigner = ["RpcAllDown", "RpcEndpointDown"].map((name) => alert(name, { chain: "alive", role: "signer" }));
  await post([cause, ...effects, ...ofSigner, elsewhere]);
  await Promise.all([cause, elsewhere].map(arrival));
  // Alerts that were posted later have arrived, so those that are inhibited would have too.
  const later = alert("WatcherBehind", { chain: "alive too" });
  await post([later]);
  await arrival(later);
  const ofDead = delivered.filter(({ labels }) => labels["chain"] === "dead").map(({ labels }) => labels["alertname"]);
  expect(new Set(ofDead)).toEqual(new Set(["RpcAllDown"]));
  const ofAlive = delivered
    .filter(({ labels }) => labels["chain"] === "alive")
    .map(({ labels }) => labels["alertname"]);
  expect(new Set(ofAlive)).toEqual(new Set(["RpcAllDown", "WatcherBehind"]));
});

test("server errors page also while no endpoint of one chain answers the api", async () => {
  const down = alert("RpcAllDown", { chain: "one of many", role: "api" });
  await post([down]);
  await arrival(down);
  const errors = alert("IngressErrorBudgetBurnFast", { while: "a chain is down" });
  await post([errors]);
  await arrival(errors);
});

test("payments that do not end page by themselves only where no alert names the cause", async () => {
  await post([alert("ConfirmationsStopped", { chain: "explained" })]);
  await arrival(alert("ConfirmationsStopped", { chain: "explained" }));
  const symptoms = ["PaymentsOverdue", "PaymentStuck"].map((name) => alert(name, { chain: "explained" }));
  const unexplained = alert("PaymentStuck", { chain: "unexplained" });
  await post([...symptoms, unexplained]);
  await arrival(unexplained);
  expect(symptoms.flatMap(received)).toEqual([]);
});

test("an alert that ends is reported as resolved to the receiver that got it", async () => {
  const one = alert("RpcAllDown", { chain: "recovers" });
  await post([one]);
  await arrival(one);
  await post([{ ...one, endsAt: new Date(Date.now() - 1_000).toISOString() }]);
  await waitFor(() => received(one).some(({ status }) => status === "resolved"), {
    within: 20_000,
    what: "the alert is reported as resolved",
  });
  expect(received(one).map(({ path, status }) => [path, status])).toEqual([
    ["/page", "firing"],
    ["/page", "resolved"],
  ]);
});
