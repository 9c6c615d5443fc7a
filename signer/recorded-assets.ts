import type { Chains, Token } from "../chains/chain.ts";
import { getChainDriver } from "../chains/find-chain-driver.ts";
import { ConfigError } from "../runtime/config.ts";
import { inStoreTransaction, type Store } from "./store.ts";

/** What of an asset decides how its amounts count, and which nonces its payouts use. */
type RecordedAsset = Pick<Token, "asset" | "kind" | "peg" | "decimals"> & { treasury: string; payoutKind: string };

/**
 * Records the currency and the decimals of the networks file's assets, and how the treasuries pay them out. What a merchant was paid in
 * an asset still counts when the file has lost the asset. Call it before the first decision of a process. Throws ConfigError when the
 * file has another currency or other decimals for an asset with deposits or payouts: their sums would change. Throws it, too, when the
 * file would change how a treasury pays out an asset of which it has signed payouts: their nonces are unused there, so each could be
 * made a second time.
 */
export function recordAssets(store: Store, chains: Chains, at: Date): void {
  inStoreTransaction(store, () => {
    for (const chain of chains.values())
      for (const token of chain.tokens.values()) {
        const payoutKind = getChainDriver(chain.chain).payoutKind(chain, token.asset);
        recordAsset(store, { ...token, treasury: chain.treasury, payoutKind }, at);
      }
  });
}

function recordAsset(store: Store, token: RecordedAsset, at: Date): void {
  const { asset, kind, peg, decimals, treasury, payoutKind } = token;
  const known = store.prepare("select peg, decimals from asset where asset = ? order by id desc limit 1").get(asset);
  const isCounted = known?.["peg"] === peg && known["decimals"] === decimals;
  if (known && !isCounted && hasMoved(store, asset))
    throw new ConfigError(
      `${asset} was counted as ${known["peg"]} with ${known["decimals"]} decimals: the networks file must not change either`,
    );
  const paidAs = store
    .prepare("select payout_kind from asset where asset = ? and treasury = ? order by id desc limit 1")
    .get(asset, treasury)?.["payout_kind"];
  if (isCounted && paidAs === payoutKind) return;
  if (paidAs !== undefined && paidAs !== payoutKind && hasSigned(store, { asset, treasury }))
    throw new ConfigError(
      `the kind of ${asset} must not become ${kind}: ${treasury} has signed payouts of it as ${paidAs}, and each could be made a second time as ${payoutKind}`,
    );
  store
    .prepare("insert into asset (asset, peg, decimals, treasury, payout_kind, recorded_at) values (?, ?, ?, ?, ?, ?)")
    .run(asset, peg, decimals, treasury, payoutKind, at.getTime());
}

/** Returns true if a treasury has signed a payout of an asset, or a transfer to the cold address. */
function hasSigned(store: Store, { asset, treasury }: { asset: string; treasury: string }): boolean {
  return ["payout", "cold_transfer"].some(
    (table) =>
      store.prepare(`select 1 from ${table} where asset = ? and treasury = ? limit 1`).get(asset, treasury) !==
      undefined,
  );
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
