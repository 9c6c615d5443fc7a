import pRetry from "p-retry";
import { ConfigError, readMigrateConfig } from "../runtime/config.ts";
import { describeBriefly, errorCode } from "../runtime/redaction.ts";
import { dumpSchema } from "./dump-schema.ts";
import { migrateDatabase } from "./migrate.ts";
import type { BlockingSession } from "./migration-lock.ts";

const help = `usage: node db/main.ts <command>

commands:
  migrate   bring the schema up to date (the default); several processes may run it at the same time
  schema    print the schema in the form of db/schema.sql

DATABASE_URL names the database.`;

/** What a server that is starting, or whose name is not known yet, answers with: 57P03 is cannot_connect_now. */
const notYet = new Set<string | number | undefined>(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "57P03"]);

/** Migrates the database. Waits a minute for a server that does not accept connections yet. */
async function migrate(databaseUrl: string): Promise<string[]> {
  const onWait = (name: string) => console.error(`${name} waits for a long transaction to end and is retried`);
  const onBlocked = ({ pid, login, application, address }: BlockingSession) =>
    console.error(
      `migrate waits for session ${pid}, login ${login ?? "unknown"}, application ${application || "unknown"}, address ${address ?? "unknown"}`,
    );
  return pRetry(() => migrateDatabase(databaseUrl, { onWait, onBlocked }), {
    retries: 60,
    factor: 1,
    shouldRetry: ({ error }) => notYet.has(errorCode(error)),
    onFailedAttempt: ({ error, attemptNumber }) => {
      if (attemptNumber === 1 && notYet.has(errorCode(error))) console.error("waiting for Postgres");
    },
  });
}

const command = process.argv[2] ?? "migrate";
try {
  if (command === "migrate") {
    const ran = await migrate(readMigrateConfig(process.env).DATABASE_URL);
    console.log(ran.length === 0 ? "the schema is up to date" : `migrated: ${ran.join(", ")}`);
  } else if (command === "schema") {
    process.stdout.write(await dumpSchema(readMigrateConfig(process.env).DATABASE_URL));
  } else {
    console.log(help);
    process.exitCode = command === "--help" || command === "help" ? 0 : 2;
  }
} catch (error) {
  console.error(error instanceof ConfigError ? error.message : describeBriefly(error));
  process.exitCode = 1;
}
