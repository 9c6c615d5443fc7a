import type { SplTransfer } from "../../chains/solana/build-payment.ts";
import type { SolanaToken } from "../../chains/solana/open-solana-chain.ts";
import type { SolanaAuthorization } from "../verification.ts";

/** Highest compute unit limit of a buyer's transaction: a transfer, a memo, and the guards that a wallet can add. */
export const PAYMENT_UNITS = 150_000;

/**
 * Returns the token transfer of a row, with a relayer as fee payer. The memo is the natural key, so a signature for one
 * payment is invalid for any other. The treasury's token account exists from the start, so it is not created.
 */
export function toSplTransfer(
  token: SolanaToken,
  row: Pick<SolanaAuthorization, "payer" | "receiver" | "amount" | "authorization_nonce">,
  feePayer: string,
): SplTransfer {
  const { token: mint, program, decimals } = token;
  const { payer, receiver, amount, authorization_nonce: memo } = row;
  return { feePayer, payer, mint, program, decimals, receiver, amount, memo, makeReceiverAccount: false };
}
