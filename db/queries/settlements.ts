import { type Selectable, sql } from "kysely";
import { moveRows } from "../moves.ts";
import type { Db, Mode, Tables } from "../tables.ts";

export type SettlementRow = Selectable<Tables["settlement"]>;
export type NewSettlement = {
  id: string;
  merchantId: string;
  mode: Mode;
  asset: string;
  number: number;
  amount: bigint;
  /** Null for a settlement that is paid already. */
  dueAt: Date | null;
  /** It was paid in other assets. */
  converted?: boolean;
};

/** Inserts settlements in the state `due`. */
export async function insertSettlements(db: Db, settlements: readonly NewSettlement[], at: Date): Promise<void> {
  if (settlements.length === 0) return;
  await db
    .insertInto("settlement")
    .values(settlements.map((one) => ({ ...toSettlementRow(one, at), state: "due" as const, closed_at: at })))
    .execute();
}

/** Returns the row of a new settlement, without its state. */
export function toSettlementRow(one: NewSettlement, at: Date) {
  const { id, merchantId: merchant_id, mode, asset, number, amount, dueAt: due_at, converted = false } = one;
  return {
    id,
    merchant_id,
    mode,
    asset,
    number,
    amount,
    converted,
    destination: null,
    created_at: at,
    paid_at: null,
    due_at,
  };
}

/**
 * A settlement with its currently registered destination (null when there is none), whether an operator holds its merchant,
 * and up to ten refunds that wait for the same balance. `mixed`: the balance has, or may have, money that came in other assets.
 */
export type SettlementWithDestination = SettlementRow & {
  registered: string | null;
  held: boolean;
  mixed: boolean;
  refunds: string[];
};

/** Returns those of these settlements that have not begun, in no particular order. */
export async function listDueSettlements(db: Db, ids: readonly string[]): Promise<SettlementWithDestination[]> {
  return db
    .selectFrom("settlement as s")
    .innerJoin("merchant as m", "m.id", "s.merchant_id")
    .leftJoin("settlement_destination as d", (join) =>
      join.onRef("d.merchant_id", "=", "s.merchant_id").onRef("d.asset", "=", "s.asset"),
    )
    .selectAll("s")
    .select([
      "d.destination as registered",
      sql<boolean>`m.payouts_held_at is not null`.as("held"),
      sql<boolean>`s.converted or coalesce(d.accepts_other_assets, false)`.as("mixed"),
      sql<string[]>`array(select r.id from refund r
        where r.merchant_id = s.merchant_id and coalesce(r.owed_asset, r.asset) = s.asset and r.state = 'due' order by r.id limit 10)`.as(
        "refunds",
      ),
    ])
    .where(sql<boolean>`s.id = any(${ids})`)
    .where("s.state", "=", "due")
    .execute();
}

/** Returns the unpaid settlements of a merchant and asset, in the order of their numbers. */
export async function listOpenNumbers(
  db: Db,
  args: { merchantId: string; asset: string },
): Promise<Pick<SettlementRow, "id" | "number" | "amount" | "state">[]> {
  return db
    .selectFrom("settlement")
    .select(["id", "number", "amount", "state"])
    .where("merchant_id", "=", args.merchantId)
    .where("asset", "=", args.asset)
    .where("state", "in", ["due", "accumulating", "paying"])
    .orderBy("number")
    .execute();
}

/**
 * A settlement whose payout has not begun, from which a refund may still deduct. `kept` is the part of its amount that nothing may be
 * deducted from, because the chain shows it as paid before a restore.
 */
export type NotBegun = Pick<SettlementRow, "id" | "number" | "amount" | "converted"> & {
  state: "due" | "accumulating";
  kept: bigint;
};

/** Returns `NotBegun.kept` of a settlement of one merchant and asset. */
export type KeptOf = (settlement: Pick<SettlementRow, "number" | "amount">) => bigint;
const keepNothing: KeptOf = () => 0n;

function selectUnbegun(db: Db) {
  return db
    .selectFrom("settlement")
    .select(["id", "state", "number", "amount", "converted"])
    .where("state", "in", ["due", "accumulating"])
    .$narrowType<Pick<NotBegun, "state">>();
}

const withKept =
  (keptOf: KeptOf) =>
  (row: Omit<NotBegun, "kept">): NotBegun => ({ ...row, kept: keptOf(row) });

/** The number of settlements per query of `chooseNotBegun`. */
const PAGE = 100;

/**
 * Returns settlements of a merchant that have not begun and that together cover an amount, or all of them when they do not:
 * `own` first, then those that are converted as `converted` says, then the others, each the oldest first. Reads only as many as
 * it needs. Does not lock them. Nothing is kept of a settlement without `keptOf`.
 */
