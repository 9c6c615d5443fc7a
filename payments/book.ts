import { sql } from "kysely";
import { creditMerchants, type Group, insertGroups } from "../db/ledger.ts";
import { moveRows } from "../db/moves.ts";
import { listPayments, type PaymentRow } from "../db/payments.ts";
import { insertSettlements, type NewSettlement } from "../db/settlements.ts";
import type { Db } from "../db/tables.ts";
import type { ConfirmedTransfer, TransferRow } from "../db/transfers.ts";
import type { Books } from "../transfers/watch.ts";
import type { PaymentDeps } from "./deps.ts";
import { newId } from "./ids.ts";
import { paymentGroup, settlementPaidGroup } from "./ledger.ts";

/** After this the sweep rings again for a settlement that was not begun, milliseconds. */
const RING_AGAIN_MS = 2_000;

/** What the watcher's findings mean for payments and settlements. */
export function createBooks(deps: PaymentDeps): Books {
  return {
    confirmed: (db, confirmed) => bookConfirmed(deps, db, confirmed),
    ended: (db, ended) => bookEnded(deps, db, ended),
  };
}

/** State, ledger, settlements and events of confirmed transfers, in the caller's transaction. */
async function bookConfirmed(deps: PaymentDeps, db: Db, confirmed: readonly ConfirmedTransfer[]): Promise<() => void> {
  const paid = await succeedPayments(
    deps,
    db,
    confirmed.filter((transfer) => transfer.purpose === "payment"),
  );
  const payouts = confirmed.filter((transfer) => transfer.purpose === "settlement");
  const settled = await finishSettlements(deps, db, payouts);
  await insertGroups(db, [...paid.groups, ...payouts.map(settlementPaidGroup)], deps.now());
  return () => {
    for (const { payment, chain } of paid.succeeded) {
      deps.metrics.paymentMoves.inc({ mode: payment.mode, from: "processing", to: "succeeded" });
      deps.metrics.confirmToSucceeded.observe({ chain }, (deps.now().getTime() - payment.confirmedAt.getTime()) / 1000);
    }
    if (settled > 0) deps.metrics.settlementMoves.inc({ mode: "live", from: "paying", to: "paid" }, settled);
    void deps.announce(paid.succeeded.map(({ payment }) => payment.id));
    const [first, ...others] = paid.settlements.map(({ id }) => id);
    if (first) void deps.ring("settle", [{ data: { settlementIds: [first, ...others] } }]);
  };
}

type Succeeded = { payment: PaymentRow & { confirmedAt: Date }; chain: string };

async function succeedPayments(
  deps: PaymentDeps,
  db: Db,
  transfers: readonly ConfirmedTransfer[],
): Promise<{ succeeded: Succeeded[]; groups: Group[]; settlements: NewSettlement[] }> {
  if (transfers.length === 0) return { succeeded: [], groups: [], settlements: [] };
  const at = deps.now();
  const byPayment = new Map(transfers.map((transfer) => [transfer.payment_id, transfer]));
  const ids = [...byPayment.keys()].filter((id) => id !== null);
  // One row of values per payment, so that one statement moves them all.
  const facts = sql`(select f.tx from unnest(${ids}::text[], ${ids.map((id) => byPayment.get(id)?.tx_hash)}::text[]) as f (id, tx) where f.id = payment.id)`;
  const moved = new Set(
    await moveRows(db, "payment", {
      ids,
      from: "processing",
      to: "succeeded",
      at,
      set: {
        tx_id: facts,
        paid_asset: sql`(select t.asset from transfer t where t.payment_id = payment.id)`,
        paid_amount: sql`(select t.amount from transfer t where t.payment_id = payment.id)`,
      },
    }),
  );
  const payments = (await listPayments(db, ids)).filter((payment) => moved.has(payment.id));
  const confirmedAt = await readConfirmTimes(db, ids);
  const owed = payments.flatMap((payment) => {
    const transfer = byPayment.get(payment.id);
    return transfer
      ? [{ payment, transfer, merchantId: payment.merchant_id, asset: transfer.asset, amount: transfer.amount }]
      : [];
  });
  const numbers = await creditMerchants(db, owed);
  const settlements = owed.map(({ payment, merchantId, asset, amount }, index) => ({
    id: newId("stl"),
    merchantId,
    mode: payment.mode,
    asset,
    amount,
    number: numbers[index] ?? 0,
    paymentId: payment.id,
  }));
  await insertSettlements(db, settlements, { at, dueAt: new Date(at.getTime() + RING_AGAIN_MS) });
  return {
    succeeded: owed.map(({ payment, transfer }) => ({
      payment: { ...payment, confirmedAt: confirmedAt.get(payment.id) ?? payment.created_at },
      chain: transfer.chain,
    })),
    groups: owed.map(({ transfer, merchantId }) => paymentGroup(transfer, merchantId)),
    settlements,
  };
}

/** When each payment's verified confirm was taken. */
async function readConfirmTimes(db: Db, paymentIds: readonly string[]): Promise<Map<string, Date>> {
  const rows = await db
    .selectFrom("attempt")
    .select(["payment_id", "created_at"])
    .where("payment_id", "in", paymentIds)
    .where("state", "=", "verified")
    .execute();
  return new Map(rows.map((row) => [row.payment_id, row.created_at]));
}

async function finishSettlements(deps: PaymentDeps, db: Db, payouts: readonly ConfirmedTransfer[]): Promise<number> {
  const at = deps.now();
  const ids = payouts.flatMap((transfer) => transfer.settlement_id ?? []);
  const moved = await moveRows(db, "settlement", {
    ids,
    from: "paying",
    to: "paid",
    at,
    set: { paid_at: at, due_at: null },
  });
  if (moved.length !== payouts.length) throw new Error("a payout was confirmed whose settlement is not being paid");
  return moved.length;
}

/** Money that can no longer come: its payment has expired. Payouts never run out (payments/settle.ts). */
async function bookEnded(deps: PaymentDeps, db: Db, ended: readonly TransferRow[]): Promise<() => void> {
  const ids = ended.flatMap((transfer) => transfer.payment_id ?? []);
  const detail = { reason: "the authorization ran out unused" };
  const moved = await moveRows(db, "payment", { ids, from: "processing", to: "expired", at: deps.now(), detail });
  return () => {
    deps.metrics.paymentMoves.inc({ mode: "live", from: "processing", to: "expired" }, moved.length);
    void deps.announce(moved);
  };
}
