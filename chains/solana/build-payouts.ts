import {
  type MessageV0,
  PACKET_DATA_SIZE,
  PublicKey,
  SystemProgram,
  type TransactionInstruction,
} from "@solana/web3.js";
import {
  buildTransaction,
  buildTransfer,
  type ComputeBudget,
  compile,
  computeBudgetInstructions,
  type TokenProgram,
} from "./build-payment.ts";
import { createMarkerInstructions } from "./payout-markers.ts";
import { SIGNATURE_BYTES } from "./wire-format.ts";

/**
 * A transfer out of the treasury. `destination` is the owner of the receiving token account. `memo` is the payout's nonce,
 * from which its marker is derived. `makeAccount` creates the token account, which costs rent.
 */
export type Payout = { destination: string; amount: bigint; memo: string; makeAccount: boolean };

export type PayoutArgs = {
  /** Our relayer, which pays fees and rent. */
  feePayer: string;
  /** The owner of the paying token account. */
  treasury: string;
  mint: string;
  program: TokenProgram;
  decimals: number;
  payouts: readonly Payout[];
  /** Rent of a payout marker, in lamports. */
  markerRent: bigint;
  nonceAccount: string;
  nonceAuthority: string;
  /** The nonce account's current value, which takes the place of the blockhash. The transaction advances it. */
  nonce: string;
  budget: ComputeBudget;
};

/**
 * Compute units, with a margin for networks with older programs (Token: 6,200 per transfer, Memo: 350 per byte) and for
 * address derivations that take several steps (1,500 each; every second address takes another step).
 */
const BASE_UNITS = 1_000;
const UNITS_OF_TRANSFER: Record<TokenProgram, number> = { token: 8_000, "token-2022": 14_000 };
const UNITS_OF_ACCOUNT_CREATION = 60_000;
/** Three System program instructions of 150 units each. */
const UNITS_OF_MARKER = 1_000;
const UNITS_OF_MEMO = 3_000;
const UNITS_OF_MEMO_BYTE = 400;

/**
 * Builds the unsigned wire bytes of payouts. Fee payer, treasury and nonce authority sign them. The transaction first
 * advances the nonce, so that any second transaction with the same nonce fails. Each payout creates its marker, so that
 * any second payout with the same memo fails, whatever its durable nonce and amount.
 */
export function buildPayouts(args: PayoutArgs): Uint8Array {
  return buildTransaction(args.feePayer, listInstructions(args), args.nonce);
}

/**
 * Returns how many payouts, from the first on, fit into one transaction of 1232 bytes and the budget's compute units.
 */
export function countFitting(payouts: readonly Payout[], args: Omit<PayoutArgs, "payouts">): number {
  for (let count = 1; count <= payouts.length; count++) {
    const taken = payouts.slice(0, count);
    const message = compile(args.feePayer, listInstructions({ ...args, payouts: taken }), args.nonce);
    if (countBytes(message) > PACKET_DATA_SIZE || countUnits(taken, args.program) > args.budget.units) return count - 1;
  }
  return payouts.length;
}

/** Returns the maximum compute units of a transaction with these payouts. */
export function countUnits(payouts: readonly Payout[], program: TokenProgram): number {
  return payouts.reduce((sum, { memo, makeAccount }) => {
    const ofMemo = UNITS_OF_MEMO + UNITS_OF_MEMO_BYTE * Buffer.byteLength(memo);
    return sum + UNITS_OF_MARKER + UNITS_OF_TRANSFER[program] + ofMemo + (makeAccount ? UNITS_OF_ACCOUNT_CREATION : 0);
  }, BASE_UNITS);
}

function listInstructions(args: PayoutArgs): TransactionInstruction[] {
  const { feePayer, treasury, mint, program, decimals, payouts, markerRent, nonceAccount, nonceAuthority, budget } =
    args;
  const advance = SystemProgram.nonceAdvance({
    noncePubkey: new PublicKey(nonceAccount),
    authorizedPubkey: new PublicKey(nonceAuthority),
  });
  const transfers = payouts.flatMap(({ destination, amount, memo, makeAccount }) => [
    ...createMarkerInstructions({ feePayer, treasury, payoutNonce: memo, lamports: markerRent }),
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
  // The runtime recognizes a durable nonce only in the first instruction.
  return [advance, ...computeBudgetInstructions(budget), ...transfers];
}

/** Returns the size of a message on the wire with its signatures. The library cannot serialize one that is too long. */
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
