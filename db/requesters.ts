import { type RawBuilder, sql } from "kysely";
import type { PaymentRow } from "./payments.ts";
import type { Db } from "./tables.ts";

/** Who has requested options, by a name that says nothing of it; `isOne` when it is one instance or session. */
type Named = { name: string; isOne: boolean };

/**
 * Notes who has requested a payment's options: the first one by name, and then only that there was another one, so that
 * any number of strangers costs one row two updates.
 */
export async function noteRequester(
  db: Db,
  payment: Pick<PaymentRow, "id" | "requester" | "shared">,
  { name }: Named,
): Promise<void> {
  if (payment.shared || payment.requester === name) return;
  await sql`
    update payment set requester = coalesce(requester, ${name}), shared = requester is not null
    where id = ${payment.id} and not shared and requester is distinct from ${name}`.execute(db);
}

const allowed = sql`exists (select from account a where a.id = payment.account_id and a.wallets_cancel)`;
const waits = sql`exists (select from attempt t where t.payment_id = payment.id and t.state = 'waiting')`;

/** SQL: a payment that this requester may cancel. */
export function isCancellable({ name, isOne }: Named): RawBuilder<unknown> {
  return sql`${isOne} and requester = ${name} and not shared and ${allowed} and not ${waits}`;
}

/** Says why a payment that awaits its buyer was not cancelled by a requester. */
export async function findCancelObstacle(
  db: Db,
  payment: Pick<PaymentRow, "id" | "requester" | "shared">,
  { name, isOne }: Named,
): Promise<string> {
  const { rows } = await sql<{ allowed: boolean; waits: boolean }>`
    select ${allowed} as allowed, ${waits} as waits from payment where id = ${payment.id}`.execute(db);
  const [row] = rows;
  if (!row?.allowed) return "only the merchant may cancel this payment";
  if (!isOne || payment.requester === null || (payment.requester !== name && !payment.shared))
    return "only the wallet that has requested this payment's options may cancel it";
  if (payment.shared) return "others have requested this payment's options: only the merchant may cancel it";
  return row.waits ? "a confirm of this payment is being verified" : "the payment changes at this moment";
}

/** Lets wallets and checkout pages cancel an account's payments, or not. False when there is no such account. */
export async function setWalletsCancel(db: Db, args: { accountId: string; allow: boolean }): Promise<boolean> {
  const row = await db
    .updateTable("account")
    .set({ wallets_cancel: args.allow })
    .where("id", "=", args.accountId)
    .returning("id")
    .executeTakeFirst();
  return row !== undefined;
}