export async function chooseNotBegun(
  db: Db,
  args: { merchantId: string; asset: string; own: string | null; converted: boolean; amount: bigint; keptOf?: KeptOf },
): Promise<NotBegun[]> {
  const { merchantId, asset, own, converted, amount, keptOf = keepNothing } = args;
  const ofMerchant = selectUnbegun(db).where("merchant_id", "=", merchantId).where("asset", "=", asset);
  const readPage = (kind: boolean, after: number) =>
    ofMerchant.where("converted", "=", kind).where("number", ">", after).orderBy("number").limit(PAGE).execute();
  const chosen = (await ofMerchant.where("id", "=", own ?? "").execute()).map(withKept(keptOf));
  let left = amount - sumOf(chosen);
  for (const kind of [converted, !converted])
    for (let after = 0, full = true; full && left > 0n; ) {
      const rows = await readPage(kind, after);
      for (const row of rows.map(withKept(keptOf))) {
        if (left <= 0n || row.id === own || row.kept === row.amount) continue;
        chosen.push(row);
        left -= sumOf([row]);
      }
      after = rows.at(-1)?.number ?? after;
      full = rows.length === PAGE;
    }
  return chosen;
}

/** Locks those of these settlements that still have not begun, until the commit. Returns them as they are now, in the order of `ids`. */
export async function lockNotBegun(db: Db, ids: readonly string[], keptOf = keepNothing): Promise<NotBegun[]> {
  const rows = await selectUnbegun(db).where(sql<boolean>`id = any(${ids})`).orderBy("id").forUpdate().execute();
  const byId = new Map(rows.map((row) => [row.id, withKept(keptOf)(row)]));
  return ids.flatMap((id) => byId.get(id) ?? []);
}

/** Returns a settlement that a transfer refers to, locked until the commit. Throws when it does not exist. */
export async function findSettlement(db: Db, id: string): Promise<SettlementRow> {
  return db.selectFrom("settlement").selectAll().where("id", "=", id).forUpdate().executeTakeFirstOrThrow();
}

/** Adds to the amount of a locked settlement. */
export async function increaseSettlement(db: Db, args: { id: string; by: bigint }): Promise<void> {
  const amount = sql<bigint>`amount + ${args.by}`;
  await db.updateTable("settlement").set({ amount }).where("id", "=", args.id).execute();
}

/** Stores the account that a settlement was paid to (CAIP-10). */
export async function recordDestination(db: Db, args: { id: string; destination: string }): Promise<void> {
  await db.updateTable("settlement").set({ destination: args.destination }).where("id", "=", args.id).execute();
}

/** Returns the total of what may be deducted from settlements, minor units. */
export const sumOf = (settlements: readonly Pick<NotBegun, "amount" | "kept">[]): bigint =>
  settlements.reduce((sum, { amount, kept }) => sum + amount - kept, 0n);

/** Subtracts from the amount of a locked settlement, which must stay above zero. */
export async function reduceSettlement(db: Db, args: { id: string; by: bigint }): Promise<void> {
  await db
    .updateTable("settlement")
    .set({ amount: sql`amount - ${args.by}` })
    .where("id", "=", args.id)
    .execute();
}

/** Stores the destination and the transaction of a settlement that a buyer paid directly. */
export async function recordDirectPayment(
  db: Db,
  args: { id: string; destination: string; txHash: string },
): Promise<void> {
  const { id, destination, txHash: tx_hash } = args;
  await db.updateTable("settlement").set({ destination, tx_hash }).where("id", "=", id).execute();
}

/** Makes a settlement due and returns it. Undefined when it has begun or still accumulates. */
export async function makeSettlementDue(
  db: Db,
  { id, at }: { id: string; at: Date },
): Promise<Pick<SettlementRow, "merchant_id" | "asset"> | undefined> {
  return db
    .updateTable("settlement")
    .set({ due_at: at })
    .where("id", "=", id)
    .where("state", "=", "due")
    .returning(["merchant_id", "asset"])
    .executeTakeFirst();
}

/**
 * Moves settlements to `paying` with the destinations that their payouts were signed for, and returns the ids of those that
 * moved. A settlement stays whose amount or registered destination has changed since then, or whose merchant's payouts an
 * operator has held.
 */
export async function moveSettlementsToPaying(
  db: Db,
  signed: readonly { id: string; destination: string | null; amount: bigint }[],
  at: Date,
): Promise<string[]> {
  const ids = signed.map(({ id }) => id);
  const destinations = signed.map((one) => one.destination);
  const amounts = signed.map(({ amount }) => amount);
  const destination = sql<string>`(select f.destination from unnest(${ids}::text[], ${destinations}::text[]) as f (id, destination) where f.id = settlement.id)`;
  const where = sql`(id, amount) in (select * from unnest(${ids}::text[], ${amounts}::numeric[]))
    and exists (select from settlement_destination d where d.merchant_id = settlement.merchant_id
      and d.asset = settlement.asset and d.destination = ${destination})
    and exists (select from merchant m where m.id = settlement.merchant_id and m.payouts_held_at is null)`;
  const set = { destination, due_at: null };
  return moveRows(db, "settlement", { ids, from: "due", to: "paying", at, set, where });
}
