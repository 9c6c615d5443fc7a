import {
  createAssociatedTokenAccountIdempotentInstruction,
  createTransferCheckedInstruction,
  getAssociatedTokenAddressSync,
  TOKEN_2022_PROGRAM_ID,
  TOKEN_PROGRAM_ID,
} from "@solana/spl-token";
import {
  ComputeBudgetProgram,
  type MessageV0,
  PublicKey,
  TransactionInstruction,
  TransactionMessage,
} from "@solana/web3.js";
import { encodeUnsigned } from "./transactions.ts";

export type TokenProgram = "token" | "token-2022";

/** A payment as we ask the buyer's wallet to sign it. */
export type SplTransfer = {
  /** Our relayer. */
  feePayer: string;
  payer: string;
  mint: string;
  program: TokenProgram;
  decimals: number;
  /** The owner, not the token account. */
  receiver: string;
  /** In the token's smallest unit. */
  amount: bigint;
  memo: string;
  makeReceiverAccount: boolean;
};

/** What a transaction may use: compute units, and micro-lamports for each of them. */
export type Budget = { units: number; unitPrice: bigint };

export const tokenPrograms: Record<TokenProgram, PublicKey> = {
  token: TOKEN_PROGRAM_ID,
  "token-2022": TOKEN_2022_PROGRAM_ID,
};

/** Memo version 2; without accounts it asks for no signature. */
export const MEMO_PROGRAM = "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr";
/** Its older version, which others still use. */
export const MEMO_PROGRAM_1 = "Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo";

const MAX_AMOUNT = 2n ** 64n - 1n;

/** Deriving an address takes a hundred times what looking one up takes; a bound keeps strangers from filling memory. */
const REMEMBERED = 20_000;
const remembered = new Map<string, string>();

/** The associated token account of an owner, who may be a program's address (off the curve). */
export function findTokenAccount(owner: string, mint: string, program: TokenProgram): string {
  const key = `${owner} ${mint} ${program}`;
  const known = remembered.get(key);
  if (known) return known;
  const mintKey = new PublicKey(mint);
  const account = getAssociatedTokenAddressSync(mintKey, new PublicKey(owner), true, tokenPrograms[program]).toBase58();
  const [oldest] = remembered.size >= REMEMBERED ? remembered.keys() : [];
  if (oldest) remembered.delete(oldest);
  remembered.set(key, account);
  return account;
}

/**
 * The unsigned wire bytes of a payment: a version 0 transaction without lookup tables, the same for the same arguments.
 * The wallet signs as payer, our relayer as fee payer.
 */
export function buildPayment(transfer: SplTransfer, budget: Budget, blockhash: string): Uint8Array {
  const instructions = [...limitBudget(budget), ...buildTransfer(transfer)];
  return buildTransaction(transfer.feePayer, instructions, blockhash);
}

/** Compiles instructions into the unsigned wire bytes of a version 0 transaction without lookup tables. */
export function buildTransaction(
  feePayer: string,
  instructions: TransactionInstruction[],
  blockhash: string,
): Uint8Array {
  const message = compile(feePayer, instructions, blockhash);
  return encodeUnsigned(message.serialize(), message.header.numRequiredSignatures);
}

/** Its message as the library holds it, which may be too long to be sent. */
export function compile(feePayer: string, instructions: TransactionInstruction[], blockhash: string): MessageV0 {
  const payerKey = new PublicKey(feePayer);
  return new TransactionMessage({ payerKey, recentBlockhash: blockhash, instructions }).compileToV0Message();
}

export function limitBudget({ units, unitPrice }: Budget): TransactionInstruction[] {
  return [
    ComputeBudgetProgram.setComputeUnitLimit({ units }),
    ComputeBudgetProgram.setComputeUnitPrice({ microLamports: unitPrice }),
  ];
}

/**
 * The receiver's account made if it has to be, the transfer, and the memo that binds it to what it is for. An amount
 * that does not fit into 64 bits is thrown: the library would cut it.
 */
export function buildTransfer(transfer: SplTransfer): TransactionInstruction[] {
  const { feePayer, payer, receiver, mint, program, decimals, amount, memo } = transfer;
  if (amount < 0n || amount > MAX_AMOUNT) throw new RangeError(`${amount} is no amount of a token`);
  const source = new PublicKey(findTokenAccount(payer, mint, program));
  const destination = new PublicKey(findTokenAccount(receiver, mint, program));
  const [mintKey, programKey] = [new PublicKey(mint), tokenPrograms[program]];
  const making = createAssociatedTokenAccountIdempotentInstruction(
    new PublicKey(feePayer),
    destination,
    new PublicKey(receiver),
    mintKey,
    programKey,
  );
  return [
    ...(transfer.makeReceiverAccount ? [making] : []),
    createTransferCheckedInstruction(
      source,
      mintKey,
      destination,
      new PublicKey(payer),
      amount,
      decimals,
      [],
      programKey,
    ),
    new TransactionInstruction({ programId: new PublicKey(MEMO_PROGRAM), keys: [], data: Buffer.from(memo, "utf8") }),
  ];
}
