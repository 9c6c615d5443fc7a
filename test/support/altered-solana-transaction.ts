import { PublicKey, type TransactionInstruction, TransactionMessage, VersionedTransaction } from "@solana/web3.js";
import { keypairOf, type SolanaKey } from "../../local/solana-client.ts";

/** Changes that a wallet may make to a transaction before it signs. */
export type WalletChange = {
  instructions?: (ours: TransactionInstruction[]) => TransactionInstruction[];
  feePayer?: string;
  blockhash?: string;
  legacy?: boolean;
  /** The signers. Default: the buyer alone. */
  signers?: readonly SolanaKey[];
};

/** Decompiles a transaction (base64), rebuilds it with changes and signs it. Returns it in base64. */
export function signChanged(transaction: string, buyer: SolanaKey, change: WalletChange): string {
  const ours = TransactionMessage.decompile(
    VersionedTransaction.deserialize(Buffer.from(transaction, "base64")).message,
  );
  const message = new TransactionMessage({
    payerKey: change.feePayer ? new PublicKey(change.feePayer) : ours.payerKey,
    recentBlockhash: change.blockhash ?? ours.recentBlockhash,
    instructions: change.instructions?.(ours.instructions) ?? ours.instructions,
  });
  const signed = new VersionedTransaction(
    change.legacy ? message.compileToLegacyMessage() : message.compileToV0Message(),
  );
  signed.sign((change.signers ?? [buyer]).map(keypairOf));
  return Buffer.from(signed.serialize()).toString("base64");
}
