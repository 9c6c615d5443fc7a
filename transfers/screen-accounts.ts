import type { Chain } from "../chains/chain.ts";
import { getTransferDriver } from "./find-transfer-driver.ts";
import type { ScreeningDeps } from "./list-screening.ts";

/**
 * Returns which of these accounts fail screening by the operator's list or the chain's sanctions oracle. The oracle takes
 * one call; Solana has none. Throws ChainError `screening_down`, or the chain's error. No account passes then.
 */
export async function screenAccounts(
  deps: ScreeningDeps,
  chain: Chain,
  accounts: readonly string[],
): Promise<Set<string>> {
  return getTransferDriver(chain).screen(deps, accounts);
}
