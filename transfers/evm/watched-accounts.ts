import type { WatchedAccounts } from "../../chains/evm/account-logs.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import type { EvmMovement } from "../../chains/token-movement.ts";
import { keepOffered, listDirectReceivers } from "../../db/queries/direct-receivers.ts";
import { isOurs } from "../record-movements.ts";
import type { TransferDeps } from "../transfer-deps.ts";

/**
 * Returns the accounts whose movements the watcher reads: the treasury, and the accounts that buyers may pay directly now.
 * The caller has the blocks to read already: a payment that these blocks contain was offered before they were made.
 */
export async function listWatchedAccounts(
  { db, now }: Pick<TransferDeps, "db" | "now">,
  chain: EvmChain,
): Promise<WatchedAccounts> {
  return watchAccounts(chain, await listDirectReceivers(db, { ...chain, now: now() }));
}

/** Returns the treasury and these accounts. Payments through our contracts are movements of the treasury as well. */
export function watchAccounts(chain: EvmChain, receivers: ReadonlySet<string> = new Set()): WatchedAccounts {
  return { contracts: chain, tokens: [...chain.tokens.values()].map(({ token }) => token), receivers };
}

/**
 * Returns the movements of the treasury, and those into other accounts that an option has offered: strangers pay a merchant's
 * own account as well, and each of their transactions would cost a receipt.
 */
export async function keepRelevant(
  { db }: Pick<TransferDeps, "db">,
  chain: EvmChain,
  found: readonly EvmMovement[],
): Promise<EvmMovement[]> {
  const others = found.filter((movement) => !isOurs(chain, movement));
  const offered = await keepOffered(db, { chain: chain.chain, movements: others });
  return [...found.filter((movement) => isOurs(chain, movement)), ...offered];
}
