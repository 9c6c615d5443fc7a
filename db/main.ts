import { ConfigError, readMigrateConfig } from "../runtime/config.ts";
import { describeBriefly } from "../runtime/redaction.ts";
import { dumpSchema } from "./dump-schema.ts";
import { migrateDatabase } from "./migrate.ts";

const help = `usage: node db/main.ts <command>

commands:
  migrate   bring the schema up to date (the default); several processes may run it at the same time
  schema    print the schema in the form of db/schema.sql

DATABASE_URL names the database.`;

const command = process.argv[2] ?? "migrate";
try {
  if (command === "migrate") {
    const ran = await migrateDatabase(readMigrateConfig(process.env).DATABASE_URL, {
      onWait: (name) => console.error(`${name} waits for a long transaction to end and is retried`),
    });
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
