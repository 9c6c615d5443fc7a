import { createHash } from "node:crypto";
import {
  NONCE_ACCOUNT_LENGTH,
  NonceAccount,
  PublicKey,
  SystemProgram,
  type TransactionInstruction,
} from "@solana/web3.js";
import { ChainError } from "../errors.ts";
import { type Account, readAccountsAt } from "./cluster-state.ts";
import type { SolanaChain } from "./open-solana-chain.ts";

/** A durable nonce account of ours: its address, and the seed that the address is derived from. */
export type NonceAddress = { address: string; seed: string };

/**
 * Returns a deployment's durable nonce accounts, derived from its name, its first relayer and its treasury, which alone may
 * advance them: a treasury that replaces another one has nonce accounts of its own.
 */
export async function listNonceAddresses(chain: SolanaChain, deployment: string): Promise<NonceAddress[]> {
  const base = new PublicKey(chain.lanes[0] ?? "");
  const name = createHash("sha256").update(`${deployment}\n${chain.treasury}`).digest("hex").slice(0, 16);
  return Promise.all(
    Array.from({ length: chain.network.nonceAccounts }, async (_, index) => {
      const seed = `nonce-${name}-${index}`;
      const address = await PublicKey.createWithSeed(base, seed, SystemProgram.programId);
      return { address: address.toBase58(), seed };
    }),
  );
}

/** Reads durable nonces, in order, and the slot of the reading. A nonce is undefined if its account does not exist. */
export async function readNonces(
  chain: SolanaChain,
  addresses: readonly string[],
  commitment: "confirmed" | "finalized",
): Promise<{ slot: number; nonces: (string | undefined)[] }> {
  const { slot, accounts } = await readAccountsAt(chain, addresses, commitment);
  return { slot, nonces: accounts.map(parseNonce) };
}

/** Returns the durable nonce of an account, undefined if the account does not exist or is no nonce account. Pure. */
export function parseNonce(account: Account | undefined): string | undefined {
  if (account?.data.length !== NONCE_ACCOUNT_LENGTH) return undefined;
  return NonceAccount.fromAccountData(Buffer.from(account.data)).nonce;
}

/**
 * Returns the instructions that create one of a deployment's nonce accounts at the first relayer's expense. Only the treasury may
 * advance it.
 */
export function createNonceAccountInstructions(
  chain: SolanaChain,
  place: NonceAddress,
  lamports: bigint,
): TransactionInstruction[] {
  const base = chain.lanes[0] ?? "";
  return createNonceInstructions(place, { payer: base, base, authority: chain.treasury, lamports });
}

/**
 * Returns the instructions that create a nonce account at an address derived from `base`, which must sign. Lamports that someone else
 * sent to the address before do not prevent the creation, as they would with `createAccountWithSeed`.
 */
export function createNonceInstructions(
  { address, seed }: NonceAddress,
  args: { payer: string; base: string; authority: string; lamports: bigint },
): TransactionInstruction[] {
  const noncePubkey = new PublicKey(address);
  return [
    SystemProgram.transfer({ fromPubkey: new PublicKey(args.payer), toPubkey: noncePubkey, lamports: args.lamports }),
    SystemProgram.allocate({
      accountPubkey: noncePubkey,
      basePubkey: new PublicKey(args.base),
      seed,
      space: NONCE_ACCOUNT_LENGTH,
      programId: SystemProgram.programId,
    }),
    SystemProgram.nonceInitialize({ noncePubkey, authorizedPubkey: new PublicKey(args.authority) }),
  ];
}

/** Twice the rent of a byte, lamports. A lane pays what an endpoint reports, so one that reports too much could empty it. */
const MOST_RENT_OF_BYTE = 2n * 6_960n;
/** The bytes of an account that count besides its data. */
const ACCOUNT_BYTES = 128n;

/** Returns the most that the rent-exempt minimum of an account with that many bytes may be, in lamports. */
export function mostRent(bytes: number = NONCE_ACCOUNT_LENGTH): bigint {
  return (ACCOUNT_BYTES + BigInt(bytes)) * MOST_RENT_OF_BYTE;
}

/** Returns the rent-exempt minimum of an account with that many bytes, in lamports. Throws ChainError. */
export async function readRent(chain: SolanaChain, bytes: number = NONCE_ACCOUNT_LENGTH): Promise<bigint> {
  const method = "getMinimumBalanceForRentExemption";
  const rent = await chain.rpc.ask(method, async (connection) => {
    const found = await connection.getMinimumBalanceForRentExemption(bytes);
    // web3.js returns 0 if the endpoint returns an error.
    if (found === 0 || BigInt(found) > mostRent(bytes))
      throw new ChainError("rpc_answer", { detail: `${chain.chain} ${method} ${found}` });
    return found;
  });
  return BigInt(rent);
}
