import type { Chains } from "../../chains/chain.ts";
import { getSolanaChain } from "../../chains/open-chains.ts";
import { type BroadcastResult, broadcastBytes } from "../../chains/solana/solana-broadcast.ts";
import { firstSignature } from "../../chains/solana/wire-format.ts";
import { chainOfAsset } from "../payout-nonce.ts";

/**
 * Sends the transaction of a withdrawal once. Returns its signature, and whether the cluster has taken it.
 * @param transaction signed wire bytes in base64
 */
export async function sendWithdrawal(
  chains: Chains,
  { asset, transaction }: { asset: string; transaction: string },
): Promise<{ signature: string; outcome: BroadcastResult["outcome"]; reason?: string }> {
  const bytes = Buffer.from(transaction, "base64");
  const [sent] = await broadcastBytes(getSolanaChain(chains, chainOfAsset(asset)), [bytes]);
  const signature = firstSignature(bytes);
  if (sent?.outcome === "accepted") return { signature, outcome: "accepted" };
  return { signature, ...(sent ?? { outcome: "unknown", reason: "nothing was sent" }) };
}
