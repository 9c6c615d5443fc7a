import { getChainDriver } from "../chains/find-chain-driver.ts";
import { chainOfAsset } from "./payout-nonce.ts";
import type { SignerDeps } from "./signer-deps.ts";

/**
 * Reads the treasury's balance of every asset that has a floor and a ceiling, for metrics. A balance that cannot be read is
 * absent. Throws when a changed limits file cannot be recorded, which a full disk prevents.
 */
export async function readHotBalances(
  deps: Pick<SignerDeps, "chains" | "readLimits" | "metrics" | "log">,
): Promise<void> {
  const { signerHotBalance, signerHotFloor, signerHotCeiling } = deps.metrics;
  const found: { asset: string; floor: bigint; ceiling: bigint; balance: bigint }[] = [];
  for (const [asset, { hotBalance }] of Object.entries(deps.readLimits()?.assets ?? {})) {
    const chain = deps.chains.get(chainOfAsset(asset));
    if (!hotBalance || !chain?.tokens.has(asset)) continue;
    try {
      const { balance } = await getChainDriver(chain.chain).readFinalBalance(chain, { asset, nonce: undefined });
      found.push({ asset, floor: hotBalance.floor, ceiling: hotBalance.ceiling, balance });
    } catch (err) {
      deps.log.warn({ err, asset }, "treasury's balance cannot be read");
    }
  }
  for (const gauge of [signerHotBalance, signerHotFloor, signerHotCeiling]) gauge.reset();
  for (const { asset, floor, ceiling, balance } of found) {
    signerHotBalance.set({ asset }, Number(balance));
    signerHotFloor.set({ asset }, Number(floor));
    signerHotCeiling.set({ asset }, Number(ceiling));
  }
}
