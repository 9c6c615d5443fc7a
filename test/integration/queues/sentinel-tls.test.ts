import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startChild } from "../../../local/child-process.ts";
import { freePort } from "../../../local/free-ports.ts";
import { findRedis } from "../../../local/redis-binary.ts";
import { makeScratch } from "../../../local/scratch-folder.ts";
import { openRedis, openRetryingRedis } from "../../../queues/redis-connections.ts";
import { addCleanup } from "../../support/cleanups.ts";
import { type MadeSecrets, makeOtherAuthority, makeSecrets } from "../../support/made-secrets.ts";
import { startTlsRedis } from "../../support/tls-services.ts";
import { waitFor } from "../../support/wait-for.ts";

/** Starts a sentinel that serves TLS only and reaches its master by TLS, as docs/operations/redis.md says. Returns its port. */
async function startTlsSentinel(secrets: MadeSecrets, masterPort: string): Promise<number> {
  const found = await findRedis(undefined);
  if (found === undefined) throw new Error("redis-server was not found");
  const folder = await makeScratch("sentinel-tls");
  addCleanup(() => rm(folder, { recursive: true, force: true }));
  const port = await freePort();
  const settings = [
    "port 0",
    `tls-port ${port}`,
    "bind 127.0.0.1",
    `dir ${folder}`,
    `tls-cert-file ${secrets.path("redis.crt")}`,
    `tls-key-file ${secrets.path("redis.key")}`,
    `tls-ca-cert-file ${secrets.path("ca.crt")}`,
    "tls-auth-clients no",
    "tls-replication yes",
    "sentinel resolve-hostnames yes",
    "sentinel announce-hostnames yes",
    `sentinel monitor pay localhost ${masterPort} 1`,
    "sentinel auth-user pay owner",
    "sentinel auth-pass pay secret",
  ];
  const file = join(folder, "sentinel.conf");
  await writeFile(file, `${settings.join("\n")}\n`);
  const child = await startChild(found.program, [file, "--sentinel"], { env: { ...process.env, ...found.env } });
  addCleanup(() => child.end("SIGTERM"));
  await waitFor(() => child.isGone() || child.tail().includes("+monitor"), {
    within: 10_000,
    what: "the sentinel runs",
  });
  if (child.isGone()) throw new Error(`the sentinel has ended:\n${child.tail()}`);
  return port;
}

test("a process reaches the master by TLS through sentinels with TLS, and trusts no other authority", async () => {
  const secrets = await makeSecrets();
  const [ca, other] = [await secrets.read("ca.crt"), await makeOtherAuthority()];
  const master = await startTlsRedis(secrets);
  const { username, password, port } = new URL(await master.urlOf("worker"));
  const sentinel = await startTlsSentinel(secrets, port);
  const urlOf = (scheme: string) => `${scheme}://${username}:${password}@localhost:${sentinel}/0?master=pay`;
  const errors: Error[] = [];
  const ping = async (open: typeof openRedis, url: string, authority?: string) => {
    const redis = open(url, (error) => void errors.push(error), authority);
    addCleanup(() => redis.disconnect());
    await waitFor(() => redis.status === "ready" || errors.length > 0, { within: 10_000, what: "an answer" });
    return redis.status === "ready" ? redis.ping() : redis.disconnect();
  };
  expect(await ping(openRedis, urlOf("rediss+sentinel"), ca)).toBe("PONG");
  expect(await ping(openRetryingRedis, urlOf("rediss+sentinel"), ca)).toBe("PONG");
  expect(errors).toEqual([]);
  for (const [url, authority] of [
    [urlOf("rediss+sentinel"), other],
    [urlOf("redis+sentinel"), ca],
  ] as const) {
    expect(await ping(openRedis, url, authority)).toBeUndefined();
    expect(errors.splice(0).length).toBeGreaterThan(0);
  }
});
