import { creditMerchants } from "../db/ledger.ts";
import type { PaymentRow } from "../db/payments.ts";
import { listBlockedKeys } from "../db/payout-queue.ts";
import {
  addToGathering,
  beginGathering,
  type Gathering,
  insertSettlements,
  listGatherings,
  type NewSettlement,
  tieSettlements,
} from "../db/settlements.ts";
import type { Db } from "../db/tables.ts";
import { type PaymentDeps, RING_AGAIN_MS } from "./deps.ts";
import { newId } from "./ids.ts";

/**
 * What a payment that has succeeded owes its merchant, minor units of the asset it was paid in; or, `extra`, other money
 * that was found to be for it, and that says nothing of when the payment itself is paid out. `converted`: it came in another asset.
 */
export type Owed = { payment: PaymentRow; asset: string; amount: bigint; extra?: boolean; converted?: boolean };
type Tie = { paymentId: string; settlementId: string };
type Group = { merchantId: string; asset: string; amount: bigint; owed: readonly Owed[] };

/**
 * Adds to what merchants are owed, and ties each payment to the settlement that pays it out: one of its own, or the one
 * that gathers for its merchant and asset. Settlement numbers follow the order of the chain. Gives the settlements that
 * may be begun at once; those whose merchant's payouts are blocked are not among them.
 */
export async function owe(deps: Pick<PaymentDeps, "now">, db: Db, owed: readonly Owed[]): Promise<string[]> {
  const merchantIds = [...new Set(owed.map(({ payment }) => payment.merchant_id))];
  const gatherings = await listGatherings(db, merchantIds);
  const due = new Map<string, string[]>();
  const ties: Tie[] = [];
  // In one order for everybody, so that two bookings cannot wait for each other.
  for (const group of groupByBalance(owed)) {
    const policy = gatherings.find(({ merchantId, asset }) => merchantId === group.merchantId && asset === group.asset);
    const { settlements, settlementOf } = policy
      ? await gather(deps, db, group, policy)
      : await settleEach(deps, db, group);
    due.set(`${group.merchantId} ${group.asset}`, settlements);
    for (const one of group.owed)
      if (!one.extra) ties.push({ paymentId: one.payment.id, settlementId: settlementOf(one) });
  }
  await tieSettlements(db, ties);
  if (due.size > 0)
    for (const { merchantId, asset } of await listBlockedKeys(db, merchantIds)) due.delete(`${merchantId} ${asset}`);
  return [...due.values()].flat();
}

function groupByBalance(owed: readonly Owed[]): Group[] {
  const groups = Map.groupBy(owed, ({ payment, asset }) => `${payment.merchant_id} ${asset}`);
  return [...groups.keys()].sort().map((key) => {
    const [merchantId = "", asset = ""] = key.split(" ");
    const all = groups.get(key) ?? [];
    return { merchantId, asset, amount: all.reduce((sum, { amount }) => sum + amount, 0n), owed: all };
  });
}

type Settled = { settlements: string[]; settlementOf: (owed: Owed) => string };

/** A settlement for each payment, due at once. */
async function settleEach(deps: Pick<PaymentDeps, "now">, db: Db, group: Group): Promise<Settled> {
  const at = deps.now();
  const [first = 0] = await creditMerchants(db, [{ ...group, settlements: group.owed.length }]);
  const dueAt = new Date(at.getTime() + RING_AGAIN_MS);
  const rows = new Map(
    group.owed.map((one, index): [Owed, NewSettlement] => {
      const { merchantId, asset } = group;
      const { mode } = one.payment;
      const row = { id: newId("stl"), merchantId, mode, asset, number: first + index, amount: one.amount, dueAt };
      return [one, { ...row, converted: one.converted === true }];
    }),
  );
  await insertSettlements(db, [...rows.values()], at);
  return {
    settlements: [...rows.values()].map(({ id }) => id),
    settlementOf: (one) => rows.get(one)?.id ?? "",
  };
}

/** One settlement for all of them and for those to come, until it is old or large enough. */
async function gather(
  deps: Pick<PaymentDeps, "now">,
  db: Db,
  group: Group,
  policy: { ms: number; amount: bigint | null },
): Promise<Settled> {
  const at = deps.now();
  const { merchantId, asset, amount } = group;
  const open = await addToGathering(db, {
    merchantId,
    asset,
    amount,
    converted: isConverted(group),
    limit: policy.amount,
    at,
  });
  const [number = 0] = await creditMerchants(db, [{ ...group, settlements: open ? 0 : 1 }]);
  const gathering = open ?? (await beginNew(db, { group, policy, number, at }));
  return {
    settlements: gathering.dueAt <= at ? [gathering.id] : [],
    settlementOf: () => gathering.id,
  };
}

const isConverted = ({ owed }: Group) => owed.some(({ converted }) => converted);

function beginNew(
  db: Db,
  args: { group: Group; policy: { ms: number; amount: bigint | null }; number: number; at: Date },
): Promise<Gathering> {
  const { group, policy, number, at } = args;
  const { merchantId, asset, amount } = group;
  const mode = group.owed[0]?.payment.mode ?? "live";
  const isEnough = policy.amount !== null && amount >= policy.amount;
  const dueAt = isEnough ? at : new Date(at.getTime() + policy.ms);
  const row = { id: newId("stl"), merchantId, mode, asset, number, amount, dueAt };
  return beginGathering(db, { ...row, converted: isConverted(group) }, at);
}
