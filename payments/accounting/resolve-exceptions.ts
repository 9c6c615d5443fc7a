import { getChainDriver } from "../../chains/find-chain-driver.ts";
import { returnKey } from "../../chains/natural-key.ts";
import { inTransaction } from "../../db/in-transaction.ts";
import { type AuditActor, type AuditEntry, insertAuditEntries } from "../../db/queries/audit-entries.ts";
import {
  type ExceptionRow,
  findMovementPlace,
  listOpenExceptions,
  lockException,
} from "../../db/queries/exceptions.ts";
import { insertGroups } from "../../db/queries/ledger-groups.ts";
import { listPaidAssets } from "../../db/queries/payment-terms.ts";
import { listPayments } from "../../db/queries/payments.ts";
import { wakeResolved } from "../../db/queries/payout-queue.ts";
import { insertRefund } from "../../db/queries/refunds.ts";
import type { PaymentState } from "../../db/states.ts";
import type { Db } from "../../db/tables.ts";
import type { Networks } from "../../runtime/networks/read-networks.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import { newId } from "../ids.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { accrue } from "../payouts/accrue.ts";
import { findSentReason } from "../payouts/sent-before-restore.ts";
import { chainOf } from "../payouts/sign-payout.ts";
import { accounts } from "./ledger-accounts.ts";

/**
 * The kind of an exception, which names its cause as far as that is known:
 * - `late`: the money names a payment or quote that had ended.
 * - `double`: the payment had already succeeded with other money.
 * - `wrong_amount`: the payment asked for another amount.
 * - `unknown`: the money names no payment.
 * - `forgotten`: a payout that a restored database does not know was sent; the watcher adopts it.
 * - `overpaid`: the excess that such a payout moved beyond what was owed.
 * - `left`: money left the treasury without us.
 * - `dust`: the sum of a day's unmatched deposits below the asset's dust amount.
 */
export type ExceptionKind = "late" | "double" | "wrong_amount" | "unknown" | "forgotten" | "overpaid" | "left" | "dust";
/** An open exception, as operators see it. Its fields are those of the row. */
export type ExceptionView = {
  kind: ExceptionKind;
  id: number;
  at: Date;
  chain: string;
  txHash: string | null;
  asset: string;
  amount: bigint;
  payer: string | null;
  receiver: string | null;
  paymentId: string | null;
  paymentState: PaymentState | null;
  transferId: string | null;
  perhaps: string | null;
  note: string | null;
};

type Deps = Pick<PaymentDeps, "now"> & { db: Db };
/** The networks give the nonce of a return, which the chain may show. */
type ChainDeps = Deps & { networks: Pick<Networks, "deployment" | "chains"> };
/** A closed exception. `amount` is in minor units of `asset`. */
export type Resolved = { id: number; amount: bigint; asset: string };

/** Lists open exceptions, oldest first. */
export async function listExceptions({ db }: Pick<Deps, "db">, limit: number): Promise<ExceptionView[]> {
  return (await listOpenExceptions(db, { limit })).map(toExceptionView);
}

/** Returns an open exception; undefined when there is none with this id. */
export async function findException({ db }: Pick<Deps, "db">, id: number): Promise<ExceptionView | undefined> {
  const [row] = await listOpenExceptions(db, { id, limit: 1 });
  return row && toExceptionView(row);
}

const toExceptionView = (row: ExceptionRow): ExceptionView => ({
  kind: classifyException(row),
  id: row.id,
  at: row.at,
  chain: row.chain,
  txHash: row.tx_hash,
  asset: row.asset,
  amount: row.amount,
  payer: row.payer,
  receiver: row.receiver,
  paymentId: row.payment_id,
  paymentState: row.payment_state,
  transferId: row.transfer_id,
  perhaps: row.perhaps,
  note: row.note,
});

/** Returns the kind of an exception. Pure. */
export function classifyException(
  row: Pick<ExceptionRow, "amount" | "asked" | "booked" | "payment_id" | "payment_state" | "transfer_id">,
): ExceptionKind {
  if (row.booked === "dust") return "dust";
  if (row.booked === "overpaid") return "overpaid";
  if (row.amount < 0n) return row.transfer_id === null ? "left" : "forgotten";
  if (row.payment_id === null) return "unknown";
  if (row.asked !== null && row.asked !== row.amount) return "wrong_amount";
  return row.payment_state === "succeeded" ? "double" : "late";
}

/** The refusal of money that does not name the payment to which it would be assigned. */
const DOES_NOT_NAME =
  "the money does not name this payment: a separate signer would refuse the merchant's payouts that include it. Return it, or read the runbook exceptions-open about --unnamed";

/** The refusal of money in an asset that the merchant is not paid in, for example because it is owed such payments in another one. */
const NO_DESTINATION =
  "the merchant has no destination for the asset that was paid, so its payout would wait. Return the money, or register a destination first";

/**
 * Credits the money of an exception to the merchant of the payment that it was meant for, in the asset that was paid and without a
 * fee. It is paid out like any other credit. The payment does not change. Refuses with `payment_not_found` and `invalid_state`, also
 * when the merchant has no destination for the asset, because the payout would wait for one, when the money may have been returned
 * before a restore, and when the money does not name the payment: a separate signer does not count it as the merchant's, and would
 * refuse payouts that include it.
 * @param args.unnamed assigns also money that does not name the payment
 */
