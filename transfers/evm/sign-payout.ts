import { getAddress, hexToBytes } from "viem";
import { type EvmChain, getEvmToken } from "../../chains/evm/open-evm-chain.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import type { PayoutRow, SignedPayout } from "../transfer-driver.ts";
import { hashRow } from "./authorization-calls.ts";

/**
 * `valid_before` of payouts: the year 2100, in Unix seconds. A payout's authorization never expires. It can move only the
 * amount owed, and only once, so it never has to be signed a second time.
 */
const NEVER_OUT = 4_102_444_800;

/**
 * Signs a payout with the treasury's key: an EIP-3009 authorization, or a Disburser call for a token without EIP-3009. In
 * both cases the chain rejects a second transfer with the same nonce.
 */
export async function signEvmPayout(
  deps: Pick<TransferDeps, "keys">,
  chain: EvmChain,
  row: PayoutRow,
): Promise<SignedPayout> {
  const signer = deps.keys.get(chain.chain)?.treasury;
  if (!signer) throw new Error(`the treasury of ${chain.chain} has no key`);
  const token = getEvmToken(chain, row.asset);
  const kind = token.kind === "eip3009" ? "eip3009" : "disburse";
  const addresses = { token: token.token, payer: chain.treasury, receiver: getAddress(row.receiver) };
  const signature = await signer.sign({
    hash: hashRow(chain, { ...row, ...addresses, kind, valid_before: NEVER_OUT }),
  });
  return { kind, valid_before: NEVER_OUT, signature: Buffer.from(hexToBytes(signature)) };
}
