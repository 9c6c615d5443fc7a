import type { Chains, Token } from "../chains/chain.ts";
import { ConfigError } from "../runtime/config.ts";
import { inStoreTransaction, type Store } from "./store.ts";

/** What of an asset decides how its amounts count. */
type RecordedAsset = Pick<Token, "asset" | "peg" | "decimals">;

/**
 * Records the currency and the decimals of the networks file's assets. What a merchant was paid in an asset still counts when the
 * file has lost the asset. Call it before the first decision of a process. Throws ConfigError when the file has another currency
 * or other decimals for an asset with deposits or payouts: their sums would change.
 */
export function recordAssets(store: Store, chains: Chains, at: Date): void {
  inStoreTransaction(store, () => {
    for (const token of [...chains.values()].flatMap((chain): Token[] => [...chain.tokens.values()]))
      recordAsset(store, token, at);
  });
}

function recordAsset(store: Store, { asset, peg, decimals }: RecordedAsset, at: Date): void {
  const known = store.prepare("select peg, decimals from asset where asset = ? order by id desc limit 1").get(asset);
  if (known?.["peg"] === peg && known["decimals"] === decimals) return;
  if (known && hasMoved(store, asset))
    throw new ConfigError(
      `${asset} was counted as ${known["peg"]} with ${known["decimals"]} decimals: the networks file must not change either`,
    );
  store
    .prepare("insert into asset (asset, peg, decimals, recorded_at) values (?, ?, ?, ?)")
    .run(asset, peg, decimals, at.getTime());
}

function hasMoved(store: Store, asset: string): boolean {
  return ["deposit", "payout"].some(
    (table) => store.prepare(`select 1 from ${table} where asset = ? limit 1`).get(asset) !== undefined,
  );
}

/** Returns the assets of a currency that the networks file has or has had. */
export function listAssetsOf(store: Store, peg: string): { asset: string; decimals: number }[] {
  return store
    .prepare("select asset, decimals from asset where id in (select max(id) from asset group by asset) and peg = ?")
    .all(peg)
    .map((row) => ({ asset: String(row["asset"]), decimals: Number(row["decimals"]) }));
}
