import { type RawBuilder, sql } from "kysely";
import type { Db } from "../tables.ts";

type Finder = (text: string) => RawBuilder<{ payment_id: string | null }>;

/** The payments of transfers: of the payment itself, or of the payout or refund that the transfer makes. */
const paymentsOfTransfers = (condition: RawBuilder<unknown>) => sql<{ payment_id: string | null }>`
  with found as materialized (select payment_id, settlement_id, refund_id from transfer where ${condition})
  select payment_id from found where payment_id is not null
  union select p.id from found f join payment p on p.settlement_id = f.settlement_id
  union select r.payment_id from found f join refund r on r.id = f.refund_id`;

/** How payments are found by the ids of what belongs to them; ids begin with these prefixes. */
const byPrefix: ReadonlyMap<string, Finder> = new Map<string, Finder>([
  ["pay", (id) => sql`select id as payment_id from payment where id = ${id}`],
  ["opt", (id) => sql`select payment_id from payment_option where id = ${id}`],
  ["att", (id) => sql`select payment_id from attempt where id = ${id}`],
  ["trf", (id) => paymentsOfTransfers(sql`id = ${id}`)],
  ["stl", (id) => sql`select id as payment_id from payment where settlement_id = ${id}`],
  ["rfnd", (id) => sql`select payment_id from refund where id = ${id}`],
]);

/** Finds the payments of a transaction that our lanes have sent. The subquery lets Postgres use the index by chain and hash. */
const byOurTransaction: Finder = (hash) =>
  paymentsOfTransfers(sql`(lane_id, lane_nonce) in (
    select lane_id, nonce from transaction where chain in (select distinct chain from lane) and hash = ${hash})`);

const byReference: Finder = (text) => sql`select id as payment_id from payment where reference_id = ${text}`;

/** Finds payments by the transaction that a buyer or another relayer has sent. */
const byBuyersTransaction: Finder = (hash) =>
  sql`select id as payment_id from payment where sent_by_others and tx_id = ${hash}`;

/** A hash on EVM chains, or a signature of Solana in base58. */
const transactionPattern = /^(0x[0-9a-fA-F]{64}|[1-9A-HJ-NP-Za-km-z]{64,88})$/;

/**
 * Returns the ids of the payments that an operator means: by the id of a payment, an option, an attempt, a transfer, a payout
 * or a refund, by a transaction's hash or signature, or by the merchant's reference. A reference may look like any of the others.
 */
export async function listPaymentsNamed(db: Db, text: string, limit: number): Promise<string[]> {
  const ofId = byPrefix.get(text.split("_", 1)[0] ?? "");
  const finders = transactionPattern.test(text)
    ? [ofId, byOurTransaction, byReference, byBuyersTransaction]
    : [ofId, byReference];
  for (const find of finders) {
    if (find === undefined) continue;
    const { rows } = await sql<{ id: string }>`select distinct payment_id as id from (${find(text)}) found
      where payment_id is not null order by id limit ${limit}`.execute(db);
    if (rows.length > 0) return rows.map(({ id }) => id);
  }
  return [];
}
