import { VersionedTransaction } from "@solana/web3.js";
import { keypairOf, type SolanaKey } from "./solana-client.ts";

/** Signs a transaction (base64) as a wallet does: adds the buyer's signature and leaves that of the fee payer empty. */
export function signAsWallet(transaction: string, buyer: SolanaKey): string {
  const read = VersionedTransaction.deserialize(Buffer.from(transaction, "base64"));
  read.sign([keypairOf(buyer)]);
  return Buffer.from(read.serialize()).toString("base64");
}
