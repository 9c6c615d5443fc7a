import type { SolanaToken } from "../../chains/solana/open.ts";
import type { SplTransfer } from "../../chains/solana/payment.ts";
import type { AuthorizationRow } from "../authorization.ts";

/** Compute units that a buyer's transaction may take: a transfer, a memo, and the guards that a wallet may add. */
export const PAYMENT_UNITS = 150_000;

/**
 * The movement that a row stands for, paid for by a relayer. Its natural key is its memo, so what was signed for one
 * payment can serve no other. The treasury's account is there from the start, so none is made.
 */
export function toSplTransfer(
  token: SolanaToken,
  row: Pick<AuthorizationRow, "payer" | "receiver" | "amount" | "authorization_nonce">,
  feePayer: string,
): SplTransfer {
  const { token: mint, program, decimals } = token;
  const { payer, receiver, amount, authorization_nonce: memo } = row;
  return { feePayer, payer, mint, program, decimals, receiver, amount, memo, makeReceiverAccount: false };
}
