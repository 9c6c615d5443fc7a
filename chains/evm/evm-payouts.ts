import { getAddress } from "viem";
import type { PayoutSigner, UnsignedPayout } from "../payout-signer.ts";
import type { KeyReaders } from "../signers/open-key-source.ts";
import { hashDisbursement } from "./disburser-contract.ts";
import { hashAuthorization } from "./eip3009.ts";
import { type EvmChain, type EvmToken, getEvmToken } from "./open-evm-chain.ts";
import { openTreasury } from "./signers/open-evm-keys.ts";

/**
 * `valid_before` of payouts: the year 2100, in Unix seconds. A payout's authorization never expires. It can move only the
 * amount owed, and only once, so it never has to be signed a second time.
 */
export const PAYOUT_VALID_BEFORE = 4_102_444_800;

/** Returns how the treasury pays a token out: by EIP-3009, or through the Disburser where the token lacks it. */
export function payoutKind({ kind }: Pick<EvmToken, "kind">): "eip3009" | "disburse" {
  return kind === "eip3009" ? "eip3009" : "disburse";
}

/** Opens the treasury's key of an EVM chain. Throws the same errors as `openSigner`. */
export async function openEvmPayoutSigner(chain: EvmChain, readers: KeyReaders): Promise<PayoutSigner> {
  const treasury = await openTreasury(chain.network, readers);
  return { sign: (payout) => treasury.sign({ hash: hashPayout(chain, payout) }) };
}

/** Returns the EIP-712 digest of a payout that the treasury signs. */
function hashPayout(chain: EvmChain, { asset, amount, receiver, nonce }: UnsignedPayout) {
  const token = getEvmToken(chain, asset);
  const [to, from] = [getAddress(receiver), chain.treasury];
  if (token.kind !== "eip3009") return hashDisbursement(chain, { token: token.token, receiver: to, amount, nonce });
  if (!token.separator) throw new Error(`${asset} has no EIP-712 domain`);
  const authorization = { token: token.token, from, to, value: amount, validBefore: PAYOUT_VALID_BEFORE, nonce };
  return hashAuthorization(token.separator, authorization);
}
