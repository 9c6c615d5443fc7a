import { getAddress, type Hex } from "viem";
import type { PayoutSigner, UnsignedPayout } from "../payout-signer.ts";
import type { KeyReaders } from "../signers/open-key-source.ts";
import { type Disbursement, encodeDisburse, hashDisbursement } from "./disburser-contract.ts";
import { type Authorization, encodeTransfer, hashAuthorization } from "./eip3009.ts";
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

/**
 * Returns true if two payouts of these assets with one nonce exclude each other. The Disburser has one set of nonces; each EIP-3009
 * token has its own. An asset that has left the networks file may have been paid by the Disburser.
 */
export function sharesNonces({ tokens }: EvmChain, assets: readonly [string, string]): boolean {
  return assets.every((asset) => {
    const token = tokens.get(asset);
    return token === undefined || payoutKind(token) === "disburse";
  });
}

/** Opens the treasury's key of an EVM chain. Throws the same errors as `openSigner`. */
export async function openEvmPayoutSigner(chain: EvmChain, readers: KeyReaders): Promise<PayoutSigner> {
  const treasury = await openTreasury(chain.network, readers);
  return { sign: (payout) => treasury.sign({ hash: hashPayout(chain, payout) }) };
}

/** Returns the call with which any account submits a signed payout. */
export function encodePayout(chain: EvmChain, payout: UnsignedPayout, signature: Hex): { to: Hex; data: Hex } {
  const token = getEvmToken(chain, payout.asset);
  return payoutKind(token) === "eip3009"
    ? { to: token.token, data: encodeTransfer(toAuthorization(chain, payout), signature) }
    : { to: chain.disburser, data: encodeDisburse(toDisbursement(chain, payout), signature) };
}

/** Returns the EIP-712 digest of a payout that the treasury signs. */
function hashPayout(chain: EvmChain, payout: UnsignedPayout): Hex {
  const token = getEvmToken(chain, payout.asset);
  if (payoutKind(token) === "disburse") return hashDisbursement(chain, toDisbursement(chain, payout));
  if (!token.separator) throw new Error(`${payout.asset} has no EIP-712 domain`);
  return hashAuthorization(token.separator, toAuthorization(chain, payout));
}

function toAuthorization(chain: EvmChain, { asset, amount, receiver, nonce }: UnsignedPayout): Authorization {
  const { token } = getEvmToken(chain, asset);
  const [from, to] = [chain.treasury, getAddress(receiver)];
  return { token, from, to, value: amount, validBefore: PAYOUT_VALID_BEFORE, nonce };
}

function toDisbursement(chain: EvmChain, { asset, amount, receiver, nonce }: UnsignedPayout): Disbursement {
  return { token: getEvmToken(chain, asset).token, receiver: getAddress(receiver), amount, nonce };
}
