import { randomBytes } from "node:crypto";
import { inTransaction } from "../../db/in-transaction.ts";
import { type AuditActor, insertAuditEntries } from "../../db/queries/audit-entries.ts";
import {
  countByKey,
  type DataKeyPair,
  deleteFormerSecrets,
  type EncryptedColumn,
  type EncryptedValue,
  encryptedColumns,
  listEncryptedByOthers,
  replaceCiphertexts,
  sampleEncrypted,
} from "../../db/queries/encrypted-values.ts";
import type { Decrypt, Encrypt } from "../../runtime/encryption.ts";
import { done, type Result, refuse } from "../error-codes.ts";
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
/** The oldest and the newest values of the pair, so many of each column, that are read to find another pair of its name. */
const SAMPLED = 200;

/**
 * Encrypts everything of a pair's purpose anew to the public key `keyId`, so that the private halves of earlier pairs are no
 * longer needed. Deletes previous secrets of webhooks that sign no more. Can be repeated and interrupted at any time, and
 * values that are written meanwhile stay as they are. Returns how many values were encrypted anew, and of how many others
 * the private key is not given, by the name of the key.
 *
 * Replaces nothing that cannot be read afterwards. Refuses with `invalid_state` when `decrypt` does not read what `encrypt`
 * writes, or does not read one of the oldest and newest values that carry the name `keyId` already: another pair of the same
 * name encrypted it. The other values that carry the name are not read.
 */
export async function reencrypt(
  deps: Deps,
  args: { actor: AuditActor; pair: DataKeyPair; keyId: string; encrypt: Encrypt; decrypt: Decrypt },
): Promise<Result<{ reencrypted: number; unreadable: Record<string, number> }>> {
  const { actor, pair, keyId, encrypt, decrypt } = args;
  const unreadable: Record<string, number> = {};
  let reencrypted = 0;
  const columns = encryptedColumns.filter((one) => one.pair === pair);
  if (!(await canRead(args)))
    return refuse("invalid_state", `the private key of ${keyId} is missing or does not fit its public key`);
  if (pair === "webhooks") await forgetFormerSecrets(deps, actor);
  const foreign = await countForeign(deps, { columns, keyId, decrypt });
  if (foreign > 0)
    return refuse(
      "invalid_state",
      `another key pair named ${keyId} encrypted ${foreign} of the sampled values: make a pair with a new name`,
    );
  const anew = async ({ id, key_id, ciphertext: before, context }: EncryptedValue) => {
    const text = await decrypt({ keyId: key_id, ciphertext: before }, context).catch(() => undefined);
    if (text !== undefined) {
      const after = await encrypt(text, context);
      if ((await decrypt(after, context)) !== text)
        throw new Error(`what ${keyId} has encrypted does not decrypt to the same`);
      return [{ id, before, after: after.ciphertext }];
    }
    unreadable[key_id] = (unreadable[key_id] ?? 0) + 1;
    return [];
  };
  for (const column of columns)
    for await (const found of readOthersInParts(deps, column, keyId)) {
      const values = (await Promise.all(found.map(anew))).flat();
      reencrypted += await inTransaction(deps.db, async (db) => {
        const count = await replaceCiphertexts(db, column, { keyId, values });
        const entry = { actor, action: "data_key.reencrypted", subject: pair, before: null, at: deps.now() };
        if (count > 0) await insertAuditEntries(db, [{ ...entry, after: { keyId, values: count } }]);
        return count;
      });
    }
  return done({ reencrypted, unreadable });
}

/** Returns true when a random text that is encrypted can be decrypted. */
async function canRead({ encrypt, decrypt }: { encrypt: Encrypt; decrypt: Decrypt }): Promise<boolean> {
  const [text, context] = [randomBytes(32).toString("base64"), "reencrypt"];
  const read = await decrypt(await encrypt(text, context), context).catch(() => undefined);
  return read === text;
}

/** Returns how many sampled values carry the name of the pair and are not decrypted by it. */
async function countForeign(
  deps: Pick<Deps, "db">,
  { columns, keyId, decrypt }: { columns: readonly EncryptedColumn[]; keyId: string; decrypt: Decrypt },
): Promise<number> {
  const isForeign = ({ ciphertext, context }: EncryptedValue) =>
    decrypt({ keyId, ciphertext }, context).then(
      () => false,
      () => true,
    );
  let foreign = 0;
  for (const column of columns) {
    const found = await sampleEncrypted(deps.db, column, { keyId, limit: SAMPLED });
    foreign += (await Promise.all(found.map(isForeign))).filter(Boolean).length;
  }
  return foreign;
}

async function* readOthersInParts(
  { db }: Pick<Deps, "db">,
  column: EncryptedColumn,
  keyId: string,
): AsyncGenerator<EncryptedValue[]> {
  for (let after = ""; ; ) {
    const found = await listEncryptedByOthers(db, column, { keyId, after, limit: AT_ONCE });
    const last = found.at(-1);
    if (last === undefined) return;
    yield found;
    after = last.id;
  }
}

async function forgetFormerSecrets({ db: pool, now }: Deps, actor: AuditActor): Promise<void> {
  const at = now();
  await inTransaction(pool, async (db) => {
    const count = await deleteFormerSecrets(db, at);
    const entry = { actor, action: "webhook_endpoint.former_secrets_deleted", subject: "webhooks", before: null, at };
    if (count > 0) await insertAuditEntries(db, [{ ...entry, after: { count } }]);
  });
}