export function assignException(
  deps: ChainDeps,
  args: { actor: AuditActor; id: number; paymentId: string; unnamed?: boolean },
): Promise<Result<Resolved>> {
  return resolve(deps, { ...args, action: "exception.assigned" }, async (db, exception) => {
    const [payment] = await listPayments(db, [args.paymentId]);
    if (payment?.mode !== "live") return refuse("payment_not_found", `there is no live payment ${args.paymentId}`);
    if (exception.payment_id !== payment.id && !args.unnamed) return refuse("invalid_state", DOES_NOT_NAME);
    const { asset, amount } = exception;
    const paid = await listPaidAssets(db, payment.merchant_id);
    if (!paid.some((one) => one.asset === asset)) return refuse("invalid_state", NO_DESTINATION);
    const returned = await findReturnedReason(deps, db, exception);
    if (returned) return refuse("invalid_state", returned);
    await accrue(deps, db, [{ payment, asset, amount }]);
    return done({ account: accounts.payable(payment.merchant_id), note: `for ${payment.id}` });
  });
}

/**
 * Returns the money of an exception to its sender, as a refund. Refuses with `invalid_state`, also when the sender is an
 * address that cannot receive money: the payer of minted tokens is the zero address.
 */
export function returnException(deps: Deps, args: { actor: AuditActor; id: number }): Promise<Result<Resolved>> {
  return resolve(deps, { ...args, action: "exception.returned" }, async (db, { id, chain, asset, amount, payer }) => {
    if (payer === null) return refuse("invalid_state", "the sender of the money is not on record");
    const error = getChainDriver(chain).validateAddress(payer);
    if (error) return refuse("invalid_state", `the money cannot be returned: its sender ${error}`);
    const at = deps.now();
    const row = {
      id: newId("rfnd", at),
      payment_id: null,
      exception_id: id,
      merchant_id: null,
      number: 1,
      owed_asset: null,
      owed_amount: null,
    };
    await insertRefund(db, { ...row, asset, amount, receiver: payer, state: "due", created_at: at, due_at: at });
    return done({ account: accounts.inTransit, note: `sent back by ${row.id}` });
  });
}

/**
 * Books an exception as the operator's own capital, as money from or to the cold address, or as a loss (or gain). Refuses with
 * `invalid_state`, also when the money may have been returned before a restore.
 */
export function bookException(
  deps: ChainDeps,
  args: { actor: AuditActor; id: number; as: "capital" | "cold" | "losses"; note: string },
): Promise<Result<Resolved>> {
  const account = accounts[args.as];
  const work = async (db: Db, exception: ExceptionRow) => {
    const returned = await findReturnedReason(deps, db, exception);
    return returned ? refuse("invalid_state", returned) : done({ account, note: args.note });
  };
  return resolve(deps, { ...args, action: "exception.booked" }, work, { isOutgoing: true });
}

/** Books the group that closes an exception. Its unique key is the exception, so an exception is closed only once. */
async function resolve(
  deps: Deps,
  { actor, id, action }: Pick<AuditEntry, "actor" | "action"> & { id: number },
  work: (db: Db, exception: ExceptionRow) => Promise<Result<{ account: string; note: string }>>,
  { isOutgoing = false } = {},
): Promise<Result<Resolved>> {
  const resolved = await inTransaction<Result<Resolved>>(deps.db, async (db) => {
    await lockException(db, id);
    const [exception] = await listOpenExceptions(db, { id, limit: 1 });
    if (!exception) return refuse("invalid_state", `there is no open exception ${id}`);
    const { asset, amount } = exception;
    if (amount < 0n && !isOutgoing)
      return refuse("invalid_state", "the money left the treasury: there is nothing to assign or return");
    const to = await work(db, exception);
    if (!to.ok) return to;
    const { account, note } = to.value;
    const entries = [
      { account: accounts.exceptions, asset, amount },
      { account, asset, amount: -amount },
    ];
    const at = deps.now();
    await insertGroups(db, [{ kind: "exception_resolved", subject: String(id), entries, note }], at);
    const after = { asset, amount: amount.toString(), account, note };
    await insertAuditEntries(db, [{ actor, action, subject: String(id), before: null, after, at }]);
    return done({ id, amount, asset });
  });
  if (resolved.ok && !deps.db.isTransaction) await wakeCovered(deps.db, resolved.value);
  return resolved;
}

/**
 * Returns the reason if the money of an exception may have been returned before a restore of the database. If it were assigned or booked,
 * it would be paid twice. Its return is adopted when it is returned again: it has the same nonce.
 */
async function findReturnedReason(
  deps: Pick<ChainDeps, "networks">,
  db: Db,
  { id, asset, amount }: ExceptionRow,
): Promise<string | undefined> {
  if (amount < 0n) return undefined;
  const movement = await findMovementPlace(db, id);
  const key = movement && returnKey({ chain: movement.chain, txHash: movement.tx_hash, logIndex: movement.log_index });
  const reason = await findSentReason(deps, db, { asset, key });
  return reason && `the money may have been returned, and only \`exceptions return\` sends nothing twice: ${reason}`;
}

/**
 * Wakes the payouts that waited for inventory, which a resolution may cover, or for a lost refund that it resolves. A caller that
 * resolves in a transaction of its own calls this after its commit: the audit entry locks the log, and another transaction may hold a
 * queue and wait for the log.
 */
export function wakeCovered(db: Db, { asset }: Pick<Resolved, "asset">): Promise<void> {
  return wakeResolved(db, chainOf(asset));
}
