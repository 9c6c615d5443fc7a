/** Identifies a merchant's balance in one asset. */
export type BalanceKey = { merchantId: string; asset: string };

/**
 * Groups items by balance. The groups are in the lock order of balances: by merchant, then by asset. Every transaction
 * that changes several balances follows this order (avoids deadlock).
 */
export function groupByBalance<T>(
  items: readonly T[],
  keyOf: (item: T) => BalanceKey,
): (BalanceKey & { items: readonly T[] })[] {
  const groups = new Map<string, BalanceKey & { items: T[] }>();
  for (const item of items) {
    const { merchantId, asset } = keyOf(item);
    const name = `${merchantId} ${asset}`;
    const group = groups.get(name);
    if (group) group.items.push(item);
    else groups.set(name, { merchantId, asset, items: [item] });
  }
  return [...groups.values()].sort((a, b) => compare(a.merchantId, b.merchantId) || compare(a.asset, b.asset));
}

const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);
