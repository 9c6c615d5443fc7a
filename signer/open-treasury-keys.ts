import type { Chain, Chains } from "../chains/chain.ts";
import { getChainDriver } from "../chains/find-chain-driver.ts";
import type { PayoutSigner } from "../chains/payout-signer.ts";
import { readKey, readSecret, readText } from "../runtime/networks/read-networks.ts";

/** Opens the treasury's key of a chain. Throws ConfigError and ChainError. */
export function openTreasuryKey(chain: Chain): Promise<PayoutSigner> {
  return getChainDriver(chain.chain).openPayoutSigner(chain, { readKey, readSecret, readText });
}

/** Opens the treasury's keys of every chain, by CAIP-2 id. Throws ConfigError and ChainError. */
export async function openTreasuryKeys(chains: Chains): Promise<ReadonlyMap<string, PayoutSigner>> {
  const opened = [...chains.values()].map(async (chain) => [chain.chain, await openTreasuryKey(chain)] as const);
  return new Map(await Promise.all(opened));
}
