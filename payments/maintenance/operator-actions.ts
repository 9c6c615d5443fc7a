import { inTransaction } from "../../db/in-transaction.ts";
import {
  findAccountForUpdate,
  listAccountsWithCounts,
  updateDestinationWaitingHours,
} from "../../db/queries/accounts.ts";
import { makeAttemptsDue } from "../../db/queries/attempts.ts";
import { type AuditActor, insertAuditEntries } from "../../db/queries/audit-entries.ts";
import { requestRetries } from "../../db/queries/failed-bookings.ts";
import { findMerchantDebt, findOwner, findPayoutHolds, listDeletedMerchantRows } from "../../db/queries/merchants.ts";
import { makeTransfersDue } from "../../db/queries/payment-transfers.ts";
import {
  findPaymentRow,
  listNewestPayments,
  makePaymentDue,
  type NewestFilter,
  type PaymentRow,
} from "../../db/queries/payments.ts";
import { wakeRefunds, wakeSettlements } from "../../db/queries/payout-queue.ts";
import { lockUnbegunRefunds, makeRefundsDue } from "../../db/queries/refunds.ts";
import { setWalletCancellationAllowed } from "../../db/queries/requesters.ts";
import { lockNotBegun, makeSettlementDue } from "../../db/queries/settlements.ts";
import type { PaymentState } from "../../db/states.ts";
import type { Db, Mode } from "../../db/tables.ts";
import type { PaymentDeps } from "../payment-deps.ts";

type Deps = Pick<PaymentDeps, "now"> & { db: Db };

export type AccountView = {
  id: string;
  name: string;
  version: string;
  createdAt: Date;
  /** True if wallets and checkout pages may cancel the account's payments. */
  walletCancellationAllowed: boolean;
  /** How long changes of its merchants' destinations wait. */
  destinationWaitingHours: number;
  merchants: number;
  keys: number;
};
export type PaymentLine = {
  id: string;
  mode: Mode;
  state: PaymentState;
  merchantId: string;
  reference: string | null;
  amount: string;
  createdAt: Date;
  updatedAt: Date;
};

/** Lists accounts, newest first, or the account with the given id. */
export async function listAccounts({ db }: Pick<Deps, "db">, id?: string): Promise<AccountView[]> {
  const rows = await listAccountsWithCounts(db, id);
  return rows.map(
    ({
      id,
      name,
      api_version,
      created_at,
      wallet_cancellation_allowed,
      destination_waiting_hours,
      merchants,
      keys,
    }) => ({
      id,
      name,
      version: api_version,
      createdAt: created_at,
      walletCancellationAllowed: wallet_cancellation_allowed,
      destinationWaitingHours: destination_waiting_hours,
      merchants,
      keys,
    }),
  );
}

/** Sets whether wallets and checkout pages may cancel an account's payments. */
export async function allowWalletCancellation(
  { db, now }: Deps,
  args: { actor: AuditActor; accountId: string; allow: boolean },
): Promise<void> {
  const { actor, accountId: subject, allow } = args;
  await inTransaction(db, async (db) => {
    const account = await findAccountForUpdate(db, subject);
    await setWalletCancellationAllowed(db, args);
    const before = account ? { walletCancellationAllowed: account.wallet_cancellation_allowed } : null;
    const after = { walletCancellationAllowed: allow };
    await insertAuditEntries(db, [{ actor, action: "account.updated", subject, before, after, at: now() }]);
  });
}

/** Sets how long changes of destinations of an account's merchants wait. Changes that wait already keep their time. */
export async function setDestinationWait(
  { db, now }: Deps,
  args: { actor: AuditActor; accountId: string; hours: number },
): Promise<void> {
  const { actor, accountId: subject, hours } = args;
  await inTransaction(db, async (db) => {
    const account = await findAccountForUpdate(db, subject);
    await updateDestinationWaitingHours(db, { accountId: subject, hours });
    const before = account ? { destinationWaitingHours: account.destination_waiting_hours } : null;
    const after = { destinationWaitingHours: hours };
    await insertAuditEntries(db, [{ actor, action: "account.updated", subject, before, after, at: now() }]);
  });
}

/** Lists payments of all accounts, newest first. An undefined filter matches everything. */
export async function listPaymentLines({ db }: Pick<Deps, "db">, filter: NewestFilter): Promise<PaymentLine[]> {
  const rows = await listNewestPayments(db, filter);
  return rows.map((row) => ({
    id: row.id,
    mode: row.mode,
    state: row.state,
    merchantId: row.merchant_id,
    reference: row.reference_id,
    amount: `${row.value} ${row.unit}`,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  }));
}

