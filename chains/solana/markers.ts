import { createHash } from "node:crypto";
import { base58 } from "@scure/base";
import {
  NONCE_ACCOUNT_LENGTH,
  PACKET_DATA_SIZE,
  PublicKey,
  SystemProgram,
  type TransactionInstruction,
} from "@solana/web3.js";
import type { SolanaChain } from "./open.ts";
import { buildTransaction } from "./payment.ts";
import { readAccounts } from "./reads.ts";

/** Markers that one transaction closes; more of them would not fit into its bytes. */
export const CLOSED_TOGETHER = 12;

/** A marker: its address, and the seed that the address follows from. */
export type MarkerPlace = { address: string; seed: string };

/**
 * Returns where the marker of a payout is: it follows from the treasury and the payout's number. A seed has at most 32
 * bytes, so it holds the first 16 bytes of the number's hash.
 */
export function findMarker(treasury: string, number: string): MarkerPlace {
  const seed = createHash("sha256").update(number).digest().subarray(0, 16).toString("base64url");
  // PublicKey.createWithSeed gives the same and cannot be called where a transaction is built.
  const hash = createHash("sha256").update(base58.decode(treasury)).update(seed);
  return { address: base58.encode(hash.update(SystemProgram.programId.toBytes()).digest()), seed };
}

/**
 * Makes the marker of a payout, in the payout's own transaction: a nonce account that nothing is ever signed against. The
 * System program refuses to allocate an account that has data, so a second transaction with the same marker fails and
 * pays nobody. Lamports that a stranger has sent to the address before do no harm. The treasury alone can allocate it
 * and can close it.
 */
export function makeMarker(args: {
  feePayer: string;
  treasury: string;
  number: string;
  lamports: bigint;
}): TransactionInstruction[] {
  const { address, seed } = findMarker(args.treasury, args.number);
  const [marker, treasury] = [new PublicKey(address), new PublicKey(args.treasury)];
  return [
    SystemProgram.transfer({
      fromPubkey: new PublicKey(args.feePayer),
      toPubkey: marker,
      lamports: args.lamports,
    }),
    SystemProgram.allocate({
      accountPubkey: marker,
      basePubkey: treasury,
      seed,
      space: NONCE_ACCOUNT_LENGTH,
      programId: SystemProgram.programId,
    }),
    SystemProgram.nonceInitialize({ noncePubkey: marker, authorizedPubkey: treasury }),
  ];
}

/** Builds the unsigned wire bytes that close markers and send what they hold to the fee payer. */
export function closeMarkers(args: {
  feePayer: string;
  treasury: string;
  markers: readonly { address: string; lamports: bigint }[];
  blockhash: string;
}): Uint8Array {
  const [authorizedPubkey, toPubkey] = [new PublicKey(args.treasury), new PublicKey(args.feePayer)];
  const instructions = args.markers.map(({ address, lamports }) => {
    const noncePubkey = new PublicKey(address);
    return SystemProgram.nonceWithdraw({ noncePubkey, authorizedPubkey, toPubkey, lamports: Number(lamports) });
  });
  const bytes = buildTransaction(args.feePayer, instructions, args.blockhash);
  if (bytes.length > PACKET_DATA_SIZE) throw new RangeError(`${args.markers.length} markers do not fit`);
  return bytes;
}

/**
 * Returns which of some payouts have a marker, by their numbers: they have been made. Lamports alone at the address are
 * no marker. Throws ChainFault.
 */
export async function listMarked(chain: SolanaChain, numbers: readonly string[]): Promise<Set<string>> {
  const accounts = await readAccounts(
    chain,
    numbers.map((number) => findMarker(chain.treasury, number).address),
  );
  return new Set(numbers.filter((_number, index) => (accounts[index]?.data.length ?? 0) > 0));
}
