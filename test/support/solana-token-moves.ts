import {
  createCloseAccountInstruction,
  createFreezeAccountInstruction,
  createThawAccountInstruction,
  createTransferCheckedInstruction,
} from "@solana/spl-token";
import { PublicKey, SystemProgram, type TransactionInstruction } from "@solana/web3.js";
import { keypairOf, type SolanaKey, sendAll } from "../../local/solana-client.ts";
import * as spl from "../../local/spl-tokens.ts";
import type { TestSolana } from "./test-solana.ts";

type TokenAccountOf = { solana: TestSolana; owner: string; mint?: spl.Mint };

const parts = ({ solana, owner, mint = solana.mint }: TokenAccountOf) => {
  const us = solana.client.operator.publicKey;
  const account = new PublicKey(spl.tokenAccountOf(mint, owner));
  return { us, account, mint: new PublicKey(mint.address), program: new PublicKey(mint.program), of: mint };
};

/** Freezes an owner's token account as the issuer. */
export function freeze(held: TokenAccountOf): Promise<string[]> {
  const { us, account, mint, program } = parts(held);
  return act(held.solana, createFreezeAccountInstruction(account, mint, us, [], program));
}

/** Thaws an owner's token account as the issuer. */
export function thaw(held: TokenAccountOf): Promise<string[]> {
  const { us, account, mint, program } = parts(held);
  return act(held.solana, createThawAccountInstruction(account, mint, us, [], program));
}

/** Moves tokens from an owner to another owner's existing token account. The operator pays the fee. */
export function moveTokens(held: {
  solana: TestSolana;
  from: SolanaKey;
  to: string;
  amount: bigint;
  mint?: spl.Mint;
}): Promise<string[]> {
  const { from, to, amount } = held;
  const { account, mint, program, of } = parts({ ...held, owner: from.address });
  const target = new PublicKey(spl.tokenAccountOf(of, to));
  const owner = new PublicKey(from.address);
  return act(
    held.solana,
    createTransferCheckedInstruction(account, mint, target, owner, amount, of.decimals, [], program),
    from,
  );
}

/** Closes an owner's empty token account. Its rent goes to the owner. */
export function closeAccount({ solana, owner }: { solana: TestSolana; owner: SolanaKey }): Promise<string[]> {
  const { account, program } = parts({ solana, owner: owner.address });
  const key = new PublicKey(owner.address);
  return act(solana, createCloseAccountInstruction(account, key, key, [], program), owner);
}

/** Sends all SOL of a key to the operator. */
export async function drainSol(solana: TestSolana, key: SolanaKey): Promise<void> {
  const from = new PublicKey(key.address);
  const lamports = await solana.client.connection.getBalance(from, "confirmed");
  const toPubkey = solana.client.operator.publicKey;
  await act(solana, SystemProgram.transfer({ fromPubkey: from, toPubkey, lamports }), key);
}

function act({ client }: TestSolana, instruction: TransactionInstruction, signer?: SolanaKey): Promise<string[]> {
  return sendAll(client, [{ instructions: [instruction], signers: signer ? [keypairOf(signer)] : [] }]);
}
