import { openDb } from "../db/open.ts";
import { type Credentials, createOperator } from "../payments/operators/operators.ts";
import { readAdminConfig } from "../runtime/config.ts";
import { createEncryption } from "../runtime/encryption.ts";

/** Creates the operator that the command line names by default, who can also log in to bull-board. */
export async function seedOperator(databaseUrl: string, dataKeys: string): Promise<Credentials> {
  const { DATA_KEYS } = readAdminConfig({ DATABASE_URL: databaseUrl, DATA_KEYS: dataKeys });
  if (!DATA_KEYS) throw new Error("the stack has no data key");
  const db = openDb(databaseUrl, { max: 1, applicationName: "pay-seed" });
  const deps = { db, now: () => new Date(), encryption: createEncryption(DATA_KEYS) };
  const actor = { kind: "operator", id: "local stack", address: null } as const;
  try {
    const created = await createOperator(deps, { actor, name: "operator", role: "approver" });
    if (!created.ok) throw new Error(`the operator was refused: ${created.message}`);
    return created.value;
  } finally {
    await db.destroy();
  }
}
