import { createAssociatedTokenAccountIdempotentInstruction } from "@solana/spl-token";
import { PublicKey, type TransactionInstruction } from "@solana/web3.js";
import { findTokenAccount, type TokenProgram, tokenPrograms } from "./build-payment.ts";

/**
 * Returns the instruction that creates an owner's associated token account at a payer's expense, if it does not exist.
 */
export function createTokenAccountInstruction(args: {
  payer: string;
  owner: string;
  mint: string;
  program: TokenProgram;
}): TransactionInstruction {
  const { payer, owner, mint, program } = args;
  return createAssociatedTokenAccountIdempotentInstruction(
    new PublicKey(payer),
    new PublicKey(findTokenAccount(owner, mint, program)),
    new PublicKey(owner),
    new PublicKey(mint),
    tokenPrograms[program],
  );
}
