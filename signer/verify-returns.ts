import { canonicalAddress } from "../chains/canonical-ids.ts";
import { requireApprovals } from "./approvals.ts";
import type { Limits } from "./limits.ts";
import { chainOfAsset } from "./payout-nonce.ts";
import type { Refused, ReturnRequest } from "./protocol.ts";
import { readTransactions } from "./read-transactions.ts";
import { findDeposit } from "./records.ts";
import { refuse } from "./refuse.ts";
import type { SignerDeps } from "./signer-deps.ts";

type Deps = Pick<SignerDeps, "chains" | "checkChain" | "log">;

/**
 * Compares a return with the chain: money goes back only to the account that sent it, and no more than it sent. Returns the
 * refusal, or undefined.
 */
export async function verifyReturn(deps: Deps, payout: ReturnRequest): Promise<Refused | undefined> {
  const chain = deps.chains.get(chainOfAsset(payout.asset));
  const token = chain?.tokens.get(payout.asset);
  if (!chain || !token) return refuse("unknown_asset");
  const refused = await deps.checkChain(chain.chain);
  if (refused) return refused;
  const transaction = (await readTransactions(deps, chain, [payout.txHash])).get(payout.txHash);
  if (!transaction) return refuse("chain_unavailable");
  if (transaction.state === "not_final") return refuse("not_final");
  if (transaction.state === "not_found") return refuse("deposit_not_found");
  const movement = transaction.movements.find(({ logIndex }) => logIndex === payout.logIndex);
  if (!movement || movement.token !== token.token || movement.receiver !== chain.treasury)
    return refuse("deposit_not_found", "the transaction moves nothing of the asset into the treasury there");
  if (canonicalAddress(chain.chain, movement.payer) !== payout.receiver) return refuse("receiver_not_payer");
  return payout.amount > movement.amount ? refuse("funds_short", "the return exceeds what came") : undefined;
}

/**
 * Returns the operators who have approved exactly this return, or why it must not be signed: its money paid a payment, or fewer
 * than two have approved within a day.
 * @param of.isRecorded true if exactly this return was authorized before
 */
export function findReturnApprovers(
  { store, deployment }: Pick<SignerDeps, "store" | "deployment">,
  payout: ReturnRequest,
  { limits: { operators }, ...of }: { limits: Limits; at: Date; isRecorded: boolean },
): Refused | { approvers: string[] } {
  const { asset, amount, receiver, txHash, logIndex, approvals } = payout;
  if (findDeposit(store, { chain: chainOfAsset(asset), txHash, logIndex }))
    return refuse("deposit_mismatch", "the money has paid a payment: refund that payment");
  const subject = { action: "return movement", asset, amount, receiver, txHash, logIndex } as const;
  return requireApprovals({ operators, deployment, ...of }, approvals, subject);
}
