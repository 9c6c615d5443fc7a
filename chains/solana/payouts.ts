import {
  type MessageV0,
  PACKET_DATA_SIZE,
  PublicKey,
  SystemProgram,
  type TransactionInstruction,
} from "@solana/web3.js";
import { makeMarker } from "./markers.ts";
import { type Budget, buildTransaction, buildTransfer, compile, limitBudget, type TokenProgram } from "./payment.ts";
import { SIGNATURE_BYTES } from "./transactions.ts";

/**
 * One of the transfers out of the treasury that a transaction makes. `destination` is the owner, `memo` the payout's
 * number, which its marker follows from; `makeAccount` costs rent.
 */
export type Payout = { destination: string; amount: bigint; memo: string; makeAccount: boolean };

export type PayoutArgs = {
  /** Our relayer; it pays fees and rent. */
  feePayer: string;
  /** The owner of the account that is paid from. */
  treasury: string;
  mint: string;
  program: TokenProgram;
  decimals: number;
  payouts: readonly Payout[];
  /** What a payout's marker has to hold, lamports. */
  markerRent: bigint;
  nonceAccount: string;
  nonceAuthority: string;
  /** The value the nonce account holds; it stands where a blockhash would, and is used up by this transaction. */
  nonce: string;
  budget: Budget;
};

/**
 * Compute units, with room to spare for networks that still run the older programs (Token: 6,200 a transfer; Memo: 350 a
 * byte) and for addresses that take many steps to derive (1,500 each, every second one takes one more).
 */
const UNITS_OF_ALL = 1_000;
const UNITS_OF_TRANSFER: Record<TokenProgram, number> = { token: 8_000, "token-2022": 14_000 };
const UNITS_OF_MAKING = 60_000;
/** Three instructions of the System program, 150 each. */
const UNITS_OF_MARKER = 1_000;
const UNITS_OF_MEMO = 3_000;
const UNITS_OF_MEMO_BYTE = 400;

/**
 * The unsigned wire bytes of payouts, to be signed by fee payer, treasury and nonce authority. The nonce is advanced
 * first, so that a second transaction on the same nonce fails whatever it pays; and each payout makes its marker, so that
 * a second one with the same number fails on whatever nonce, and with whatever amount.
 */
export function buildPayouts(args: PayoutArgs): Uint8Array {
  return buildTransaction(args.feePayer, listInstructions(args), args.nonce);
}

/** How many of the payouts, from the first on, fit into one transaction: its 1232 bytes and the budget's units. */
export function takeFitting(payouts: readonly Payout[], args: Omit<PayoutArgs, "payouts">): number {
  for (let count = 1; count <= payouts.length; count++) {
    const taken = payouts.slice(0, count);
    const message = compile(args.feePayer, listInstructions({ ...args, payouts: taken }), args.nonce);
    if (countBytes(message) > PACKET_DATA_SIZE || countUnits(taken, args.program) > args.budget.units) return count - 1;
  }
  return payouts.length;
}

/** The compute units that a transaction of these payouts takes at most. */
export function countUnits(payouts: readonly Payout[], program: TokenProgram): number {
  return payouts.reduce((sum, { memo, makeAccount }) => {
    const ofMemo = UNITS_OF_MEMO + UNITS_OF_MEMO_BYTE * Buffer.byteLength(memo);
    return sum + UNITS_OF_MARKER + UNITS_OF_TRANSFER[program] + ofMemo + (makeAccount ? UNITS_OF_MAKING : 0);
  }, UNITS_OF_ALL);
}

function listInstructions(args: PayoutArgs): TransactionInstruction[] {
  const { feePayer, treasury, mint, program, decimals, payouts, markerRent, nonceAccount, nonceAuthority, budget } =
    args;
  const advance = SystemProgram.nonceAdvance({
    noncePubkey: new PublicKey(nonceAccount),
    authorizedPubkey: new PublicKey(nonceAuthority),
  });
  const transfers = payouts.flatMap(({ destination, amount, memo, makeAccount }) => [
    ...makeMarker({ feePayer, treasury, number: memo, lamports: markerRent }),
    ...buildTransfer({
      feePayer,
      payer: treasury,
      mint,
      program,
      decimals,
      receiver: destination,
      amount,
      memo,
      makeReceiverAccount: makeAccount,
    }),
  ]);
  // The runtime sees a durable nonce only in the first instruction.
  return [advance, ...limitBudget(budget), ...transfers];
}

/** The wire bytes a message comes to with its signatures. The library cannot write one that is too long. */
function countBytes({ header, staticAccountKeys, compiledInstructions }: MessageV0): number {
  const ofLength = (length: number) => (length < 0x80 ? 1 : 2);
  const ofInstructions = compiledInstructions.reduce((sum, { accountKeyIndexes, data }) => {
    const [accounts, bytes] = [accountKeyIndexes.length, data.length];
    return sum + 1 + ofLength(accounts) + accounts + ofLength(bytes) + bytes;
  }, ofLength(compiledInstructions.length));
  const ofKeys = ofLength(staticAccountKeys.length) + 32 * staticAccountKeys.length;
  // The count of signatures, the version, the header, the blockhash, and the count of lookup tables.
  return 1 + SIGNATURE_BYTES * header.numRequiredSignatures + 1 + 3 + ofKeys + 32 + ofInstructions + 1;
}
