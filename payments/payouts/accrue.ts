import {
  type AccumulatingPart,
  type AccumulatingSettlement,
  addToAccumulating,
  beginAccumulating,
  listAccumulating,
  listPayoutSchedules,
  type PayoutSchedule,
} from "../../db/queries/accumulating-settlements.ts";
import { creditMerchants } from "../../db/queries/ledger-groups.ts";
import type { PaymentRow } from "../../db/queries/payments.ts";
import { listBlockedKeys } from "../../db/queries/payout-queue.ts";
import { insertSettlements, type NewSettlement } from "../../db/queries/settlements.ts";
import { repeatInSavepoint } from "../../db/savepoint.ts";
import type { Db } from "../../db/tables.ts";
import { newId } from "../ids.ts";
import { type PaymentDeps, REENQUEUE_AFTER_MS } from "../payment-deps.ts";
import { type BalanceKey, groupByBalance } from "./group-by-balance.ts";

/**
 * A credit to a merchant for a succeeded payment, or for other money that was assigned to the payment later, minor units.
 * `converted`: the buyer paid in another asset.
 */
export type Credit = {
  payment: Pick<PaymentRow, "id" | "merchant_id" | "mode">;
  asset: string;
  amount: bigint;
  converted?: boolean;
};
/** `due`: the settlements that can begin now. `settlementOf`: the settlement that pays out each payment, by payment id. */
export type Accrued = { due: string[]; settlementOf: ReadonlyMap<string, string> };
type Group = BalanceKey & { amount: bigint; credits: readonly Credit[] };

/**
 * Credits merchants, and chooses for each payment the settlement that pays it out: its own, or an accumulating settlement
 * of its merchant and asset. The caller stores it with the payment. Settlement numbers follow the order of movements on
 * chain. `due` omits settlements whose payout queue is blocked.
 */
export async function accrue(deps: Pick<PaymentDeps, "now">, db: Db, credits: readonly Credit[]): Promise<Accrued> {
  const settlementOf = new Map<string, string>();
  if (credits.length === 0) return { due: [], settlementOf };
  const merchantIds = [...new Set(credits.map(({ payment }) => payment.merchant_id))];
  const policies = await listPayoutSchedules(db, merchantIds);
  const due = new Map<string, string[]>();
  for (const group of sumByBalance(credits)) {
    const policy = policies.find((one) => one.merchant_id === group.merchantId && one.asset === group.asset);
    const settled = policy ? await accumulate(deps, db, group, policy) : await settleEach(deps, db, group);
    if (settled.settlements.length > 0) due.set(`${group.merchantId} ${group.asset}`, settled.settlements);
    for (const one of group.credits) settlementOf.set(one.payment.id, settled.settlementOf(one));
  }
  if (due.size > 0)
    for (const { merchant_id, asset } of await listBlockedKeys(db, merchantIds)) due.delete(`${merchant_id} ${asset}`);
  return { due: [...due.values()].flat(), settlementOf };
}

function sumByBalance(credits: readonly Credit[]): Group[] {
  const groups = groupByBalance(credits, ({ payment, asset }) => ({ merchantId: payment.merchant_id, asset }));
  return groups.map(({ items, ...key }) => {
    const amount = items.reduce((sum, credit) => sum + credit.amount, 0n);
    return { ...key, amount, credits: items };
  });
}

type Settled = { settlements: string[]; settlementOf: (credit: Credit) => string };

/** Creates a settlement for each payment, due at once. */
async function settleEach(deps: Pick<PaymentDeps, "now">, db: Db, group: Group): Promise<Settled> {
  const at = deps.now();
  const [first = 0] = await creditMerchants(db, [{ ...group, settlements: group.credits.length }]);
  const dueAt = new Date(at.getTime() + REENQUEUE_AFTER_MS);
  const rows = new Map(
    group.credits.map((one, index): [Credit, NewSettlement] => {
      const { merchantId, asset } = group;
      const { mode } = one.payment;
      const row = { id: newId("stl", at), merchantId, mode, asset, number: first + index, amount: one.amount, dueAt };
      return [one, { ...row, converted: isConverted(one) }];
    }),
  );
  await insertSettlements(db, [...rows.values()], at);
  return {
    settlements: [...rows.values()].map(({ id }) => id),
    settlementOf: (one) => rows.get(one)?.id ?? "",
  };
}

