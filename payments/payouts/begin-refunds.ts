import { commitIfOk } from "../../db/in-transaction.ts";
import { lockInventory, readInventory } from "../../db/queries/inventory.ts";
import { type Credit, debitMerchant, insertGroups } from "../../db/queries/ledger-groups.ts";
import { type DueRefund, listDueRefunds, moveToPaying } from "../../db/queries/refunds.ts";
import { insertDeductions } from "../../db/queries/settlement-deductions.ts";
import { chooseNotBegun, type KeptOf, lockNotBegun, type NotBegun, sumOf } from "../../db/queries/settlements.ts";
import { listStatementsOf } from "../../db/queries/signed-statements.ts";
import { insertTransfers, type NewTransfer } from "../../db/queries/transfers.ts";
import type { Db } from "../../db/tables.ts";
import { MAX_APPROVALS, type Statement } from "../../signer/protocol.ts";
import type { RefusalReason } from "../../signer/refusals.ts";
import { refundBegunGroup } from "../accounting/payout-groups.ts";
import { enqueueRelays } from "../lifecycle/relay-transfers.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { deductFromSettlement } from "./deduct-from-settlement.ts";
import { openHoldRefused } from "./hold-refused.ts";
import {
  type ForgottenPayouts,
  type ForgottenRefunds,
  findForgottenRefunds,
  isRereadFor,
  readKeptOf,
  wasPaid,
} from "./paid-before-restore.ts";
import { chainOf, listCaughtUp, type Payout, type PayoutDeps, signPayouts, splitByKnownAsset } from "./sign-payout.ts";
import { type Draw, type Short, splitByCover } from "./split-by-cover.ts";
import { splitForgottenRefunds } from "./split-payout.ts";

/** The outcome of a refund: `begun` (now or before; also when it was withdrawn), or the reason why it waits. */
export type RefundOutcome =
  | "begun"
  | "watcher_behind"
  | "unrecorded_payout"
  | "unknown_asset"
  | "not_served"
  | "receiver_blocked"
  | "balance_short"
  | "inventory_short"
  | RefusalReason;
/** A refund that failed, for example because its receiver could not be screened. It is tried again. */
export type FailedRefund = { error: unknown };
type Outcomes = Map<string, RefundOutcome | FailedRefund>;
type Deps = PaymentDeps & PayoutDeps;

/**
 * Begins refunds. In one database transaction per refund, the treasury signs a transfer back to the payer, and the
 * amount moves from the merchant's balance to in transit. The transfer's nonce names the refund, so the chain rejects a
 * second one. A refund that exceeds its merchant's balance waits until the balance covers it, and the merchant's
 * settlements of that asset wait behind it. It never uses another merchant's money: what is not paid with money that came in the
 * refunded asset waits until the treasury's inventory covers it. A refund whose receiver fails screening, or is blocked by the token's
 * issuer, is held until its merchant or an operator withdraws it. A refund waits when the chain shows refunds of its payment that the
 * database does not know. Returns outcomes in the order of `refundIds`. A refund that fails keeps no other one from beginning.
 * @returns the error instead of the outcome of a refund that failed
 */
export async function beginRefunds(
  deps: Deps,
  refundIds: readonly string[],
): Promise<(RefundOutcome | FailedRefund)[]> {
  const [due, unknown] = splitByKnownAsset(deps, await listDueRefunds(deps.db, refundIds));
  const caughtUp = await listCaughtUp(
    deps,
    due.map(({ asset }) => chainOf(asset)),
  );
  const outcomes: Outcomes = new Map();
  for (const { id, asset } of unknown) {
    deps.log.error({ refund: id, asset }, "refund waits: its asset is not in the networks file");
    outcomes.set(id, "unknown_asset");
  }
  const payable: DueRefund[] = [];
  const isReread = await isRereadFor(deps, due);
  const isReady = ({ asset, mixed }: DueRefund) => caughtUp.has(chainOf(asset)) && (isReread || !mixed);
  const lost = await findForgottenRefunds(deps, due.filter(isReady));
  const { waiting, forgotten } = lost;
  const holdRefused = openHoldRefused(deps, forgotten);
  for (const refund of due) {
    try {
      if (waiting.has(refund.id)) {
        reportUnrecorded(deps, refund);
        outcomes.set(refund.id, "unrecorded_payout");
        continue;
      }
      const obstacle = isReady(refund) ? await holdRefused(refund) : "watcher_behind";
      if (obstacle) outcomes.set(refund.id, obstacle);
      else payable.push(refund);
    } catch (error) {
      outcomes.set(refund.id, { error });
    }
  }
  const split = await splitForgottenRefunds(deps, payable, forgotten);
  for (const { id } of split.waiting) outcomes.set(id, "unrecorded_payout");
  // A refund that the signer refuses takes nothing, and a lost one that has begun is drawn: the refunds that were short are checked again.
  let known = lost;
  for (let left: readonly DueRefund[] = split.ready; left.length > 0; known = await findForgottenRefunds(deps, left)) {
    const { covered, short } = await splitByCover(deps.db, left, (refund) => toDraw(refund, known));
    left = short.map(({ payout }) => payout);
    if (covered.length === 0) {
      await recordShort(deps, short, outcomes);
      break;
    }
    await beginCovered(deps, covered, { caughtUp, outcomes, forgotten });
  }
  return refundIds.map((id) => outcomes.get(id) ?? "begun");
}

