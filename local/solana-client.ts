import { base58 } from "@scure/base";
import {
  Connection,
  Keypair,
  LAMPORTS_PER_SOL,
  PublicKey,
  SystemProgram,
  Transaction,
  type TransactionInstruction,
} from "@solana/web3.js";
import { postJson } from "./post-json.ts";
import { waitUntil } from "./wait-until.ts";

/** A key pair in the form of the stack file. The secret is 64 bytes in base58, as wallets export it. */
export type SolanaKey = { address: string; secretKey: string };

/** A client of a Solana, and the account that pays for the setup on it. */
export type SolanaClient = {
  url: string;
  connection: Connection;
  /** Pays fees and rent, and is every authority of the mints that it creates. */
  operator: Keypair;
};

/** SOL of the operator, for the rent and fees of tens of thousands of token accounts, and for the relayers of many deployments. */
const operatorSol = 1_000;

/** Opens a client with a new operator, which the network's faucet funds. */
export async function openSolana(url: string): Promise<SolanaClient> {
  const post: typeof fetch = async (_input, init) => new Response(await postJson(url, String(init?.body)));
  const connection = new Connection(url, { commitment: "confirmed", disableRetryOnRateLimit: true, fetch: post });
  const operator = Keypair.generate();
  const signature = await connection.requestAirdrop(operator.publicKey, operatorSol * LAMPORTS_PER_SOL);
  await waitLanded(connection, [signature]);
  return { url, connection, operator };
}

export function newSolanaKey(): SolanaKey {
  const pair = Keypair.generate();
  return { address: pair.publicKey.toBase58(), secretKey: base58.encode(pair.secretKey) };
}

export const keypairOf = ({ secretKey }: SolanaKey): Keypair => Keypair.fromSecretKey(base58.decode(secretKey));

/** A transaction of the operator: its instructions and its further signers. */
export type Work = { instructions: TransactionInstruction[]; signers?: Keypair[] };

/** Transactions signed with one blockhash; signing them takes a fraction of its lifetime, even with fast slots. */
const sentAtOnce = 50;

/** Sends transactions concurrently, and returns their signatures when all are confirmed. */
export async function sendAll(client: SolanaClient, work: readonly Work[]): Promise<string[]> {
  const signatures: string[] = [];
  for (const some of chunk(work, sentAtOnce)) signatures.push(...(await sendSome(client, some)));
  return signatures;
}

async function sendSome({ connection, operator }: SolanaClient, work: readonly Work[]): Promise<string[]> {
  const recent = await connection.getLatestBlockhash();
  const sending = work.map(({ instructions, signers = [] }) => {
    const transaction = new Transaction({ feePayer: operator.publicKey, ...recent }).add(...instructions);
    transaction.sign(operator, ...signers);
    return connection.sendRawTransaction(transaction.serialize());
  });
  const signatures = await Promise.all(sending);
  await waitLanded(connection, signatures);
  return signatures;
}

/** Returns when all transactions are confirmed. Throws when one has failed. */
async function waitLanded(connection: Connection, signatures: readonly string[]): Promise<void> {
  let open = [...signatures];
  const poll = async (): Promise<boolean> => {
    const some = open.slice(0, 256);
    const { value } = await connection.getSignatureStatuses(some);
    const done = some.filter((signature, index) => {
      const status = value[index];
      if (status?.err) throw new Error(`${signature} failed: ${JSON.stringify(status.err)}`);
      return status?.confirmationStatus === "confirmed" || status?.confirmationStatus === "finalized";
    });
    open = open.filter((signature) => !done.includes(signature));
    return open.length === 0;
  };
  await waitUntil("the setup transactions on Solana are confirmed", poll, { withinMs: 60_000, everyMs: 50 });
}

/** Sends SOL of the operator to each account. Buyers need none, because the relayer pays for their payments. */
export async function fundSol(
  client: SolanaClient,
  owners: readonly string[],
  lamports = 1_000_000_000n,
): Promise<void> {
  const fromPubkey = client.operator.publicKey;
  const transfers = owners.map((owner) =>
    SystemProgram.transfer({ fromPubkey, toPubkey: new PublicKey(owner), lamports }),
  );
  await sendAll(
    client,
    chunk(transfers, 15).map((instructions) => ({ instructions })),
  );
}

/** Splits a list into lists of at most `size` items. */
export function chunk<T>(items: readonly T[], size: number): T[][] {
  const count = Math.ceil(items.length / size);
  return Array.from({ length: count }, (_, index) => items.slice(index * size, (index + 1) * size));
}