/**
 * Adds the payments to the accumulating settlements, or creates these: one for what came in the asset, and one for what came in
 * others, which the treasury's inventory pays. They become due by age or by amount.
 */
async function accumulate(
  deps: Pick<PaymentDeps, "now">,
  db: Db,
  group: Group,
  policy: PayoutSchedule,
): Promise<Settled> {
  const at = deps.now();
  const parts = sumParts(group);
  // Lock order: settlements, balances, then payout queues, which an addition can wake (avoids deadlock).
  const { open, missing, first } = await creditParts(db, group, parts);
  const additions = open.map(({ id, converted }) => {
    return { id, amount: parts.find((part) => part.converted === converted)?.amount ?? 0n };
  });
  const settlements = await addToAccumulating(db, { additions, limit: policy.accumulation_amount, at });
  for (const [index, part] of missing.entries())
    settlements.push(await createAccumulating(db, { group, part, policy, number: first + index, at }));
  return {
    settlements: settlements.filter(({ due_at }) => due_at <= at).map(({ id }) => id),
    settlementOf: (credit) => settlements.find(({ converted }) => converted === isConverted(credit))?.id ?? "",
  };
}

type Credited = {
  open: Pick<AccumulatingSettlement, "id" | "converted">[];
  missing: AccumulatingPart[];
  first: number;
};

/**
 * Locks the accumulating settlements of these parts (`open`), then credits the balance, and reserves numbers for the parts without one
 * (`missing`), from `first` on. Begins again when another booking has created one of these before the balance was locked: the number would
 * be missing in the order, and the settlement would be locked after the balance (avoids deadlock).
 */
async function creditParts(db: Db, group: Group, parts: readonly AccumulatingPart[]): Promise<Credited> {
  const { merchantId, asset } = group;
  const of = { merchantId, asset, converted: parts.map(({ converted }) => converted) };
  const open = await listAccumulating(db, of, { lock: true });
  if (open.length === parts.length) {
    await creditMerchants(db, [{ ...group, settlements: 0 }]);
    return { open, missing: [], first: 0 };
  }
  return repeatInSavepoint(db, async () => {
    const open = await listAccumulating(db, of, { lock: true });
    const missing = parts.filter(({ converted }) => open.every((one) => one.converted !== converted));
    const [first = 0] = await creditMerchants(db, [{ ...group, settlements: missing.length }]);
    return (await listAccumulating(db, of)).length > open.length ? undefined : { open, missing, first };
  });
}

const isConverted = ({ converted }: Credit): boolean => converted === true;

function sumParts({ credits }: Group): AccumulatingPart[] {
  return [...Map.groupBy(credits, isConverted)].map(([converted, some]) => {
    const amount = some.reduce((sum, credit) => sum + credit.amount, 0n);
    return { converted, amount };
  });
}

function createAccumulating(
  db: Db,
  args: { group: Group; part: AccumulatingPart; policy: PayoutSchedule; number: number; at: Date },
): Promise<AccumulatingSettlement> {
  const { group, part, policy, number, at } = args;
  const { merchantId, asset } = group;
  const mode = group.credits[0]?.payment.mode ?? "live";
  const isEnough = policy.accumulation_amount !== null && part.amount >= policy.accumulation_amount;
  const dueAt = isEnough ? at : new Date(at.getTime() + policy.accumulation_ms);
  return beginAccumulating(db, { id: newId("stl", at), merchantId, mode, asset, number, ...part, dueAt }, at);
}
