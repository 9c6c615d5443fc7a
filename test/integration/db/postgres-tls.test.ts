import { writeFile } from "node:fs/promises";
import { sql } from "kysely";
import { expect, onTestFinished, test } from "vitest";
import { openDb } from "../../../db/open.ts";
import { makeOtherAuthority, makeSecrets } from "../../support/made-secrets.ts";
import { startPrivatePostgres } from "../../support/private-services.ts";
import { startTlsPostgres } from "../../support/tls-services.ts";
import { waitFor } from "../../support/wait-for.ts";

const secrets = await makeSecrets();
const postgres = await startTlsPostgres(secrets);

/** Returns the URL of a server with a host name and a certificate authority, as the operator writes it. */
function urlOf(url: string, host: string, ca: string): string {
  const address = new URL(url);
  address.hostname = host;
  address.searchParams.set("sslmode", "verify-full");
  address.searchParams.set("sslrootcert", ca);
  return address.href;
}

async function isEncrypted(url: string): Promise<boolean> {
  const db = openDb(url, { max: 1 });
  onTestFinished(() => db.destroy());
  const { rows } = await sql<{ ssl: boolean }>`select ssl from pg_stat_ssl where pid = pg_backend_pid()`.execute(db);
  return rows[0]?.ssl ?? false;
}

const ca = secrets.path("ca.crt");

test("a process reaches Postgres over TLS when a private authority has signed the certificate of that host", async () => {
  await waitFor(() => isEncrypted(urlOf(postgres.url, "localhost", ca)).catch(() => false), { within: 10_000 });
});

test("a certificate of another authority is refused", async () => {
  const other = secrets.path("other-ca.crt");
  await writeFile(other, await makeOtherAuthority());
  await expect(isEncrypted(urlOf(postgres.url, "localhost", other))).rejects.toThrow(
    /unable to verify|self.signed|certificate signature failure/,
  );
});

test("a certificate of another host name is refused", async () => {
  await expect(isEncrypted(urlOf(postgres.url, "127.0.0.1", ca))).rejects.toThrow(/does not match certificate/);
});

test("a server without TLS is refused", async () => {
  const plain = await startPrivatePostgres();
  await expect(isEncrypted(urlOf(plain.url, "localhost", ca))).rejects.toThrow(/does not support SSL/);
});
