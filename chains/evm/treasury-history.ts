import type { TokenMovement } from "../token-movement.ts";
import { readAccountMovements } from "./account-logs.ts";
import { readRangeInParts } from "./log-ranges.ts";
import type { EvmChain } from "./open-evm-chain.ts";
import { readNaturalKeys } from "./transaction-movements.ts";

/**
 * Reads the movements of the treasury in final blocks, in parts. Only movements out of the treasury have their natural keys,
 * because those cost a receipt. Throws ChainError.
 */
export async function* readTreasuryHistory(
  chain: EvmChain,
  range: { from: number; to: number },
): AsyncGenerator<readonly TokenMovement[], void> {
  const tokens = [...chain.tokens.values()].map(({ token }) => token);
  const accounts = { contracts: chain, tokens, receivers: new Set<string>() };
  const read = (part: typeof range) => readAccountMovements(chain.rpc, part, accounts);
  for await (const { found } of readRangeInParts(chain.rpc, range, { longest: chain.network.logRange, read })) {
    const out = found.filter(({ payer }) => payer === chain.treasury);
    yield [...(await readNaturalKeys(chain, out)), ...found.filter(({ payer }) => payer !== chain.treasury)];
  }
}
