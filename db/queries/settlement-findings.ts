import { sql } from "kysely";
import { anyOf } from "../any-of.ts";
import type { Finding } from "../findings.ts";
import type { Db } from "../tables.ts";
import { anyFound, type CheckScope, findInPages, payoutsSince } from "./check-scope.ts";

/** How many payments one statement compares. It takes about a quarter of a second. */
const PAYMENTS = 5_000;
/** A settlement of more payments is read in statements of its own. */
const FEW = 500;
/** How many settlements one statement counts or compares. */
const SETTLEMENTS = 200;

/**
 * SQL: what a payment (`p`) adds to its settlement (`s`), minor units, less what refunds have deducted from the payment.
 * A payment adds nothing unless the ledger has booked it, for the settlement's merchant and in its asset.
 *
 * `limit 1` keeps Postgres from reading all transfers to join them: it looks up those of each payment.
 */
const part = sql`
  case when p.state = 'succeeded' and p.merchant_id = s.merchant_id and coalesce(p.owed_asset, p.paid_asset) = s.asset
      and (
        select g.id from transfer t join ledger_group g on g.kind = 'payment' and g.subject = t.id
        where t.payment_id = p.id and t.purpose = 'payment' limit 1) is not null
    then coalesce(p.owed_amount, p.paid_amount - p.fee)
      - (select coalesce(sum(d.amount), 0) from settlement_deduction d where d.payment_id = p.id)
    else 0 end`;

/** SQL: the ids of settlements that are being paid, of those of the scope that were paid, and of those that a former check has found. */
const begunIds = (scope: CheckScope) => sql`
  select id from settlement where state = 'paying'
  union select id from settlement where paid_at >= ${payoutsSince(scope)} and state = 'paid'
  union select id from settlement where id = ${anyFound} and state = 'paid'`;

type Settlement = { id: string; merchant_id: string; asset: string; amount: bigint };
/** A settlement, the number of its payments, and what they add up to. */
type Explained = Settlement & { payments: number; parts: bigint };

/**
 * Finds settlements whose amount does not follow from their payments: settlements without payments, and those with
 * another amount.
 *
 * Some settlements differ from their payments for a reason that the ledger shows: an exception was assigned to the
 * merchant, a refund was reduced, or a restored database had forgotten a payout. The amounts of all of the merchant's
 * settlements in the asset then add up to those of their payments and of these bookings. A difference is reported when
 * they do not. Reads the merchant's history only in that case.
 */
export async function findUnexplainedSettlements(db: Db, scope: CheckScope): Promise<Finding[]> {
  const { rows } = await sql<{ id: string }>`
    select id from settlement where state in ('due', 'accumulating')
    union ${begunIds(scope)}`.execute(db);
  const differing: Explained[] = [];
  for await (const explained of explain(db, rows)) if (explained.amount !== explained.parts) differing.push(explained);
  const accepted = new Map<string, Promise<boolean>>();
  const findings: Finding[] = [];
  for (const settlement of differing) {
    const owner = `${settlement.merchant_id} ${settlement.asset}`;
    const isAccepted = accepted.get(owner) ?? isExplainedByLedger(db, settlement);
    accepted.set(owner, isAccepted);
    if (!(await isAccepted)) findings.push(toFinding(settlement));
  }
  return findings;
}

/** Finds settlements that are being paid or were paid, with another amount than the ledger has booked, or without a transfer. */
export async function findUnbookedSettlements(db: Db, scope: CheckScope): Promise<Finding[]> {
  const { rows: begun } = await sql<{ id: string }>`${begunIds(scope)}`.execute(db);
  return findInPages(begun, (ids) => findUnbooked(db, ids));
}

async function findUnbooked(db: Db, ids: readonly string[]): Promise<Finding[]> {
  const { rows } = await sql<Finding>`
    with begun as materialized (
      select s.id, s.asset, s.amount, s.tx_hash, (
        select coalesce(sum(e.amount), 0) from ledger_group g join ledger_entry e on e.group_id = g.id
        where g.kind in ('settlement_begun', 'settlement_changed') and g.subject = s.id
          and e.account = 'payable:' || s.merchant_id and e.asset = s.asset
      ) as booked
      from settlement s where s.id = ${anyOf(ids)} and s.state in ('paying', 'paid')
    )
    select 'settlement_unbooked' as kind, id as subject, asset, amount::text as found, booked::text as expected
    from begun where amount <> booked
    union all
    select 'settlement_without_transfer', id, asset, amount::text, '0' from begun b
    where (select t.id from transfer t where t.settlement_id = b.id and t.purpose = 'settlement' limit 1) is null
      and not (tx_hash is not null and exists (select from payment p where p.settlement_id = b.id and p.direct))
    order by 1, 2`.execute(db);
  return rows;
}

