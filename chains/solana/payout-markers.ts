import { createHash } from "node:crypto";
import { base58 } from "@scure/base";
import {
  NONCE_ACCOUNT_LENGTH,
  NonceAccount,
  PACKET_DATA_SIZE,
  PublicKey,
  SystemProgram,
  type TransactionInstruction,
} from "@solana/web3.js";
import { buildTransaction } from "./build-payment.ts";
import { type Account, keepCreated, readAccounts } from "./cluster-state.ts";
import { createNonceInstructions } from "./nonce-accounts.ts";
import type { SolanaChain } from "./open-solana-chain.ts";

/** Maximum number of markers that one transaction closes. More do not fit into its size limit. */
export const MAX_MARKERS_PER_CLOSE = 12;

/** A payout marker: its address, and the seed that the address is derived from. */
export type MarkerAddress = { address: string; seed: string };

/**
 * Returns the address of a payout's marker, derived from the treasury and the payout's nonce. A seed has at most 32 bytes,
 * so it is the first 16 bytes of the nonce's hash, in base64url.
 */
export function findMarker(treasury: string, payoutNonce: string): MarkerAddress {
  const seed = createHash("sha256").update(payoutNonce).digest().subarray(0, 16).toString("base64url");
  // PublicKey.createWithSeed returns the same address, but it is asynchronous.
  const hash = createHash("sha256").update(base58.decode(treasury)).update(seed);
  return { address: base58.encode(hash.update(SystemProgram.programId.toBytes()).digest()), seed };
}

/**
 * Returns the instructions that create a payout's marker in the payout's own transaction. The marker is a nonce account
 * that no transaction ever uses as its nonce. The System program refuses to allocate an account that has data, so a second
 * transaction with the same marker fails and pays nothing. Only the treasury can allocate the marker and close it.
 */
export function createMarkerInstructions(args: {
  feePayer: string;
  treasury: string;
  payoutNonce: string;
  lamports: bigint;
}): TransactionInstruction[] {
  const { feePayer, treasury, payoutNonce, lamports } = args;
  const place = findMarker(treasury, payoutNonce);
  return createNonceInstructions(place, { payer: feePayer, base: treasury, authority: treasury, lamports });
}

/** Builds the unsigned transaction that closes markers and sends their lamports to the fee payer. */
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
 * Returns the nonces of those payouts that have a marker, which means that they were paid. An address that has only
 * lamports has no marker. Throws ChainError.
 */
export async function listPaidNonces(chain: SolanaChain, payoutNonces: readonly string[]): Promise<Set<string>> {
  const accounts = await readAccounts(
    chain,
    payoutNonces.map((nonce) => findMarker(chain.treasury, nonce).address),
  );
  return new Set(payoutNonces.filter((_nonce, index) => isMarker(accounts[index])));
}

/** Returns true if the account at the address of a marker is a marker that this treasury can close. */
export function isMarkerOf(account: Account | undefined, treasury: string): account is Account {
  if (account?.data.length !== NONCE_ACCOUNT_LENGTH) return false;
  return NonceAccount.fromAccountData(Buffer.from(account.data)).authorizedPubkey.toBase58() === treasury;
}

/** Returns true if the account at the address of a marker is a marker, and does not only have lamports. */
export function isMarker(account: Account | undefined): boolean {
  return keepCreated(account) !== undefined;
}
