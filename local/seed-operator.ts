import { openDb } from "../db/open.ts";
import { type Credentials, createOperator } from "../payments/operators/operators.ts";
import { readAdminConfig } from "../runtime/config.ts";
import { createEncrypt } from "../runtime/encryption.ts";

/** Creates the operator that the command line names by default, who can also log in to bull-board. */
export async function seedOperator(databaseUrl: string, totpPublicKey: string): Promise<Credentials> {
  const { TOTP_PUBLIC_KEY } = readAdminConfig({ DATABASE_URL: databaseUrl, TOTP_PUBLIC_KEY: totpPublicKey });
  if (!TOTP_PUBLIC_KEY) throw new Error("the stack has no key for TOTP secrets");
  const db = openDb(databaseUrl, { max: 1, applicationName: "pay-seed" });
  const deps = { db, now: () => new Date(), encryptTotpSecret: createEncrypt(TOTP_PUBLIC_KEY) };
  const actor = { kind: "operator", id: "local stack", address: null } as const;
  try {
    const created = await createOperator(deps, { actor, name: "operator", role: "approver" });
    if (!created.ok) throw new Error(`the operator was refused: ${created.message}`);
    return created.value;
  } finally {
    await db.destroy();
  }
}
