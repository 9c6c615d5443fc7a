import { type Connection, Keypair, type PublicKey, SystemProgram, Transaction } from "@solana/web3.js";
import { fundSol } from "../../../../ops/local/solana-client.ts";
import type { TestSolana } from "../../../support/solana.ts";
import { waitFor } from "../../../support/wait-for.ts";

/** What the tests of the local Solana do with it, through an unmodified Connection. */
export type Moves = {
  connection: Connection;
  /** Holds a SOL and pays for what is sent. */
  relayer: Keypair;
  /** A transfer of lamports (a million when unset, to somebody new), signed by the relayer. */
  signGift(lamports?: number, to?: PublicKey): Promise<{ bytes: Buffer; to: PublicKey }>;
  send(bytes: Uint8Array, skipPreflight?: boolean): Promise<string>;
  statusOf(signature: string): ReturnType<typeof askStatus>;
  until(signature: string, wanted: "confirmed" | "finalized"): Promise<true>;
};

export async function openMoves(solana: TestSolana): Promise<Moves> {
  const { connection } = solana.client;
  const relayer = await fundedKey(solana);
  const statusOf = (signature: string) => askStatus(connection, signature);
  return {
    connection,
    relayer,
    async signGift(lamports = 1_000_000, to = Keypair.generate().publicKey) {
      const transaction = new Transaction({ feePayer: relayer.publicKey, ...(await connection.getLatestBlockhash()) });
      transaction.add(SystemProgram.transfer({ fromPubkey: relayer.publicKey, toPubkey: to, lamports }));
      transaction.sign(relayer);
      return { bytes: transaction.serialize(), to };
    },
    send: (bytes, skipPreflight = false) => connection.sendRawTransaction(bytes, { skipPreflight }),
    statusOf,
    until: (signature, wanted) =>
      waitFor(async () => (await statusOf(signature))?.confirmationStatus === wanted, { within: 10_000 }),
  };
}

/** A new key with a SOL. */
export async function fundedKey({ client }: TestSolana): Promise<Keypair> {
  const key = Keypair.generate();
  await fundSol(client, [key.publicKey.toBase58()]);
  return key;
}

async function askStatus(connection: Connection, signature: string) {
  return (await connection.getSignatureStatuses([signature])).value[0] ?? undefined;
}
