import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { privateKeyToAccount } from "viem/accounts";
import { readArguments } from "../../runtime/command-arguments.ts";
import { waitFor } from "../support/wait-for.ts";
import { startLoad } from "./load.ts";

const help = `usage: npm run compose:chaos -- [options]

Pays on the running trial of compose.local.yml (docs/operations/compose.md) while each of its containers is restarted, and
then killed. Waits after each until it is healthy and more payments have succeeded. Prints what the clients saw, and what the
database and the reconciliation say at the end. Exits with 1 when a request that may be repeated failed, a payment was lost,
or the ledger and the chain differ. Needs the user root, to kill processes of containers. SIGINT ends it after the present step.

  --url URL      the proxy (default http://127.0.0.1:8080). At 127.0.0.1 the engine accepts connections for a proxy that is
                 down, so requests without a key fail that other hosts' could repeat: prefer this machine's own address
  --buyers N     payments at the same time (default 10, at most 20)
  --between N    payments that succeed between two steps (default 12)
  --actions A,B  restart, kill, or both (default both)
  --skip A,B     services that are left alone (default grafana,anvil: Anvil can lose a block)
  --help         print this text`;

const { values, refuse } = readArguments(help, {
  url: { type: "string", default: "http://127.0.0.1:8080" },
  buyers: { type: "string", default: "10" },
  between: { type: "string", default: "12" },
  actions: { type: "string", default: "restart,kill" },
  skip: { type: "string", default: "grafana,anvil" },
});
for (const name of ["buyers", "between"] as const)
  if (!/^[1-9]\d{0,3}$/.test(values[name])) refuse(`--${name} takes a whole number`);
const actions = (["restart", "kill"] as const).filter((action) => values.actions.split(",").includes(action));
if (actions.length !== values.actions.split(",").length) refuse("--actions takes restart, kill, or both");

const execute = promisify(execFile);
const docker = async (...args: string[]) => (await execute("docker", args)).stdout.trim();
const compose = (...args: string[]) => docker("compose", ...args);

type Container = { Name: string; Service: string };
const inspect = (name: string, format: string) => docker("inspect", "--format", format, name);
const startOf = (name: string) => inspect(name, "{{.State.StartedAt}}");
const healthOf = (name: string) =>
  inspect(name, "{{if .State.Health}}{{.State.Health.Status}}{{else}}{{.State.Status}}{{end}}");

const callers = JSON.parse(await compose("exec", "-T", "api", "cat", "/var/lib/pay/networks/callers.json"));
const buyers = callers.buyers
  .slice(0, Number(values.buyers))
  .map(({ privateKey }: { privateKey: `0x${string}` }) => privateKeyToAccount(privateKey));
const chain = callers.destination.split(":", 2).join(":");
const load = startLoad({ baseUrl: values.url, caller: callers.live }, chain, buyers);

const listed = (await compose("ps", "--format", "json")).split("\n").map((line) => JSON.parse(line) as Container);
const skipped = values.skip.split(",");
const containers = listed.filter(({ Service }) => !skipped.includes(Service)).map(({ Name }) => Name);

/** Does `action` to a container under load. Waits until it is healthy and more payments have succeeded, and prints a row. */
async function step(action: "restart" | "kill", name: string): Promise<void> {
  const before = { ...load.counts };
  const last = await startOf(name);
  const begun = performance.now();
  if (action === "restart") await docker("restart", name);
  // The end of its process is a crash to the engine, which starts the container again.
  else process.kill(Number(await inspect(name, "{{.State.Pid}}")), "SIGKILL");
  const started = performance.now();
  const isUp = async () => (await startOf(name)) !== last && ["healthy", "running"].includes(await healthOf(name));
  await waitFor(isUp, { within: 120_000, what: `${name} to be healthy`, every: 250 });
  const healthy = performance.now();
  const wanted = load.counts.succeeded + Number(values.between);
  await waitFor(() => load.counts.succeeded >= wanted, { within: 300_000, what: "more payments", every: 100 });
  const seconds = (from: number, to: number) => ((to - from) / 1_000).toFixed(1);
  const changes = Object.entries(load.counts).map(
    ([key, count]) => `${key} ${count - before[key as keyof typeof before]}`,
  );
  console.log(
    `${new Date().toISOString().slice(11, 19)} ${action} ${name}: ${seconds(begun, started)} s, healthy after ${seconds(started, healthy)} s, payments ${seconds(healthy, performance.now())} s; ${changes.join(", ")}`,
  );
}

let isInterrupted = false;
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => (isInterrupted = true));
for (const action of ["restart", "kill"] as const)
  for (const name of actions.includes(action) ? containers : []) if (!isInterrupted) await step(action, name);
await load.stop();

const sql = `select 'payments ' || state || ': ' || count(*) from payment where id >= '${load.created.toSorted()[0] ?? ""}' group by state
  union all select 'settlements ' || state || ': ' || count(*) from settlement group by state
  union all select 'transfers ' || state || ': ' || count(*) from transfer group by state`;
const query = `PGPASSWORD="$(cat /run/secrets/postgres-password)" psql -h 127.0.0.1 -U pay -d pay -Atc "$0"`;
const ask = async () => (await compose("exec", "-T", "postgres", "sh", "-c", query, sql)).split("\n");
// Payouts leave after the payments.
const isPaid = async () =>
  !(await ask()).some((row) => /^(settlements (?!paid)|transfers (?!confirmed|ended))/.test(row));
await waitFor(isPaid, { within: 180_000, what: "the payouts", every: 1_000 });
const rows = await ask();
console.log([JSON.stringify(load.counts), ...rows, ...load.failures].join("\n"));
const reconcile = ["run", "--rm", "-T", "--entrypoint", "node", "admin", "/app/dist/reconcile.js"];
const result = await compose(...reconcile).catch((error) => error);
console.log(result);
const isLost = !rows.includes(`payments succeeded: ${load.created.length}`);
process.exit(load.counts.failed > 0 || isLost || result instanceof Error ? 1 : 0);
