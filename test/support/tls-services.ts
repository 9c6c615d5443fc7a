import { chmod, chown, copyFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { Redis } from "ioredis";
import pg from "pg";
import { freePort } from "../../local/free-ports.ts";
import type { Service } from "../../local/service.ts";
import { addCleanup } from "./cleanups.ts";
import type { MadeSecrets } from "./made-secrets.ts";
import { startPrivatePostgres, startPrivateRedis } from "./private-services.ts";

/** Starts a private Postgres that serves TLS with the certificate of the host names `postgres` and `localhost`. */
export async function startTlsPostgres(secrets: MadeSecrets): Promise<Service> {
  const postgres = await startPrivatePostgres();
  const client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
  try {
    const { rows } = await client.query("select current_setting('data_directory') as folder");
    const folder = String(rows[0].folder);
    const { uid, gid } = await stat(folder);
    for (const kind of ["crt", "key"]) {
      const file = join(folder, `server.${kind}`);
      await copyFile(secrets.path(`postgres.${kind}`), file);
      await chown(file, uid, gid);
      await chmod(file, 0o600);
    }
    await client.query("alter system set ssl = on");
    await client.query("select pg_reload_conf()");
  } finally {
    await client.end();
  }
  return postgres;
}

/** A private Redis with TLS and the users of ops/redis/users.acl. `owner` may do everything there. */
export type TlsRedis = { owner: Redis; urlOf: (role: "api" | "worker" | "board") => Promise<string> };

/** Starts it; its certificate names the hosts `redis` and `localhost`. */
export async function startTlsRedis(secrets: MadeSecrets): Promise<TlsRedis> {
  const { url } = await startPrivateRedis();
  const everyone = new Redis(url);
  await everyone.call("ACL", "SETUSER", "owner", "on", ">secret", "~*", "&*", "+@all");
  everyone.disconnect();
  const owner = new Redis(url, { username: "owner", password: "secret" });
  addCleanup(() => owner.disconnect());
  const port = await freePort();
  const files = { "tls-cert-file": "redis.crt", "tls-key-file": "redis.key", "tls-ca-cert-file": "ca.crt" };
  const settings = Object.entries(files).flatMap(([name, file]) => [name, secrets.path(file)]);
  await owner.call("CONFIG", "SET", "tls-auth-clients", "no", ...settings, "tls-port", String(port));
  for (const line of (await secrets.read("users.acl")).split("\n")) {
    const [, name = "", ...rules] = line.split(" ");
    await owner.call("ACL", "SETUSER", name, ...rules);
  }
  const urlOf = async (role: string) =>
    (await secrets.read(`${role}-redis-url`)).replace("@redis:6379", `@localhost:${port}`);
  return { owner, urlOf };
}