const toFinding = ({ id, asset, amount, payments, parts }: Explained): Finding => ({
  kind: payments === 0 ? "settlement_without_payments" : "settlement_differs",
  subject: id,
  asset,
  found: String(amount),
  expected: String(parts),
});

/** Returns true if the ledger shows why all of a merchant's settlements in an asset differ from their payments. */
async function isExplainedByLedger(db: Db, owner: Pick<Settlement, "merchant_id" | "asset">): Promise<boolean> {
  const settlements = await db
    .selectFrom("settlement")
    .select("id")
    .where("merchant_id", "=", owner.merchant_id)
    .where("asset", "=", owner.asset)
    .execute();
  let difference = 0n;
  for await (const { amount, parts } of explain(db, settlements)) difference += amount - parts;
  const { rows } = await sql<{ amount: bigint }>`
    select (select coalesce(sum(-e.amount), 0) from ledger_entry e join ledger_group g on g.id = e.group_id
        where e.account = 'payable:' || ${owner.merchant_id}::text and e.account like 'payable:%' and e.asset = ${owner.asset}
          and g.kind in ('exception_resolved', 'exception_reversed', 'refund_begun', 'refund_reduced', 'refund_raised'))
      + (select coalesce(sum(d.amount), 0) from settlement s join settlement_deduction d on d.settlement_id = s.id
        where s.merchant_id = ${owner.merchant_id} and s.asset = ${owner.asset}) as amount`.execute(db);
  return rows[0]?.amount === difference;
}

/** Adds up the payments of settlements. No statement reads more than a few thousand payments, however many a settlement has. */
async function* explain(db: Db, settlements: readonly { id: string }[]): AsyncGenerator<Explained> {
  for (let at = 0; at < settlements.length; at += SETTLEMENTS) {
    const ids = settlements.slice(at, at + SETTLEMENTS).map(({ id }) => id);
    let few: string[] = [];
    let payments = 0;
    for (const counted of await countPayments(db, ids)) {
      if (counted.payments > FEW) {
        yield await addUp(db, counted.id);
        continue;
      }
      few.push(counted.id);
      payments += counted.payments;
      if (payments <= PAYMENTS - FEW) continue;
      yield* await readPage(db, few, { after: "", limit: FEW });
      few = [];
      payments = 0;
    }
    if (few.length > 0) yield* await readPage(db, few, { after: "", limit: FEW });
  }
}

/** Counts the payments of settlements up to one more than `FEW`. */
async function countPayments(db: Db, ids: readonly string[]): Promise<{ id: string; payments: number }[]> {
  const { rows } = await sql<{ id: string; payments: number }>`
    select s.id, counted.payments from unnest(${ids}::text[]) s (id) cross join lateral (
      select count(*)::int as payments from (select from payment p where p.settlement_id = s.id limit ${FEW + 1}) first
    ) counted`.execute(db);
  return rows;
}

/** Adds up the payments of one settlement, page by page. */
async function addUp(db: Db, id: string): Promise<Explained> {
  let total: Explained | undefined;
  for (let after = ""; ; ) {
    const [page] = await readPage(db, [id], { after, limit: PAYMENTS });
    if (page === undefined) throw new Error(`settlement ${id} is gone`);
    total = { ...page, payments: (total?.payments ?? 0) + page.payments, parts: (total?.parts ?? 0n) + page.parts };
    if (page.payments < PAYMENTS || page.last === null) return total;
    after = page.last;
  }
}

/** Adds up to `limit` payments of each settlement, those whose id follows `after`. */
async function readPage(
  db: Db,
  ids: readonly string[],
  { after, limit }: { after: string; limit: number },
): Promise<(Explained & { last: string | null })[]> {
  const { rows } = await sql<Explained & { last: string | null }>`
    select s.id, s.merchant_id, s.asset, s.amount, added.* from settlement s cross join lateral (
      select count(*)::int as payments, coalesce(sum(part), 0) as parts, max(id) as last from (
        select p.id, ${part} as part from payment p where p.settlement_id = s.id and p.id > ${after}
        order by p.id limit ${limit}
      ) page
    ) added where s.id = ${anyOf(ids)}`.execute(db);
  return rows;
}