/** Records why refunds wait. */
async function recordShort(deps: Deps, short: readonly Short<DueRefund>[], outcomes: Outcomes): Promise<void> {
  // A refund that another worker has begun meanwhile has taken what it seems to lack.
  const due = await listDueRefunds(
    deps.db,
    short.map(({ payout }) => payout.id),
  );
  const dueIds = new Set(due.map(({ id }) => id));
  for (const { payout, why } of short) {
    if (!dueIds.has(payout.id)) continue;
    outcomes.set(payout.id, why);
    if (why === "inventory_short") reportInventoryShort(deps, payout);
    if (why === "unrecorded_payout") reportUnrecorded(deps, payout);
  }
}

/** Reports a refund that waits for refunds that a restored database has lost. */
function reportUnrecorded(deps: Deps, { id }: DueRefund): void {
  deps.log.error(
    { refund: id },
    "refund waits: the chain shows refunds of its payment, or others of its merchant, that the database lacks",
  );
}

/** Reports a refund that the treasury's inventory does not cover. */
function reportInventoryShort(deps: Deps, { id, asset, amount }: DueRefund): void {
  deps.log.error({ refund: id, asset, amount: String(amount) }, "treasury inventory of an asset is short");
}

/** Signs refunds and begins them. Adds to `outcomes` why refunds wait, and the errors of those that fail. */
async function beginCovered(
  deps: Deps,
  refunds: readonly DueRefund[],
  args: { caughtUp: ReadonlyMap<string, string>; outcomes: Outcomes; forgotten: ForgottenPayouts },
): Promise<void> {
  const { caughtUp, outcomes, forgotten } = args;
  const statements = await listStatementsOf(
    deps.db,
    refunds.flatMap(({ id, payment_id }) => (payment_id === null ? id : [])),
  );
  const approvals = Map.groupBy(statements, ({ subject }) => subject);
  const signed = await signPayouts(
    deps,
    refunds.map((refund) => toPayout(refund, approvals.get(refund.id) ?? [])),
  );
  const begun: NewTransfer[] = [];
  // Sequential: several refunds of a merchant draw on one balance, and the oldest has priority.
  for (const [index, refund] of refunds.entries()) {
    try {
      const result = signed[index];
      if (!result) continue;
      const epoch = caughtUp.get(chainOf(refund.asset)) ?? "";
      const outcome = result.ok
        ? await begin(deps, { refund, transfer: result.transfer, epoch, wasPaid: wasPaid(forgotten, refund) })
        : result.reason;
      if (outcome === "inventory_short") reportInventoryShort(deps, refund);
      if (typeof outcome === "string") outcomes.set(refund.id, outcome);
      else begun.push(outcome);
    } catch (error) {
      // This refund falls due again; the refunds that have begun continue.
      outcomes.set(refund.id, { error });
    }
  }
  await enqueueRelays(
    deps,
    begun.map(({ id, chain }) => ({ chain, transferId: id })),
  );
}

type Drawn = DueRefund & { merchant_id: string };
/**
 * Why a refund's transaction is rolled back. `changed`: a chosen settlement has begun, so others have to be chosen.
 * `watcher_behind`: the database was restored after signing.
 */
type Rollback = "balance_short" | "inventory_short" | "changed" | "watcher_behind";
type Written = { ok: true; afterCommit?: () => Promise<void> } | { ok: false; why: Rollback };

/**
 * A refund with its transfer, and the database epoch in which it was signed. `wasPaid`: the chain shows it as made, so it is adopted and
 * needs no inventory.
 */
type SignedRefund = { refund: DueRefund; transfer: NewTransfer; epoch: string; wasPaid: boolean };

/** Begins a refund in one transaction. Returns its transfer, or the reason why the refund waits. */
async function begin(deps: Deps, refund: SignedRefund): Promise<NewTransfer | RefundOutcome> {
  for (;;) {
    const written = await commitIfOk(deps.db, (db) => writeBegun(deps, db, refund));
    if (written.ok) {
      await written.afterCommit?.();
      return written.afterCommit ? refund.transfer : "begun";
    }
    if (written.why !== "changed") return written.why;
  }
}

