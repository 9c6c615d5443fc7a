import { sql } from "kysely";
import type { Db } from "../tables.ts";

/** The purpose of a key pair. */
export type DataKeyPair = "buyer-data" | "webhooks" | "totp";

/**
 * A column with ciphertexts. `key` is the column with the name of the key pair that encrypted them, and `context` is the
 * text that each ciphertext is bound to.
 */
export type EncryptedColumn = {
  pair: DataKeyPair;
  table: string;
  id: string;
  key: string;
  ciphertext: string;
  context: string;
};

/** Every column with ciphertexts. */
export const encryptedColumns: readonly EncryptedColumn[] = [
  {
    pair: "buyer-data",
    table: "collected_data",
    id: "id",
    key: "key_id",
    ciphertext: "ciphertext",
    context: "payment_id || ' ' || account",
  },
  { pair: "webhooks", table: "webhook_endpoint", id: "id", key: "key_id", ciphertext: "secret", context: "id" },
  {
    pair: "webhooks",
    table: "webhook_endpoint",
    id: "id",
    key: "previous_key_id",
    ciphertext: "previous_secret",
    context: "id",
  },
  {
    pair: "totp",
    table: "operator",
    id: "name",
    key: "totp_key_id",
    ciphertext: "totp_secret",
    context: "name",
  },
];

/** Returns how many values of a column each key pair has encrypted, by the name of the pair. */
export async function countByKey(
  db: Db,
  { table, key }: EncryptedColumn,
): Promise<{ key_id: string; values: number }[]> {
  const { rows } = await sql<{ key_id: string; values: number }>`
    select ${sql.ref(key)} as key_id, count(*)::int as values from ${sql.table(table)}
    where ${sql.ref(key)} is not null group by 1 order by 1`.execute(db);
  return rows;
}

/** A ciphertext with its row's id, the name of its key pair, and the context that it is bound to. */
export type EncryptedValue = { id: string; key_id: string; ciphertext: Buffer; context: string };

/** Returns values that other pairs than `keyId` have encrypted, in the order of their ids, after the id `after`. */
export async function listEncryptedByOthers(
  db: Db,
  column: EncryptedColumn,
  { keyId, after, limit }: { keyId: string; after: string; limit: number },
): Promise<EncryptedValue[]> {
  const { id, key } = column;
  const { rows } = await sql<EncryptedValue>`
    ${selectValues(column)} where ${sql.ref(key)} <> ${keyId} and ${sql.ref(id)} > ${after}
    order by ${sql.ref(id)} limit ${limit}`.execute(db);
  return rows;
}

/** Returns values that the pair `keyId` has encrypted: the first and the last `limit` by their ids, which begin with a time. */
export async function sampleEncrypted(
  db: Db,
  column: EncryptedColumn,
  { keyId, limit }: { keyId: string; limit: number },
): Promise<EncryptedValue[]> {
  const { id, key } = column;
  const ofPair = sql`${selectValues(column)} where ${sql.ref(key)} = ${keyId} order by ${sql.ref(id)}`;
  const { rows } = await sql<EncryptedValue>`
    (${ofPair} limit ${limit}) union (${ofPair} desc limit ${limit})`.execute(db);
  return rows;
}

const selectValues = ({ table, id, key, ciphertext, context }: EncryptedColumn) => sql`
  select ${sql.ref(id)} as id, ${sql.ref(key)} as key_id, ${sql.ref(ciphertext)} as ciphertext,
    ${sql.raw(context)} as context
  from ${sql.table(table)}`;

/**
 * Replaces ciphertexts by others of the pair `keyId`. Leaves a value as it is when it has changed since it was read. Returns
 * how many were replaced.
 */
export async function replaceCiphertexts(
  db: Db,
  { table, id, key, ciphertext }: EncryptedColumn,
  { keyId, values }: { keyId: string; values: readonly { id: string; before: Buffer; after: Buffer }[] },
): Promise<number> {
  if (values.length === 0) return 0;
  const rows = values.map((one) => sql`(${one.id}, ${one.before}::bytea, ${one.after}::bytea)`);
  const { numAffectedRows } = await sql`
    update ${sql.table(table)} as t set ${sql.ref(key)} = ${keyId}, ${sql.ref(ciphertext)} = v.after
    from (values ${sql.join(rows)}) as v (id, before, after)
    where t.${sql.ref(id)} = v.id and t.${sql.ref(ciphertext)} = v.before`.execute(db);
  return Number(numAffectedRows ?? 0n);
}

/** Deletes the previous secrets of webhook endpoints that have stopped signing. Returns how many. */
export async function deleteFormerSecrets(db: Db, now: Date): Promise<number> {
  const { numUpdatedRows } = await db
    .updateTable("webhook_endpoint")
    .set({ previous_key_id: null, previous_secret: null, previous_until: null })
    .where("previous_until", "<=", now)
    .executeTakeFirst();
  return Number(numUpdatedRows);
}
