import {
  ASSOCIATED_TOKEN_PROGRAM_ID,
  getAssociatedTokenAddressSync,
  TOKEN_2022_PROGRAM_ID,
  TOKEN_PROGRAM_ID,
  TokenInstruction,
} from "@solana/spl-token";
import {
  ComputeBudgetProgram,
  type MessageV0,
  PublicKey,
  SystemProgram,
  TransactionInstruction,
  TransactionMessage,
} from "@solana/web3.js";
import { encodeUnsigned } from "./wire-format.ts";

export type TokenProgram = "token" | "token-2022";

/** A token transfer that we ask the buyer's wallet to sign. */
export type SplTransfer = {
  /** Our relayer. */
  feePayer: string;
  payer: string;
  mint: string;
  program: TokenProgram;
  decimals: number;
  /** The owner of the receiving token account. */
  receiver: string;
  /** In the token's smallest unit. */
  amount: bigint;
  memo: string;
  makeReceiverAccount: boolean;
};

/** The compute budget of a transaction: its unit limit, and its price per unit in micro-lamports. */
export type ComputeBudget = { units: number; unitPrice: bigint };

export const tokenPrograms: Record<TokenProgram, PublicKey> = {
  token: TOKEN_PROGRAM_ID,
  "token-2022": TOKEN_2022_PROGRAM_ID,
};
/** The same programs as text: web3.js encodes an address anew for each call. */
export const tokenProgramIds: Record<TokenProgram, string> = {
  token: TOKEN_PROGRAM_ID.toBase58(),
  "token-2022": TOKEN_2022_PROGRAM_ID.toBase58(),
};

/** The Memo program, version 2. Without accounts it requires no signature. */
export const MEMO_PROGRAM = "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr";
/** The Memo program, version 1. Some wallets still use it. */
export const MEMO_PROGRAM_1 = "Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo";

export const ASSOCIATED_PROGRAM = ASSOCIATED_TOKEN_PROGRAM_ID.toBase58();
export const SYSTEM_PROGRAM = SystemProgram.programId.toBase58();

/** The instruction of the Associated Token program that creates an account unless it exists. */
const CREATE_IDEMPOTENT = 1;
const MAX_AMOUNT = 2n ** 64n - 1n;

/**
 * Maximum size of the cache. Deriving an address takes a hundred times as long as a lookup; the limit bounds its
 * memory.
 */
const MAX_CACHED = 20_000;
const cache = new Map<string, string>();

/** Returns the associated token account of an owner. The owner may be a program-derived address (off the curve). */
export function findTokenAccount(owner: string, mint: string, program: TokenProgram): string {
  const key = `${owner} ${mint} ${program}`;
  const cached = cache.get(key);
  if (cached) return cached;
  const mintKey = new PublicKey(mint);
  const account = getAssociatedTokenAddressSync(mintKey, new PublicKey(owner), true, tokenPrograms[program]).toBase58();
  const [oldest] = cache.size >= MAX_CACHED ? cache.keys() : [];
  if (oldest) cache.delete(oldest);
  cache.set(key, account);
  return account;
}

/**
 * Builds the unsigned wire bytes of a payment: a version 0 transaction without lookup tables. The result is deterministic.
 * The wallet signs as payer, our relayer as fee payer.
 */
export function buildPayment(transfer: SplTransfer, budget: ComputeBudget, blockhash: string): Uint8Array {
  const instructions = [...computeBudgetInstructions(budget), ...buildTransfer(transfer)];
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

/** Compiles instructions into a version 0 message, which may exceed the size limit of a transaction. */
export function compile(feePayer: string, instructions: TransactionInstruction[], blockhash: string): MessageV0 {
  const payerKey = new PublicKey(feePayer);
  return new TransactionMessage({ payerKey, recentBlockhash: blockhash, instructions }).compileToV0Message();
}

export function computeBudgetInstructions({ units, unitPrice }: ComputeBudget): TransactionInstruction[] {
  return [
    ComputeBudgetProgram.setComputeUnitLimit({ units }),
    ComputeBudgetProgram.setComputeUnitPrice({ microLamports: unitPrice }),
  ];
}

/** Returns the instructions of a transfer (see `describeTransfer`) for web3.js. */
export function buildTransfer(transfer: SplTransfer): TransactionInstruction[] {
  return describeTransfer(transfer).map(({ program, accounts, data }) => {
    const keys = accounts.map(({ address, isSigner, isWritable }) => {
      return { pubkey: new PublicKey(address), isSigner, isWritable };
    });
    return new TransactionInstruction({ programId: new PublicKey(program), keys, data: Buffer.from(data) });
  });
}

/** An instruction in plain values: making the objects of web3.js took most of the time of a comparison. */
export type DescribedInstruction = {
  program: string;
  accounts: { address: string; isSigner: boolean; isWritable: boolean }[];
  data: Uint8Array;
};

/**
 * Returns the instructions of a transfer: the creation of the receiver's token account if requested, the transfer, and the
 * memo that identifies it. Throws RangeError for an amount above 64 bits.
 */
export function describeTransfer(transfer: SplTransfer): DescribedInstruction[] {
  const { feePayer, payer, receiver, mint, program, decimals, amount, memo } = transfer;
  if (amount < 0n || amount > MAX_AMOUNT) throw new RangeError(`${amount} is not a token amount of 64 bits`);
  const [source, destination] = [findTokenAccount(payer, mint, program), findTokenAccount(receiver, mint, program)];
  const readonly = (address: string) => ({ address, isSigner: false, isWritable: false });
  const writable = (address: string) => ({ address, isSigner: false, isWritable: true });
  const payerAccount = { address: payer, isSigner: true, isWritable: false };
  const relayerAccount = { address: feePayer, isSigner: true, isWritable: true };
  const data = Buffer.alloc(10);
  data[0] = TokenInstruction.TransferChecked;
  data.writeBigUInt64LE(amount, 1);
  data[9] = decimals;
  const tokens = tokenProgramIds[program];
  const creation = {
    program: ASSOCIATED_PROGRAM,
    accounts: [relayerAccount, writable(destination), ...[receiver, mint, SYSTEM_PROGRAM, tokens].map(readonly)],
    data: Uint8Array.of(CREATE_IDEMPOTENT),
  };
  return [
    ...(transfer.makeReceiverAccount ? [creation] : []),
    { program: tokens, accounts: [writable(source), readonly(mint), writable(destination), payerAccount], data },
    { program: MEMO_PROGRAM, accounts: [], data: Buffer.from(memo, "utf8") },
  ];
}
