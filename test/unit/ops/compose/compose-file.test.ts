import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { z } from "zod";
import { makeSecrets } from "../../../support/made-secrets.ts";

const Service = z.object({
  image: z.string(),
  networks: z.array(z.string()).min(1),
  secrets: z.array(z.string()).default([]),
  environment: z.record(z.string(), z.union([z.string(), z.number()])).default({}),
  volumes: z.array(z.string()).default([]),
  ports: z.array(z.string()).default([]),
});
const Compose = z.object({
  services: z.record(z.string(), Service),
  networks: z.record(z.string(), z.object({ internal: z.boolean() }).nullable()),
  secrets: z.record(z.string(), z.object({ file: z.string() })),
});

const root = new URL("../../../../", import.meta.url);
const text = readFileSync(new URL("docker-compose.yml", root), "utf8");
const { services, networks, secrets } = Compose.parse(parse(text, { merge: true }));
const names = Object.keys(services);

/** Returns the services that share a network with this one. */
function neighboursOf(name: string): string[] {
  const own = new Set(services[name]?.networks);
  return names.filter((other) => other !== name && services[other]?.networks.some((network) => own.has(network)));
}

test("Grafana reaches Prometheus and nothing else, and Prometheus only what it scrapes", () => {
  expect(neighboursOf("grafana")).toEqual(["prometheus"]);
  for (const store of ["postgres", "redis", "anvil"]) expect(neighboursOf("prometheus")).not.toContain(store);
});

test("only the processes that use Postgres and Redis share a network with them", () => {
  expect(neighboursOf("redis").toSorted()).toEqual(["api", "bull-board", "worker"]);
  expect(neighboursOf("postgres").toSorted()).toEqual(["admin", "api", "bull-board", "migrate", "prepare", "worker"]);
  for (const store of ["postgres", "redis"])
    for (const network of services[store]?.networks ?? [])
      expect([network, networks[network]?.internal]).toEqual([network, true]);
});

test("the signer shares no network with a process that it does not need, and no secret", () => {
  for (const name of ["postgres", "redis", "grafana"]) expect(neighboursOf("signer")).not.toContain(name);
  expect(services["signer"]?.secrets).toEqual([]);
});

test("published ports are on this machine only", () => {
  for (const { ports } of Object.values(services)) for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/);
});

test("each container mounts the secrets that its variables name, and no other", () => {
  const opened = ["admin", "api", "bull-board", "migrate", "prepare", "worker"];
  for (const name of opened) {
    const { environment, secrets: mounted } = services[name] ?? { environment: {}, secrets: [] };
    const files = Object.values(environment).flatMap(
      (value) => /^\/run\/secrets\/(.+)$/.exec(String(value))?.[1] ?? [],
    );
    expect([name, mounted.toSorted()]).toEqual([name, [...new Set([...files, "ca.crt"])].toSorted()]);
  }
  const holders = (secret: string) => names.filter((name) => services[name]?.secrets.includes(secret));
  expect(holders("buyer-data-private-keys")).toEqual(["admin"]);
  expect(holders("webhook-private-keys")).toEqual(["worker"]);
  expect(holders("totp-private-keys")).toEqual(["bull-board"]);
  expect(holders("owner-database-url")).toEqual(["migrate"]);
});

test("no variable contains a password, a key or a URL with a password", () => {
  for (const { environment } of Object.values(services))
    for (const [name, value] of Object.entries(environment))
      if (/PASSWORD|(KEYS?|DATABASE_URL|REDIS_URL)(_FILE)?$/.test(name))
        expect([name, value]).toEqual([expect.stringMatching(/_FILE$/), expect.stringMatching(/^\/run\/secrets\//)]);
});

test("make-secrets.sh writes every secret that the compose file mounts", async () => {
  const made = await makeSecrets();
  for (const [name, { file }] of Object.entries(secrets)) {
    expect(file).toBe(`./secrets/${name}`);
    expect([name, (await made.read(name)).length > 0]).toEqual([name, true]);
  }
  expect(await made.read("logins.sql")).toContain("create role pay_api login");
});

test("every image of another project is pinned by its digest", () => {
  const images = [...new Set(Object.values(services).map(({ image }) => image))];
  for (const image of images.filter((one) => !one.startsWith("payment-service:")))
    expect(image).toMatch(/@sha256:[0-9a-f]{64}$/);
  expect(readFileSync(new URL("Dockerfile", root), "utf8")).toMatch(/^ARG NODE_IMAGE=.*@sha256:[0-9a-f]{64}$/m);
});
