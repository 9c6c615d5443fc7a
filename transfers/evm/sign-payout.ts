import { getAddress, hexToBytes } from "viem";
import { type EvmChain, getEvmToken } from "../../chains/evm/open-evm-chain.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import type { PayoutRow, SignedPayout } from "../transfer-driver.ts";
import { hashRow } from "./authorization-calls.ts";

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
  const signature = await signer.sign({ hash: hashRow(chain, { ...row, ...addresses, kind }) });
  return { kind, signature: Buffer.from(hexToBytes(signature)) };
}
