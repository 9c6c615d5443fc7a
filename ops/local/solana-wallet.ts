import { VersionedTransaction } from "@solana/web3.js";
import { keypairOf, type SolanaKey } from "./solana-client.ts";

/** Signs a transaction (base64) as a wallet does: adds its own signature, and leaves the fee payer's place as it is. */
export function signAsWallet(transaction: string, buyer: SolanaKey): string {
  const read = VersionedTransaction.deserialize(Buffer.from(transaction, "base64"));
  read.sign([keypairOf(buyer)]);
  return Buffer.from(read.serialize()).toString("base64");
}
