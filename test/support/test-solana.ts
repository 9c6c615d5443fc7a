import { createMintToInstruction, createTransferCheckedInstruction } from "@solana/spl-token";
import { PublicKey, TransactionInstruction } from "@solana/web3.js";
import { MEMO_PROGRAM } from "../../chains/solana/build-payment.ts";
import type { Service } from "../../local/service.ts";
import {
  fundSol,
  keypairOf,
  newSolanaKey,
  openSolana,
  type SolanaClient,
  type SolanaKey,
  sendAll,
} from "../../local/solana-client.ts";
import { newSolanaKeys, type SolanaChainKeys } from "../../local/solana-entry.ts";
import { openTestControls, type SolanaTestControls, startSolana } from "../../local/solana-process.ts";
import * as spl from "../../local/spl-tokens.ts";
import { addCleanup } from "./cleanups.ts";

export type TestSolana = {
  url: string;
  /** `solana:` and the first 32 characters of the genesis hash. */
  id: string;
  /** CAIP-19 of `mint`. */
  asset: string;
  client: SolanaClient;
  /** The token of payments: a mint of the Token program with 6 decimals. */
  mint: spl.Mint;
  /** Milliseconds between slots. */
  slotMs: number;
  /** Controls for time and faults. They need the local Solana and throw under SOLANA_RPC_URL. */
  knobs: SolanaTestControls;
  service: Service;
};

export type TestSolanaOptions = {
  /** Milliseconds between slots. Default: 100, so that a blockhash is valid for 15 seconds. */
  slotMs?: number;
  /** Slots until a transaction is final. Default: 4. */
  finalityDepth?: number;
  /** Sets a genesis hash other than the local chain's, for a second cluster in the same test. */
  genesis?: string;
  /** Default: a mint of the Token program with 6 decimals. */
  mint?: spl.MintOptions;
  /** Starts a private cluster, whatever SOLANA_RPC_URL is: for tests that use `knobs` or restart the cluster. */
  own?: boolean;
};

const usual = { slotMs: 100, finalityDepth: 4 };

/** The cluster with the usual options that the files of this process share, one after the other. It ends with the process. */
let shared: Service | undefined;

/** Starts a private Solana cluster (one process), or takes the shared one when no option asks for another, and makes a mint. */
export async function startTestSolana({ mint: kind, ...options }: TestSolanaOptions = {}): Promise<TestSolana> {
  const { slotMs = usual.slotMs } = options;
  const service = await (Object.keys(options).length > 0 ? startPrivate(options) : startShared());
  const client = await openSolana(service.url);
  const id = `solana:${(await client.connection.getGenesisHash()).slice(0, 32)}`;
  const mint = await spl.makeMint(client, kind);
  const asset = `${id}/token:${mint.address}`;
  return { url: service.url, id, asset, client, mint, slotMs, knobs: openTestControls(service.url), service };
}

async function startShared(): Promise<Service> {
  // Without a process, a test has crashed it, or it is the one of SOLANA_RPC_URL.
  if (shared?.pid() === undefined) shared = await startSolana(usual);
  return shared;
}

async function startPrivate(options: Omit<TestSolanaOptions, "mint">): Promise<Service> {
  const service = await startSolana({ ...usual, ...options });
  addCleanup(() => service.close());
  return service;
}

/** Creates a treasury key and `lanes` relayer keys with 10 SOL each. */
export async function makeSolanaKeys({ client }: TestSolana, lanes = 1): Promise<SolanaChainKeys> {
  const keys = newSolanaKeys(lanes);
  const relayers = keys.lanes.map(({ address }) => address);
  await fundSol(client, relayers, 10_000_000_000n);
  return keys;
}

/** Creates a buyer with `amount` tokens in the smallest unit (default: 1000 tokens) and no SOL. */
export async function fundSolanaBuyer(solana: TestSolana, amount = 1_000_000_000n): Promise<SolanaKey> {
  const [buyer] = await fundSolanaBuyers(solana, 1, amount);
  if (buyer === undefined) throw new Error("no buyer was made");
  return buyer;
}

/** Creates `count` such buyers. */
export async function fundSolanaBuyers(
  { client, mint }: TestSolana,
  count: number,
  amount = 1_000_000_000n,
): Promise<SolanaKey[]> {
  const buyers = Array.from({ length: count }, newSolanaKey);
  const owners = buyers.map(({ address }) => address);
  await spl.fundTokens(client, mint, owners, amount);
  return buyers;
}

/** Returns an owner's tokens in the smallest unit, 0 without a token account. */
export function tokenBalance({ client, mint }: TestSolana, owner: string, other: spl.Mint = mint): Promise<bigint> {
  return spl.tokenBalance(client, other, owner);
}

/** Transfers tokens as their holder, with an optional memo. The operator pays the fee. Returns the signature. */
export async function sendTokens(
  { client, mint }: TestSolana,
  args: { from: SolanaKey; to: string; amount: bigint; memo?: string },
): Promise<string> {
  const { from, to, amount, memo } = args;
  const [source, destination] = [from.address, to].map((owner) => new PublicKey(spl.tokenAccountOf(mint, owner)));
  const owner = keypairOf(from);
  if (!source || !destination) throw new Error("a transfer has two ends");
  const transfer = createTransferCheckedInstruction(
    source,
    new PublicKey(mint.address),
    destination,
    owner.publicKey,
    amount,
    mint.decimals,
    [],
    new PublicKey(mint.program),
  );
  const note = new TransactionInstruction({
    programId: new PublicKey(MEMO_PROGRAM),
    keys: [],
    data: Buffer.from(memo ?? ""),
  });
  const instructions = memo === undefined ? [transfer] : [transfer, note];
  const [signature = ""] = await sendAll(client, [{ instructions, signers: [owner] }]);
  return signature;
}

/**
 * Sends `count` transactions of a third party that give an owner 1, 2, 3 and so on of the token's smallest unit.
 * Returns their signatures.
 */
export function sendDust({ client, mint }: TestSolana, to: string, count: number): Promise<string[]> {
  const [token, account, program] = [mint.address, spl.tokenAccountOf(mint, to), mint.program].map(
    (address) => new PublicKey(address),
  );
  if (!token || !account || !program) throw new Error("dust needs a receiver");
  const work = Array.from({ length: count }, (_, index) => ({
    instructions: [createMintToInstruction(token, account, client.operator.publicKey, index + 1, [], program)],
  }));
  return sendAll(client, work);
}