/** Writes state, balance, ledger and transfer of a refund. Without `afterCommit`, the refund has begun elsewhere. */
async function writeBegun(deps: Deps, db: Db, signed: SignedRefund): Promise<Written> {
  const { refund, transfer, epoch, wasPaid } = signed;
  const at = deps.now();
  // Another worker has begun or split this refund, or it was withdrawn.
  if (!(await moveToPaying(db, refund, at))) return { ok: true };
  if (refund.merchant_id !== null) {
    const why = await debit(deps, db, { ...refund, merchant_id: refund.merchant_id }, { at, wasPaid });
    if (why) return { ok: false, why };
  }
  await insertTransfers(db, [transfer], at);
  const passed = await deps.epoch.pass(db, epoch);
  return passed.ok ? passed : { ok: false, why: "watcher_behind" };
}

/** Debits a refund from its merchant's balance and books it. Returns why it cannot, or undefined. */
async function debit(
  deps: Deps,
  db: Db,
  refund: Drawn,
  { at, wasPaid }: { at: Date; wasPaid: boolean },
): Promise<Rollback | undefined> {
  const { merchant_id: merchantId, asset } = refund;
  const drawn = owedOf(refund);
  const converted = isConverted(refund);
  const keptOf = await readKeptOf(deps, db, { merchantId, asset: drawn.asset });
  const chosen = await chooseNotBegun(db, { merchantId, ...drawn, own: refund.settlement_id, converted, keptOf });
  // The operator may have moved the asset that the buyer paid in, and money that came in another asset is no money of this one.
  const needsInventory = !wasPaid && (converted || chosen.some((one) => one.converted));
  // Lock order: the inventory, then settlements, then balances (avoids deadlock).
  if (needsInventory) await lockInventory(db, asset);
  const why = await draw(db, refund, { merchantId, ...drawn, chosen, keptOf }, at);
  if (why) return why;
  await insertGroups(db, [refundBegunGroup({ ...refund, merchantId, drawn })], at);
  return needsInventory && (await readInventory(db, asset)) < 0n ? "inventory_short" : undefined;
}

/** Returns true for a refund in another asset than the one in which its merchant is owed the payment. */
const isConverted = ({ owed_asset }: DueRefund): boolean => owed_asset !== null;

/** Returns what a refund takes from its merchant's balance. */
function owedOf({ asset, amount, owed_asset, owed_amount }: DueRefund): { asset: string; amount: bigint } {
  return { asset: owed_asset ?? asset, amount: owed_amount ?? amount };
}

function toDraw(refund: DueRefund, { forgotten, reserved }: ForgottenRefunds): Draw {
  const { id, merchant_id: merchantId, asset, amount } = refund;
  const balance = merchantId === null ? null : { merchantId, ...owedOf(refund) };
  return {
    ...{ paid: { asset, amount }, balance, converted: isConverted(refund) },
    ...{ wasPaid: wasPaid(forgotten, refund), reserved: reserved.get(id) },
  };
}

/** Returns what the signer is asked for: the refund of a payment, or the return of the movement that an exception booked. */
function toPayout(refund: DueRefund, approvals: readonly Statement[]): Payout {
  const { id, asset, amount, number, merchant_id: merchantId, payment_id: paymentId } = refund;
  const of = { purpose: "refund" as const, refund_id: id };
  const paid = { asset, amount, receiver: refund.receiver ?? "" };
  return merchantId === null || paymentId === null
    ? {
        of,
        request: {
          kind: "return",
          ...paid,
          txHash: refund.exception_tx_hash ?? "",
          logIndex: refund.log_index ?? 0,
          // The newest: approvals that are too old stay in the database.
          approvals: approvals
            .slice(-MAX_APPROVALS)
            .map(({ text, signer, signature }) => ({ text, signer, signature })),
        },
      }
    : { of, request: { kind: "refund", ...paid, merchantId, paymentId, number, deposits: [] } };
}

/**
 * Deducts a refund from its merchant's balance and from the chosen settlements. The amount is deducted first from the settlement
 * of the refunded payment, then from those of payments in the same asset, then from the others, each the oldest first; each of
 * them is reduced or netted. The balance stays equal to the sum of the open settlements, and the deductions are reported with the payments of those
 * settlements. Returns why it cannot, or undefined.
 */
async function draw(
  db: Db,
  refund: Drawn,
  { merchantId, asset, amount, chosen, keptOf }: Credit & { chosen: readonly NotBegun[]; keptOf: KeptOf },
  at: Date,
): Promise<Rollback | undefined> {
  const ids = chosen.map(({ id }) => id);
  const locked = await lockNotBegun(db, ids, keptOf);
  if (sumOf(locked) < amount && sumOf(chosen) >= amount) return "changed";
  if (!(await debitMerchant(db, { merchantId, asset, amount }))) return "balance_short";
  let left = amount;
  for (const settlement of locked) {
    const taken = await deductFromSettlement(db, settlement, left, at);
    const of = { refundId: refund.id, settlementId: settlement.id, paymentId: refund.payment_id };
    if (taken > 0n) await insertDeductions(db, { ...of, amount: taken });
    left -= taken;
  }
  // A concurrent payment may have created a settlement that is not locked here; the next retry finds it.
  return left > 0n ? "balance_short" : undefined;
}
