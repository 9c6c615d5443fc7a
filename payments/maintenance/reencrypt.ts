import { inTransaction } from "../../db/in-transaction.ts";
import { type AuditActor, insertAuditEntries } from "../../db/queries/audit-entries.ts";
import {
  countByKey,
  type DataKeyPair,
  deleteFormerSecrets,
  type EncryptedValue,
  encryptedColumns,
  listEncryptedOtherwise,
  replaceCiphertexts,
} from "../../db/queries/encrypted-values.ts";
import type { Decrypt, Encrypt } from "../../runtime/encryption.ts";
import type { PaymentDeps } from "../payment-deps.ts";

type Deps = Pick<PaymentDeps, "db" | "now">;

/** How many values a key pair has encrypted, by the column that stores them. */
export type DataKeyUse = { pair: DataKeyPair; keyId: string; column: string; values: number };

/** Lists the key pairs with which something is encrypted. The private half of each is still needed. */
export async function listDataKeyUses({ db }: Pick<Deps, "db">): Promise<DataKeyUse[]> {
  const uses: DataKeyUse[] = [];
  for (const column of encryptedColumns)
    for (const { key_id: keyId, values } of await countByKey(db, column))
      uses.push({ pair: column.pair, keyId, column: `${column.table}.${column.ciphertext}`, values });
  return uses;
}

/** Values that one statement replaces, so that it locks few rows for a short time. */
const AT_ONCE = 200;

/**
 * Encrypts everything of a pair's purpose anew to the public key `keyId`, so that the private halves of earlier pairs are no
 * longer needed. Deletes previous secrets of webhooks that sign no more. Can be repeated and interrupted at any time, and
 * values that are written meanwhile stay as they are. Returns how many values were encrypted anew, and of how many others
 * the private key is not given, by the name of the key.
 */
export async function reencrypt(
  deps: Deps,
  args: { actor: AuditActor; pair: DataKeyPair; keyId: string; encrypt: Encrypt; decrypt: Decrypt },
): Promise<{ reencrypted: number; unreadable: Record<string, number> }> {
  const { actor, pair, keyId, encrypt, decrypt } = args;
  const unreadable: Record<string, number> = {};
  let reencrypted = 0;
  if (pair === "webhooks") await forgetFormerSecrets(deps, actor);
  const anew = async ({ id, key_id, ciphertext: before, context }: EncryptedValue) => {
    const text = await decrypt({ keyId: key_id, ciphertext: before }, context).catch(() => undefined);
    if (text !== undefined) return [{ id, before, after: (await encrypt(text, context)).ciphertext }];
    unreadable[key_id] = (unreadable[key_id] ?? 0) + 1;
    return [];
  };
  for (const column of encryptedColumns.filter((one) => one.pair === pair))
    for (let after = ""; ; ) {
      const found = await listEncryptedOtherwise(deps.db, column, { keyId, after, limit: AT_ONCE });
      const values = (await Promise.all(found.map(anew))).flat();
      reencrypted += await inTransaction(deps.db, async (db) => {
        const count = await replaceCiphertexts(db, column, { keyId, values });
        const entry = { actor, action: "data_key.reencrypted", subject: pair, before: null, at: deps.now() };
        if (count > 0) await insertAuditEntries(db, [{ ...entry, after: { keyId, values: count } }]);
        return count;
      });
      const last = found.at(-1);
      if (last === undefined) break;
      after = last.id;
    }
  return { reencrypted, unreadable };
}

async function forgetFormerSecrets({ db: pool, now }: Deps, actor: AuditActor): Promise<void> {
  const at = now();
  await inTransaction(pool, async (db) => {
    const count = await deleteFormerSecrets(db, at);
    const entry = { actor, action: "webhook_endpoint.former_secrets_deleted", subject: "webhooks", before: null, at };
    if (count > 0) await insertAuditEntries(db, [{ ...entry, after: { count } }]);
  });
}
