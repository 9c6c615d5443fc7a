import { type RawBuilder, sql } from "kysely";
import { batchStatements, isTimeout } from "../batch-calls.ts";
import type { Db } from "../tables.ts";
import type { PaymentRow } from "./payments.ts";

/** A requester of options, by an opaque name. `isOne`: the name stands for a single wallet instance or checkout session. */
type Requester = { name: string; isOne: boolean };

/**
 * Records that a requester has asked for a payment's options. Stores the name of the first requester, and of others only
 * that there was one, so that any number of strangers causes at most two updates.
 */
export async function recordRequester(
  db: Db,
  payment: Pick<PaymentRow, "id" | "requester" | "has_other_requesters">,
  { name }: Requester,
): Promise<void> {
  if (payment.has_other_requesters || payment.requester === name) return;
  await updateRequesters(db, { id: payment.id, name });
}

/** Updates the requesters of payments, in the order of the calls. Concurrent calls share a statement and its commit. */
const updateRequesters = batchStatements(
  async (db: Db, asked: readonly { id: string; name: string }[]): Promise<undefined[]> => {
    // Payments are locked in the order of their ids, as everywhere (avoids deadlocks).
    await sql`
      with asked as (
        select id, (array_agg(name order by n))[1] as first, count(distinct name) > 1 as are_several
        from unnest(${asked.map(({ id }) => id)}::text[], ${asked.map(({ name }) => name)}::text[])
          with ordinality as a (id, name, n)
        group by id
      ), locked as (
        select p.id from payment p join asked a on a.id = p.id order by p.id for no key update of p
      )
      update payment p
      set requester = coalesce(p.requester, a.first), has_other_requesters = p.requester is not null or a.are_several
      from asked a join locked l on l.id = a.id
      where p.id = a.id and not p.has_other_requesters and (a.are_several or p.requester is distinct from a.first)`.execute(
      db,
    );
    return asked.map(() => undefined);
  },
  { isOnes: isTimeout },
);

const allowed = sql`exists (select from account a where a.id = payment.account_id and a.wallet_cancellation_allowed)`;
const waits = sql`exists (select from attempt t where t.payment_id = payment.id and t.state = 'waiting')`;

/** SQL: this requester may cancel the payment. */
export function isCancellable({ name, isOne }: Requester): RawBuilder<unknown> {
  return sql`${isOne} and requester = ${name} and not has_other_requesters and ${allowed} and not ${waits}`;
}

/** Returns the reason why a requester could not cancel a payment that requires action; an API error message. */
export async function findCancelObstacle(
  db: Db,
  payment: Pick<PaymentRow, "id" | "requester" | "has_other_requesters">,
  { name, isOne }: Requester,
): Promise<string> {
  const { rows } = await sql<{ allowed: boolean; waits: boolean }>`
    select ${allowed} as allowed, ${waits} as waits from payment where id = ${payment.id}`.execute(db);
  const [row] = rows;
  if (!row?.allowed) return "only the merchant may cancel this payment";
  if (!isOne || payment.requester === null || (payment.requester !== name && !payment.has_other_requesters))
    return "only the wallet that has requested this payment's options may cancel it";
  if (payment.has_other_requesters)
    return "others have requested this payment's options: only the merchant may cancel it";
  return row.waits ? "a confirm of this payment is being verified" : "the payment changes at this moment";
}

/** Sets whether wallets and checkout pages may cancel an account's payments. Returns false when the account does not exist. */
export async function setWalletCancellationAllowed(
  db: Db,
  args: { accountId: string; allow: boolean },
): Promise<boolean> {
  const row = await db
    .updateTable("account")
    .set({ wallet_cancellation_allowed: args.allow })
    .where("id", "=", args.accountId)
    .returning("id")
    .executeTakeFirst();
  return row !== undefined;
}
