import { readInventory } from "../../db/queries/inventory.ts";
import { type Credit, listMerchantBalances } from "../../db/queries/ledger-groups.ts";
import type { Db } from "../../db/tables.ts";

/**
 * What a payout takes: from its merchant's balance (null for money that no merchant owns), and from the treasury's inventory
 * when its money came in another asset (otherwise null).
 */
export type Draw = { balance: Credit | null; inventory: { asset: string; amount: bigint } | null };

type Short = "inventory_short" | "balance_short";
type Split<Payout> = { covered: Payout[]; short: { payout: Payout; why: Short }[] };

/**
 * Splits payouts by whether the balances and the inventory cover them now; an earlier payout has priority. The signer counts
 * what it has signed for ever, so it is asked only for payouts that can begin. Takes no locks: the transaction that begins a
 * payout decides.
 */
export async function splitByCover<Payout>(
  db: Db,
  payouts: readonly Payout[],
  drawOf: (payout: Payout) => Draw,
): Promise<Split<Payout>> {
  const draws = payouts.map(drawOf);
  const assets = new Set(draws.flatMap(({ inventory }) => inventory?.asset ?? []));
  const balances = await listMerchantBalances(
    db,
    draws.flatMap(({ balance }) => balance ?? []),
  );
  const left = new Map(balances.map((one) => [keyOf(one), one.amount]));
  for (const asset of assets) left.set(asset, await readInventory(db, asset));
  const split: Split<Payout> = { covered: [], short: [] };
  for (const [index, payout] of payouts.entries()) {
    const { balance = null, inventory = null } = draws[index] ?? {};
    const why = findShort(left, { balance, inventory });
    if (why) {
      split.short.push({ payout, why });
      continue;
    }
    split.covered.push(payout);
    if (balance) left.set(keyOf(balance), (left.get(keyOf(balance)) ?? 0n) - balance.amount);
    if (inventory) left.set(inventory.asset, (left.get(inventory.asset) ?? 0n) - inventory.amount);
  }
  return split;
}

function findShort(left: ReadonlyMap<string, bigint>, { balance, inventory }: Draw): Short | undefined {
  if (inventory && (left.get(inventory.asset) ?? 0n) < inventory.amount) return "inventory_short";
  return balance && (left.get(keyOf(balance)) ?? 0n) < balance.amount ? "balance_short" : undefined;
}

const keyOf = ({ merchantId, asset }: Pick<Credit, "merchantId" | "asset">) => `${merchantId} ${asset}`;
