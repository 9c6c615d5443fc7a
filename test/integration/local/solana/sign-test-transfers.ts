import { type Connection, Keypair, type PublicKey, SystemProgram, Transaction } from "@solana/web3.js";
import { fundSol } from "../../../../local/solana-client.ts";
import type { TestSolana } from "../../../support/test-solana.ts";
import { waitFor } from "../../../support/wait-for.ts";

/** What the tests of the local Solana call, through an unmodified Connection. */
export type TestSigner = {
  connection: Connection;
  /** Holds one SOL and pays the fees. */
  relayer: Keypair;
  /** Signs, as the relayer, a transfer of `lamports` (default: a million) to `to` (default: a new account). */
  signTransfer(lamports?: number, to?: PublicKey): Promise<{ bytes: Buffer; to: PublicKey }>;
  send(bytes: Uint8Array, skipPreflight?: boolean): Promise<string>;
  statusOf(signature: string): ReturnType<typeof readStatus>;
  /** Waits until a transaction has at least this status. A poll can miss "confirmed", which lasts 150 ms. */
  until(signature: string, wanted: "confirmed" | "finalized"): Promise<true>;
};

export async function openSigner(solana: TestSolana): Promise<TestSigner> {
  const { connection } = solana.client;
  const relayer = await fundedKey(solana);
  const statusOf = (signature: string) => readStatus(connection, signature);
  return {
    connection,
    relayer,
    async signTransfer(lamports = 1_000_000, to = Keypair.generate().publicKey) {
      const transaction = new Transaction({ feePayer: relayer.publicKey, ...(await connection.getLatestBlockhash()) });
      transaction.add(SystemProgram.transfer({ fromPubkey: relayer.publicKey, toPubkey: to, lamports }));
      transaction.sign(relayer);
      return { bytes: transaction.serialize(), to };
    },
    send: (bytes, skipPreflight = false) => connection.sendRawTransaction(bytes, { skipPreflight }),
    statusOf,
    until: (signature, wanted) =>
      waitFor(
        async () => {
          const status = (await statusOf(signature))?.confirmationStatus;
          return status === wanted || status === "finalized";
        },
        { within: 10_000 },
      ),
  };
}

/** Returns a new key with one SOL. */
export async function fundedKey({ client }: TestSolana): Promise<Keypair> {
  const key = Keypair.generate();
  await fundSol(client, [key.publicKey.toBase58()]);
  return key;
}

async function readStatus(connection: Connection, signature: string) {
  return (await connection.getSignatureStatuses([signature])).value[0] ?? undefined;
}
