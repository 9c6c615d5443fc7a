import { createHash } from "node:crypto";
import {
  NONCE_ACCOUNT_LENGTH,
  NonceAccount,
  PublicKey,
  SystemProgram,
  type TransactionInstruction,
} from "@solana/web3.js";
import { ChainFault } from "../faults.ts";
import type { SolanaChain } from "./open.ts";
import { readAccountsAt } from "./reads.ts";

/** A durable nonce account of ours: its address, and the seed that it follows from. */
export type NoncePlace = { address: string; seed: string };

/** Where a deployment's durable nonce accounts are; they follow from its name and its first relayer. */
export async function listNoncePlaces(chain: SolanaChain, deployment: string): Promise<NoncePlace[]> {
  const base = new PublicKey(chain.lanes[0] ?? "");
  const name = createHash("sha256").update(deployment).digest("hex").slice(0, 16);
  return Promise.all(
    Array.from({ length: chain.network.nonceAccounts }, async (_, index) => {
      const seed = `nonce-${name}-${index}`;
      const address = await PublicKey.createWithSeed(base, seed, SystemProgram.programId);
      return { address: address.toBase58(), seed };
    }),
  );
}

/** What durable nonces say, in the order asked, and in which slot; undefined where there is no such account. */
export async function readNonces(
  chain: SolanaChain,
  addresses: readonly string[],
  commitment: "confirmed" | "finalized",
): Promise<{ slot: number; nonces: (string | undefined)[] }> {
  const { slot, accounts } = await readAccountsAt(chain, addresses, commitment);
  return { slot, nonces: accounts.map((account) => account && readNonce(account.data)) };
}

function readNonce(data: Uint8Array): string | undefined {
  return data.length === NONCE_ACCOUNT_LENGTH ? NonceAccount.fromAccountData(Buffer.from(data)).nonce : undefined;
}

/** Makes a nonce account, paid for by the first relayer. The treasury alone may use it up. */
export function makeNonceAccount(chain: SolanaChain, place: NoncePlace, lamports: bigint): TransactionInstruction[] {
  const base = new PublicKey(chain.lanes[0] ?? "");
  return SystemProgram.createNonceAccount({
    fromPubkey: base,
    noncePubkey: new PublicKey(place.address),
    basePubkey: base,
    seed: place.seed,
    authorizedPubkey: new PublicKey(chain.treasury),
    lamports: Number(lamports),
  }).instructions;
}

/** What an account of so many bytes has to hold, lamports. Throws ChainFault. */
export async function readRent(chain: SolanaChain, bytes: number = NONCE_ACCOUNT_LENGTH): Promise<bigint> {
  const method = "getMinimumBalanceForRentExemption";
  const rent = await chain.rpc.ask(method, (connection) => connection.getMinimumBalanceForRentExemption(bytes));
  // The library gives 0 for an endpoint's error.
  if (rent === 0) throw new ChainFault("rpc_answer", { detail: `${chain.chain} ${method}` });
  return BigInt(rent);
}
