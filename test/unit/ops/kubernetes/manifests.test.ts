import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { queueNames } from "../../../../queues/catalog.ts";
import {
  readAdminConfig,
  readApiConfig,
  readBoardConfig,
  readMigrateConfig,
  readSignerConfig,
  readWorkerConfig,
} from "../../../../runtime/config.ts";
import { programs } from "../../../../scripts/build.ts";
import { buildKustomization } from "../../../../scripts/build-kustomization.ts";
import { findNeeds } from "../../../../workers/queue-keys.ts";
import { knownVariables } from "../../../support/known-variables.ts";
import { testKeys } from "../../../support/test-deps.ts";

const root = new URL("../../../../", import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root), "utf8");
const build = (dir: string) => buildKustomization(fileURLToPath(new URL(`ops/kubernetes/${dir}`, root)));

const Named = z.looseObject({ name: z.string() });
const Container = z.looseObject({
  image: z.string(),
  args: z.array(z.string()).min(1),
  env: z.array(z.object({ name: z.string(), value: z.string() })),
  envFrom: z.array(z.object({ configMapRef: Named })).default([]),
  ports: z.array(z.object({ name: z.string(), containerPort: z.number() })).default([]),
  volumeMounts: z.array(z.looseObject({ name: z.string(), mountPath: z.string() })),
  resources: z.object({ requests: z.record(z.string(), z.string()), limits: z.object({ memory: z.string() }) }),
  securityContext: z.unknown(),
});
const Pod = z.looseObject({
  containers: z.tuple([Container]),
  volumes: z.array(z.looseObject({ name: z.string(), secret: z.object({ secretName: z.string() }).optional() })),
  securityContext: z.looseObject({ runAsUser: z.number() }),
  terminationGracePeriodSeconds: z.number().optional(),
});
const Workload = z.object({ metadata: Named, spec: z.looseObject({ template: z.object({ spec: Pod }) }) });

const small = build("overlays/small");
const production = build("overlays/production");
const jobs = [...build("migrate"), ...build("signer-init"), ...build("admin")];

/** Every pod of the overlays and jobs, by where it is and its name. */
const pods = Object.entries({ small, production, jobs, "data-keys": build("data-keys") }).flatMap(([place, all]) =>
  all
    .filter(({ kind }) => ["Deployment", "StatefulSet", "Job"].includes(kind))
    .map((one) => Workload.parse(one))
    .map(({ metadata, spec }) => ({ place, name: metadata.name, spec, pod: spec.template.spec })),
);
const cases = pods.map((one) => [`${one.place}: ${one.name}`, one] as const);
const settingsOf = (place: string) =>
  z
    .object({ data: z.record(z.string(), z.string()) })
    .parse((place === "small" ? small : production).find(({ kind }) => kind === "ConfigMap")).data;

const readers = {
  api: readApiConfig,
  worker: readWorkerConfig,
  "bull-board": readBoardConfig,
  signer: readSignerConfig,
  migrate: readMigrateConfig,
  admin: readAdminConfig,
  "data-keys": readAdminConfig,
};
/** The pods of the command line only wait: `kubectl exec` runs the commands in them. */
const roleOf = ({ place, name, pod }: (typeof pods)[number]) =>
  (name === "admin" ? (place === "jobs" ? name : place) : pod.containers[0].args[0]) as keyof typeof readers;
const config = read("runtime/config.ts");
const contents: Record<string, string> = {
  ...testKeys,
  DATABASE_URL: "postgres://db.example/pay",
  DATABASE_REPLICA_URL: "postgres://replica.example/pay",
  REDIS_URL: "rediss://redis.example:6379",
  REDIS_CA: "-----BEGIN CERTIFICATE-----",
  AUDIT_SINK: "https://audit.example/heads",
};

/** Returns the environment of a container, with the contents of the files that its variables name. */
function environmentOf(container: z.infer<typeof Container>, settings: Record<string, string>): Record<string, string> {
  const own = container.env.map(({ name, value }) => {
    const variable = name.replace(/_FILE$/, "");
    return knownVariables.has(name) ? [name, value] : [variable, contents[variable] ?? `no contents for ${name}`];
  });
  return { ...(container.envFrom.length > 0 ? settings : {}), ...Object.fromEntries(own) };
}