/** Returns the account and mode of a merchant, also of a deleted one; undefined when there is no such merchant. */
export async function findMerchantOwner(
  { db }: Pick<Deps, "db">,
  merchantId: string,
): Promise<{ accountId: string; mode: Mode; evenDeleted: true } | undefined> {
  const row = await findOwner(db, merchantId);
  return row && { accountId: row.account_id, mode: row.mode, evenDeleted: true };
}

/**
 * A merchant's balances that have not been paid out and its payouts that are not final, in minor units of each asset, when it was
 * deleted, and since when its payouts are held.
 */
export type MerchantDebt = {
  deletedAt: Date | null;
  payoutsHeldSince: Date | null;
  owed: { asset: string; amount: bigint; inTransit: bigint }[];
};
export type DeletedMerchant = MerchantDebt & { id: string; name: string };

/** Returns the balances of a merchant, also of a deleted one; undefined when there is no such merchant. */
export async function readDebt({ db }: Pick<Deps, "db">, merchantId: string): Promise<MerchantDebt | undefined> {
  const row = await findMerchantDebt(db, merchantId);
  return row && { deletedAt: row.deleted_at, payoutsHeldSince: row.payouts_held_at, owed: row.owed };
}

/** Lists the deleted merchants of an account and mode with their balances, most recently deleted first. */
export async function listDeletedMerchants(
  { db }: Pick<Deps, "db">,
  args: { accountId: string; mode: Mode; limit: number },
): Promise<DeletedMerchant[]> {
  const rows = await listDeletedMerchantRows(db, args);
  return rows.map(({ id, name, deleted_at: deletedAt, payouts_held_at: payoutsHeldSince, owed }) => ({
    id,
    name,
    deletedAt,
    payoutsHeldSince,
    owed,
  }));
}

/**
 * Makes all unfinished rows of a payment due now, so that the sweep enqueues their jobs within a second:
 * - attempts that wait for verification
 * - transfers that are ready, also those on hold
 * - a due settlement and due refunds; if an obstacle blocks their payout queue, the obstacle is checked again
 * - the payment itself, if its deadline has passed
 * Idempotent. Returns the number of rows of each kind, and since when the merchant's payouts are held: a settlement then waits
 * for their release. Returns undefined when there is no such payment.
 */
export async function retryPayment(
  deps: Deps,
  args: { actor: AuditActor; paymentId: string },
): Promise<{ due: Record<string, number>; payoutsHeldSince: Date | null } | undefined> {
  const { actor, paymentId: subject } = args;
  const at = deps.now();
  return inTransaction(deps.db, async (db) => {
    const payment = await findPaymentRow(db, subject);
    if (!payment) return undefined;
    const due = await makeAllDue(db, payment, at);
    await insertAuditEntries(db, [{ actor, action: "payment.retried", subject, before: null, after: due, at }]);
    const holds = await findPayoutHolds(db, [payment.merchant_id]);
    return { due, payoutsHeldSince: holds.get(payment.merchant_id) ?? null };
  });
}

/** Retries one failed booking, or all of them, within seconds. Returns the number of failed bookings that are retried. */
export async function retryFailedBookings(
  { db, now }: Deps,
  args: { actor: AuditActor; id: number | undefined },
): Promise<number> {
  const { actor, id } = args;
  return inTransaction(db, async (db) => {
    const count = await requestRetries(db, id);
    const entry = {
      actor,
      action: "failed_booking.retried",
      subject: id === undefined ? "all" : String(id),
      at: now(),
    };
    if (count > 0) await insertAuditEntries(db, [{ ...entry, before: null, after: { count } }]);
    return count;
  });
}

async function makeAllDue(
  db: Db,
  { id: paymentId, settlement_id: settlementId }: PaymentRow,
  at: Date,
): Promise<Record<string, number>> {
  const counts = {
    payment: await makePaymentDue(db, { id: paymentId, at }),
    attempts: await makeAttemptsDue(db, { paymentId, at }),
    transfers: await makeTransfersDue(db, { paymentId, settlementId, at }),
  };
  // Lock order: refunds, settlements, queues of refunds, then those of settlements (avoids deadlock). A new due time locks the queue.
  await lockUnbegunRefunds(db, paymentId);
  if (settlementId !== null) await lockNotBegun(db, [settlementId]);
  const refunds = await makeRefundsDue(db, { paymentId, at });
  for (const { merchant_id, asset, owed_asset } of refunds)
    await wakeRefunds(db, { merchantId: merchant_id ?? "", asset: owed_asset ?? asset });
  const settlement = settlementId === null ? undefined : await makeSettlementDue(db, { id: settlementId, at });
  if (settlement) await wakeSettlements(db, { merchantId: settlement.merchant_id, asset: settlement.asset });
  return { ...counts, settlements: settlement ? 1 : 0, refunds: refunds.length };
}
