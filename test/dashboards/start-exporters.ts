import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Child, startChild } from "../../local/child-process.ts";
import { unpackDebianPackage } from "../../local/debian-packages.ts";
import { findProgram, programFrom } from "../../local/find-program.ts";
import { freePort } from "../../local/free-ports.ts";
import { waitUntil } from "../../local/wait-until.ts";
import type { Targets } from "./start-prometheus.ts";

export type Exporters = { targets: Targets; close(): Promise<void> };

/** Starts the exporters of a Postgres and of a Redis, with Debian's programs and the settings of compose.yml. */
export async function startExporters(urls: { postgres: string; redis: string }): Promise<Exporters> {
  const queries = fileURLToPath(new URL("postgres-queries.yaml", import.meta.url));
  const postgres = await startExporter("postgres", [`--extend.query-path=${queries}`, "--web.listen-address"], {
    DATA_SOURCE_NAME: `${urls.postgres}?sslmode=disable`,
  });
  const redis = await startExporter("redis", ["--web.listen-address"], {
    REDIS_ADDR: urls.redis,
    REDIS_EXPORTER_CONFIG_COMMAND: "-",
  });
  return {
    targets: { postgres: [postgres.address], redis: [redis.address] },
    async close() {
      for (const { child } of [postgres, redis]) await child.end("SIGTERM");
    },
  };
}

/** Starts an exporter with these flags, of which the last one takes an address, and waits until it answers. */
async function startExporter(
  of: "postgres" | "redis",
  flags: readonly string[],
  env: Record<string, string>,
): Promise<{ address: string; child: Child }> {
  const address = `127.0.0.1:${await freePort()}`;
  const args = [...flags.slice(0, -1), `${flags.at(-1)}=${address}`];
  const child = await startChild(await findExporter(of), args, { env: { ...process.env, ...env } });
  const isReady = async () => (await fetch(`http://${address}/metrics`).catch(() => undefined))?.ok === true;
  await waitUntil(`the exporter of ${of} answers`, isReady, { withinMs: 60_000, everyMs: 100 }).catch((cause) => {
    throw new Error(`the exporter of ${of} did not start:\n${child.tail()}`, { cause });
  });
  return { address, child };
}

/**
 * Finds an exporter: the program that POSTGRES_EXPORTER or REDIS_EXPORTER names, one on this machine, or Debian's package,
 * unpacked into .local. Throws an error that says what to install.
 */
async function findExporter(of: "postgres" | "redis"): Promise<string> {
  const variable = `${of.toUpperCase()}_EXPORTER`;
  const name = `prometheus-${of}-exporter`;
  const installed = programFrom(variable) ?? findProgram(name, ["/usr/bin"]);
  if (installed !== undefined) return installed;
  const root = await unpackDebianPackage(name, console.log);
  const unpacked = root === undefined ? undefined : findProgram(name, [join(root, "usr", "bin")]);
  if (unpacked === undefined) throw new Error(`${name} was not found: install it, or set ${variable} to its program`);
  return unpacked;
}
