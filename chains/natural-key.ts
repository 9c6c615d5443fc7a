import { type Hex, keccak256, toHex } from "viem";

/**
 * Derives the natural key that binds a transfer to one payment, settlement or refund: the nonce of an authorization on EVM
 * chains, the memo of a transaction on Solana. A buyer who pays the same payment twice with a token signs the same key
 * twice, and the token or our check refuses the second one.
 * @param parts for example `["payment", "pay_…"]`; a part must not contain a line feed
 */
export function deriveNonce(deployment: string, parts: readonly string[]): Hex {
  return keccak256(toHex([deployment, ...parts].join("\n")));
}
