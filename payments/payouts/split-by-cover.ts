import { readInventory } from "../../db/queries/inventory.ts";
import { type Credit, listMerchantBalances } from "../../db/queries/ledger-groups.ts";
import type { Db } from "../../db/tables.ts";

/**
 * What a payout moves (`paid`), and what it takes from its merchant's balance (null for money that no merchant owns). `converted`:
 * it takes first what came in another asset, otherwise first what came in the asset of the balance. `wasPaid`: it needs no inventory,
 * because the chain shows it as made. `reserved`: what it must leave of the balance.
 */
export type Draw = {
  paid: { asset: string; amount: bigint };
  balance: Credit | null;
  converted: boolean;
  wasPaid: boolean;
  reserved: Reserved | undefined;
};

/** What a balance is missing after a restore. `drawn`: refunds have drawn it that the database has lost. `kept`: the chain shows it as paid out. */
export type Reserved = { drawn: bigint; kept: bigint };

/** A payout that waits for its merchant's balance, for inventory, or for lost refunds that have drawn on the balance. */
export type Short<Payout> = { payout: Payout; why: "balance_short" | "inventory_short" | "unrecorded_payout" };
type Split<Payout> = { covered: Payout[]; short: Short<Payout>[] };
/** What is left of a balance: what came in its asset, and what came in others. */
type Left = { own: bigint; converted: bigint };

/**
 * Splits payouts by whether the balances and the inventory cover them now; an earlier payout has priority. A payout takes
 * inventory for all that it moves, except for what came in the asset that it moves. The signer counts what it has signed for
 * ever, so it is asked only for payouts that can begin. Takes no locks: the transaction that begins a payout decides.
 */
export async function splitByCover<Payout>(
  db: Db,
  payouts: readonly Payout[],
  drawOf: (payout: Payout) => Draw,
): Promise<Split<Payout>> {
  const draws = payouts.map((payout) => ({ payout, ...drawOf(payout) }));
  const credited = await listMerchantBalances(
    db,
    draws.flatMap(({ balance }) => balance ?? []),
  );
  const balances = new Map(
    credited.map(({ amount, converted, ...key }): [string, Left] => [
      keyOf(key),
      { own: amount - converted, converted },
    ]),
  );
  const inventories = new Map<string, bigint>();
  const split: Split<Payout> = { covered: [], short: [] };
  for (const { payout, paid, balance, converted, wasPaid, reserved } of draws) {
    if (!balance) {
      split.covered.push(payout);
      continue;
    }
    const left = balances.get(keyOf(balance)) ?? { own: 0n, converted: 0n };
    const after = take(left, balance.amount, converted);
    const rest = after.own + after.converted;
    const { drawn, kept } = reserved ?? { drawn: 0n, kept: 0n };
    if (rest < drawn + kept) {
      split.short.push({ payout, why: rest < kept ? "balance_short" : "unrecorded_payout" });
      continue;
    }
    const needed = paid.asset === balance.asset ? left.converted - after.converted : paid.amount;
    if (needed > 0n && !wasPaid) {
      const inventory = inventories.get(paid.asset) ?? (await readInventory(db, paid.asset));
      if (inventory < needed) {
        split.short.push({ payout, why: "inventory_short" });
        continue;
      }
      inventories.set(paid.asset, inventory - needed);
    }
    split.covered.push(payout);
    balances.set(keyOf(balance), after);
  }
  return split;
}

function take({ own, converted }: Left, amount: bigint, convertedFirst: boolean): Left {
  const first = convertedFirst ? converted : own;
  const rest = amount > first ? amount - first : 0n;
  return convertedFirst
    ? { own: own - rest, converted: converted - amount + rest }
    : { own: own - amount + rest, converted: converted - rest };
}

const keyOf = ({ merchantId, asset }: Pick<Credit, "merchantId" | "asset">) => `${merchantId} ${asset}`;