test.each(cases)("the code accepts the variables of %s", (_, one) => {
  const environment = environmentOf(one.pod.containers[0], settingsOf(one.place));
  expect(Object.keys(environment).filter((name) => !knownVariables.has(name))).toEqual([]);
  expect(readers[roleOf(one)](environment)).toBeTruthy();
});

/** Variables of compose.yml that the manifests leave out. */
const leftOut: Record<string, string[]> = {
  // A worker without it serves every queue.
  "small: worker": ["WORKER_QUEUES"],
  // It names the person who runs a command, so `kubectl exec` sets it.
  "small: admin": ["OPERATOR"],
  "small: data-keys": ["OPERATOR"],
  "production: admin": ["OPERATOR"],
  "production: data-keys": ["OPERATOR"],
};
const Compose = z.object({
  services: z.record(z.string(), z.object({ environment: z.record(z.string(), z.unknown()).default({}) })),
});
const { services } = Compose.parse(parse(read("compose.yml"), { merge: true }));

test.each(["small", "production"])("%s sets every variable that compose.yml sets for the same process", (place) => {
  for (const role of Object.keys(readers)) {
    const ofRole = pods.filter((one) => [place, "jobs", "data-keys"].includes(one.place) && roleOf(one) === role);
    const set = ofRole.flatMap(({ pod: { containers } }) => [
      ...containers[0].env.map(({ name }) => name),
      ...(containers[0].envFrom.length > 0 ? Object.keys(settingsOf(place)) : []),
    ]);
    const missing = Object.keys(services[role]?.environment ?? {}).filter((name) => !set.includes(name));
    expect([role, missing]).toEqual([role, leftOut[`${place}: ${role}`] ?? []]);
  }
});

test.each(cases)("files that the variables of %s name are in volumes that are mounted", (_, { pod }) => {
  const [{ env, volumeMounts }] = pod.containers;
  const paths = env.map(({ value }) => value).filter((value) => value.startsWith("/"));
  const isMounted = (path: string) => volumeMounts.some(({ mountPath }) => path.startsWith(`${mountPath}/`));
  expect(paths.filter((path) => !isMounted(path))).toEqual([]);
  expect(volumeMounts.map(({ name }) => name).toSorted()).toEqual(pod.volumes.map(({ name }) => name).toSorted());
});

test.each(cases)("%s has no more rights than the image needs", (_, { pod }) => {
  const uid = Number(/^USER (\d+):/m.exec(read("Dockerfile"))?.[1]);
  expect(pod).toMatchObject({
    automountServiceAccountToken: false,
    securityContext: { runAsNonRoot: true, runAsUser: uid, seccompProfile: { type: "RuntimeDefault" } },
  });
  expect(pod.containers[0].securityContext).toEqual({
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ["ALL"] },
  });
});

test("the commands, ports and probes are those of the image", () => {
  const commands = Object.keys(programs);
  const probes = read("runtime/probes.ts");
  const defaultPort = (pattern: RegExp) => Number(pattern.exec(config)?.[1]);
  const expected = {
    api: {
      http: defaultPort(/PORT: port\.default\((8080)\)/),
      metrics: defaultPort(/METRICS_PORT: port\.default\((\d+)\)/),
    },
    "bull-board": { http: defaultPort(/PORT: port\.default\((8081)\)/), metrics: 9464 },
    worker: { metrics: 9464 },
    signer: { signer: 8443, metrics: 9464 },
  };
  for (const { place, pod } of pods) {
    const [{ args, ports, ...container }] = pod.containers;
    const [command = ""] = args;
    expect([...commands, "sh"]).toContain(command);
    if (place === "jobs" || place === "data-keys") continue;
    const listening = Object.fromEntries(ports.map(({ name, containerPort }) => [name, containerPort]));
    expect([command, listening]).toEqual([command, expected[command as keyof typeof expected]]);
    for (const [probe, path] of [
      ["startupProbe", "/livez"],
      ["readinessProbe", "/readyz"],
      ["livenessProbe", "/livez"],
    ] as const) {
      expect(container[probe]).toMatchObject({ httpGet: { path, port: "metrics" } });
      expect(probes).toContain(`"${path}"`);
    }
  }
});

