import { createMintToInstruction, createTransferCheckedInstruction } from "@solana/spl-token";
import { PublicKey, TransactionInstruction } from "@solana/web3.js";
import { MEMO_PROGRAM } from "../../chains/solana/payment.ts";
import type { Service } from "../../ops/local/service.ts";
import { openKnobs, type SolanaKnobs, startSolana } from "../../ops/local/solana.ts";
import {
  fundSol,
  keypairOf,
  newSolanaKey,
  openSolana,
  type SolanaClient,
  type SolanaKey,
  sendAll,
} from "../../ops/local/solana-client.ts";
import { newSolanaKeys, type SolanaChainKeys } from "../../ops/local/solana-network.ts";
import * as spl from "../../ops/local/spl.ts";
import { atEnd } from "./at-end.ts";

export type TestSolana = {
  url: string;
  /** `solana:` and the first 32 characters of the genesis hash. */
  id: string;
  /** CAIP-19 of `mint`. */
  asset: string;
  client: SolanaClient;
  /** The token payments are made in: 6 decimals, Token. */
  mint: spl.Mint;
  /** Milliseconds between slots. */
  slotMs: number;
  /** Time and faults. They need the local Solana: under SOLANA_RPC_URL each of them says so. */
  knobs: SolanaKnobs;
  service: Service;
};

export type TestSolanaOptions = {
  /** Milliseconds between slots; 50 when unset, so that a blockhash lives for 7.5 seconds. */
  slotMs?: number;
  /** Slots until a transaction is final; 4 when unset. */
  finalAfter?: number;
  /** Another one than the local chain's, for a second chain in the same test. */
  genesis?: string;
  /** Another kind of mint than Token with 6 decimals. */
  mint?: spl.MintOptions;
  /** Takes no notice of SOLANA_RPC_URL: for tests that turn knobs, or stop and start it. */
  own?: boolean;
};

/** A Solana of one's own (a process each) with a mint. */
export async function startTestSolana({ mint: kind, ...options }: TestSolanaOptions = {}): Promise<TestSolana> {
  const { slotMs = 50 } = options;
  const service = await startSolana({ finalAfter: 4, ...options, slotMs });
  atEnd(() => service.close());
  const client = await openSolana(service.url);
  const id = `solana:${(await client.connection.getGenesisHash()).slice(0, 32)}`;
  const mint = await spl.makeMint(client, kind);
  const asset = `${id}/token:${mint.address}`;
  return { url: service.url, id, asset, client, mint, slotMs, knobs: openKnobs(service.url), service };
}

/** A treasury and so many relayers with 10 SOL each. */
export async function makeSolanaKeys({ client }: TestSolana, lanes = 1): Promise<SolanaChainKeys> {
  const keys = newSolanaKeys(lanes);
  const relayers = keys.lanes.map(({ address }) => address);
  await fundSol(client, relayers, 10_000_000_000n);
  return keys;
}

/** A buyer with so many tokens (1000 when unset, in the smallest unit) and no SOL. */
export async function fundSolanaBuyer(solana: TestSolana, amount = 1_000_000_000n): Promise<SolanaKey> {
  const [buyer] = await fundSolanaBuyers(solana, 1, amount);
  if (buyer === undefined) throw new Error("no buyer was made");
  return buyer;
}

/** Many such buyers at once. */
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

/** Tokens in an owner's own account, in the smallest unit; 0 without an account. */
export function tokenBalance({ client, mint }: TestSolana, owner: string, other: spl.Mint = mint): Promise<bigint> {
  return spl.tokenBalance(client, other, owner);
}

/** A holder's own transfer, at the operator's expense, with a memo if one is given. */
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
 * So many transactions of a stranger's, each with a little of the token for an owner: 1, 2, 3 and so on, in the smallest
 * unit. Gives their signatures.
 */
export function sendDust({ client, mint }: TestSolana, to: string, count: number): Promise<string[]> {
  const [token, account, program] = [mint.address, spl.tokenAccountOf(mint, to), mint.program].map(
    (address) => new PublicKey(address),
  );
  if (!token || !account || !program) throw new Error("dust has somewhere to go");
  const work = Array.from({ length: count }, (_, index) => ({
    instructions: [createMintToInstruction(token, account, client.operator.publicKey, index + 1, [], program)],
  }));
  return sendAll(client, work);
}
