import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { buildPayoutTransaction, type PayoutTransaction } from "../../chains/solana/treasury-transactions.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { signWith, withTreasurySignature } from "./sign-own-transaction.ts";

/**
 * Has the signer sign a transaction of payouts as the treasury, and signs it as the relayer. Returns the wire bytes, or why the
 * signer refuses it. Throws an Error in a process without the relayer's key.
 */
export async function signPayout(
  deps: Pick<TransferDeps, "solanaKeys" | "signer">,
  chain: SolanaChain,
  transaction: PayoutTransaction,
): Promise<Uint8Array | string> {
  const relayer = deps.solanaKeys.get(chain.chain)?.lanes.get(transaction.feePayer);
  if (!relayer) throw new Error(`${chain.chain} has no keys here`);
  const signed = await deps.signer.signPayoutTransaction({ ...transaction, payouts: [...transaction.payouts] });
  if (!signed.ok) return `the signer refuses: ${signed.reason}: ${signed.detail}`;
  const unsigned = buildPayoutTransaction(chain, transaction);
  return signWith(withTreasurySignature(unsigned, chain.treasury, signed.signature), relayer);
}