test("processes have the time to stop that they take", () => {
  const graces = new Map(pods.map(({ name, pod }) => [name, pod.terminationGracePeriodSeconds ?? 0]));
  const drainMs = Number(/DRAIN_MS: .*default\(([\d_]+)\)/.exec(config)?.[1]?.replaceAll("_", ""));
  for (const name of ["worker", "worker-chains"]) expect(graces.get(name)).toBeGreaterThanOrEqual(drainMs / 1_000 + 15);
  const api = read("api/main.ts");
  const [last, close] = ["LAST_REQUESTS_MS", "CLOSE_MS"].map((name) =>
    Number(new RegExp(`const ${name} = ([\\d_]+)`).exec(api)?.[1]?.replaceAll("_", "")),
  );
  const preStop = 8;
  expect(graces.get("api")).toBeGreaterThanOrEqual(preStop + ((last ?? 0) + (close ?? 0)) / 1_000 + 10);
});

const groups = pods
  .filter(({ place, name }) => place === "production" && name.startsWith("worker-"))
  .map(({ name, pod }) => ({ name, pod, env: new Map(pod.containers[0].env.map((one) => [one.name, one.value])) }));

test("the groups of workers serve every queue once, each with the keys that its queues need", () => {
  const served = groups.flatMap(({ env }) => env.get("WORKER_QUEUES")?.split(",") ?? []);
  expect(served.toSorted()).toEqual([...queueNames].toSorted());
  for (const { name, env, pod } of groups) {
    const queues = queueNames.filter((queue) => env.get("WORKER_QUEUES")?.split(",").includes(queue));
    const needs = ["eip155:1", "solana:1"].flatMap((chain) => [...findNeeds(queues, chain)]);
    const secrets = pod.volumes.flatMap(({ secret }) => secret?.secretName ?? []);
    expect([name, secrets.includes("lanes")]).toEqual([name, needs.includes("lanes")]);
    expect([name, secrets.includes("signer-client"), env.has("SIGNER")]).toEqual([
      name,
      needs.includes("signer"),
      needs.includes("signer"),
    ]);
    expect([name, secrets.includes("webhook-keys")]).toEqual([name, queues.includes("deliver-webhook")]);
  }
  const holders = pods.filter(({ pod }) => pod.volumes.some(({ secret }) => secret?.secretName === "treasury"));
  expect([...new Set(holders.map(({ name }) => name))]).toEqual(["signer"]);
});

const Trigger = z.looseObject({ type: z.string(), metadata: z.record(z.string(), z.string()) });
const Scaled = z.object({
  metadata: Named,
  spec: z.looseObject({
    scaleTargetRef: Named,
    minReplicaCount: z.number(),
    maxReplicaCount: z.number(),
    triggers: z.array(Trigger),
  }),
});
const scaled = production.filter(({ kind }) => kind === "ScaledObject").map((one) => Scaled.parse(one));

test("each autoscaler measures the queues of its workers by metrics that exist, and never stops the last of them", () => {
  const metrics = `${read("runtime/metrics/job-metrics.ts")}${read("runtime/metrics/http-metrics.ts")}`;
  expect(scaled.map(({ spec }) => spec.scaleTargetRef.name).toSorted()).toEqual(
    ["api", ...groups.map(({ name }) => name)].toSorted(),
  );
  for (const { spec } of scaled) {
    expect(spec.minReplicaCount).toBeGreaterThanOrEqual(2);
    const queues =
      groups
        .find(({ name }) => name === spec.scaleTargetRef.name)
        ?.env.get("WORKER_QUEUES")
        ?.split(",") ?? [];
    for (const { metadata } of spec.triggers.filter(({ type }) => type === "prometheus")) {
      const query = metadata["query"] ?? "";
      for (const name of query.match(/pay_\w+/g) ?? ["no metric"]) expect(metrics).toContain(`"${name}"`);
      const named = /queue=~"([^"]+)"/.exec(query)?.[1]?.split("|") ?? [];
      expect(named.filter((queue) => !queues.includes(queue))).toEqual([]);
      expect(metadata["ignoreNullValues"]).toBe("false");
    }
  }
});

test("the largest fleet of production fits into the connections that its kustomization states", () => {
  const text = read("ops/kubernetes/overlays/production/kustomization.yaml");
  const pool = Number(settingsOf("production")["DATABASE_POOL"]);
  const processes = scaled.reduce((sum, { spec }) => sum + spec.maxReplicaCount + 1, 0);
  const stated = Number(/max_connections has to be (\d+)/.exec(text)?.[1]);
  expect(processes * pool + 14).toBeLessThanOrEqual(stated - 3);
});
