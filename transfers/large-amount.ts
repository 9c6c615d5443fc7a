import type { Chain, Token } from "../chains/chain.ts";
import { readAgreementThreshold } from "../chains/endpoint-agreement.ts";

/** Returns true for an amount of a token on which two endpoints must agree. Returns false for an unknown token. */
export function isLargeAmount({ network }: Pick<Chain, "network">, token: Token | undefined, amount: bigint): boolean {
  const limit = token && readAgreementThreshold(network, token);
  return limit !== undefined && amount >= limit;
}
