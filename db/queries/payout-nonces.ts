import { sql } from "kysely";
import type { Db } from "../tables.ts";
import { bookingsOf } from "./exceptions.ts";
import type { ObservationRow } from "./observations.ts";
import type { TransferRow } from "./transfers.ts";

/** What identifies a payout on a chain. Amount and receiver are not part of it. */
type PayoutKey = Pick<TransferRow, "id" | "chain" | "token" | "payer" | "authorization_nonce">;

/** Returns the nonces of these payouts that a movement on the current chain has used, whether or not it is booked. */
export async function listUsedNonces(db: Db, payouts: readonly PayoutKey[]): Promise<Set<string>> {
  if (payouts.length === 0) return new Set();
  const column = (key: keyof PayoutKey) => payouts.map((payout) => payout[key]);
  const { rows } = await sql<{ nonce: string }>`
    select s.authorization_nonce as nonce
    from unnest(${column("id")}::text[], ${column("chain")}::text[], ${column("token")}::text[], ${column("payer")}::text[],
      ${column("authorization_nonce")}::text[]) as p (id, chain, token, payer, nonce)
    join observation s on s.authorization_nonce = p.nonce and s.chain = p.chain and s.token = p.token and s.payer = p.payer
    where not s.orphaned and (s.transfer_id is null or s.transfer_id = p.id)`.execute(db);
  return new Set(rows.map(({ nonce }) => nonce));
}

/** A movement that belongs to no transfer: a payout that a restored database has lost. `booked`: it is final and an exception. */
export type UnclaimedPayout = Pick<ObservationRow, "amount" | "booked">;

/** Such movements by chain and nonce. Of a chain without any there is no entry. When movements share a nonce, it has the largest. */
export type UnclaimedPayouts = ReadonlyMap<string, ReadonlyMap<string, UnclaimedPayout>>;

/** An account that pays out on a chain. */
export type PayoutAccount = { chain: string; payer: string };

/** SQL: the movements `s` of accounts that belong to no transfer and have nonces. */
const unclaimedOf = (accounts: readonly PayoutAccount[]) => sql`
  unnest(${accounts.map(({ chain }) => chain)}::text[], ${accounts.map(({ payer }) => payer)}::text[]) as a (chain, payer)
  join observation s on s.chain = a.chain and s.payer = a.payer
    and s.transfer_id is null and s.authorization_nonce is not null and not s.orphaned`;

/** Returns the movements of accounts that belong to no transfer and have nonces. */
export async function listUnclaimedPayouts(db: Db, accounts: readonly PayoutAccount[]): Promise<UnclaimedPayouts> {
  const { rows } = await sql<UnclaimedPayout & { chain: string; nonce: string }>`
    select s.chain, s.authorization_nonce as nonce, s.amount, s.booked from ${unclaimedOf(accounts)}
    order by s.amount`.execute(db);
  const chains = Map.groupBy(rows, ({ chain }) => chain);
  return new Map(
    [...chains].map(([chain, made]) => [
      chain,
      new Map(made.map(({ nonce, amount, booked }) => [nonce, { amount, booked }])),
    ]),
  );
}

/** Such a movement that no operator has resolved as an exception, with the account that received it. */
export type UnresolvedPayout = UnclaimedPayout & Pick<ObservationRow, "chain" | "receiver"> & { nonce: string };

/** Returns the movements of `listUnclaimedPayouts` whose exceptions are open or not booked yet. */
export async function listUnresolvedPayouts(db: Db, accounts: readonly PayoutAccount[]): Promise<UnresolvedPayout[]> {
  const { rows } = await sql<UnresolvedPayout>`
    select s.chain, s.authorization_nonce as nonce, s.receiver, s.amount, s.booked from ${unclaimedOf(accounts)}
    where not exists (select from ${bookingsOf("s")} join ledger_group r on r.kind = 'exception_resolved' and r.subject = g.id::text)`.execute(
    db,
  );
  return rows;
}

/**
 * Returns true when a movement has this nonce and belongs to no transfer: a payout that a restored database has lost.
 * Movements of other payers do not count if `payer` is given, because a stranger's deposit can carry any nonce.
 */
export async function isNonceUnclaimed(
  db: Db,
  args: { chain: string; payer: string | undefined; nonce: string },
): Promise<boolean> {
  const row = await db
    .selectFrom("observation")
    .select("chain")
    .where("chain", "=", args.chain)
    .where(args.payer === undefined ? sql<boolean>`true` : sql<boolean>`payer = ${args.payer}`)
    .where(sql<boolean>`authorization_nonce = ${args.nonce}`)
    .where("transfer_id", "is", null)
    .where("orphaned", "=", false)
    .limit(1)
    .executeTakeFirst();
  return row !== undefined;
}

/** Returns the movement that has used a payout's nonce, locked until the commit. Prefers one of the same amount. */
export async function lockMovementByNonce(
  db: Db,
  payout: PayoutKey & { amount: bigint },
): Promise<ObservationRow | undefined> {
  const { rows } = await sql<ObservationRow>`
    select * from observation
    where authorization_nonce = ${payout.authorization_nonce} and chain = ${payout.chain} and token = ${payout.token}
      and payer = ${payout.payer} and not orphaned and (transfer_id is null or transfer_id = ${payout.id})
    order by amount = ${payout.amount} desc, block_number, log_index limit 1 for update`.execute(db);
  return rows[0];
}

/** Assigns a movement to the payout that it makes. The payout takes over the receiver and the given amount. */
export async function assignObservation(
  db: Db,
  { movement, transferId, amount }: { movement: ObservationRow; transferId: string; amount: bigint },
): Promise<void> {
  await db
    .updateTable("observation")
    .set({ transfer_id: transferId, booked: false })
    .where("chain", "=", movement.chain)
    .where("block_id", "=", movement.block_id)
    .where("tx_hash", "=", movement.tx_hash)
    .where("log_index", "=", movement.log_index)
    .execute();
  await db.updateTable("transfer").set({ amount, receiver: movement.receiver }).where("id", "=", transferId).execute();
}
