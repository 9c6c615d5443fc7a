import { base58 } from "@scure/base";
import type { ChainTransfer } from "./evm-scan.ts";

/**
 * A scan of a Solana cluster, read by plain JSON-RPC and decoded by hand. It shares no code with the service, so that an
 * error in how the service reads a cluster cannot hide itself.
 */
export type SolanaScan = {
  /** The successful transfers of every transaction that names the treasury's account; `nonce` is the memo after a transfer. */
  transfers: ChainTransfer[];
  /** Every transaction that a lane paid for: `fee` is its fee, and `spent` also includes the rents. */
  transactions: { hash: string; lane: string; fee: bigint; spent: bigint; failed: boolean }[];
  /** The treasury's balance of each mint. */
  held: Record<string, bigint>;
  /** The lamports of each lane. */
  lamports: Record<string, bigint>;
};

const memoProgram = "MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr";
const tokenPrograms = [
  "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA",
  "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb",
] as const;
/** The ledger numbers the instructions of a transaction in steps of this; inner instructions use the numbers between. */
const perInstruction = 256;
/** The first byte of TransferChecked; the next eight bytes are the amount. */
const transferChecked = 12;

type Instruction = { programIdIndex: number; accounts: number[]; data: string };
type Holding = { accountIndex: number; mint: string; owner: string };
type Found = {
  blockTime: number | null;
  transaction: { message: { accountKeys: string[]; instructions: Instruction[] } };
  meta: {
    err: unknown;
    fee: number;
    preBalances: number[];
    postBalances: number[];
    preTokenBalances: Holding[];
    postTokenBalances: Holding[];
  };
};

/** Reads the final history of the treasury's token account and of the lanes, and their balances. */
export async function scanSolana(args: {
  url: string;
  mint: string;
  treasuryAccount: string;
  lanes: readonly string[];
}): Promise<SolanaScan> {
  const ask = <T>(method: string, ...params: unknown[]) => askSolana<T>(args.url, method, params);
  const final = { commitment: "finalized" };
  const read = (hash: string) => ask<Found>("getTransaction", hash, { ...final, maxSupportedTransactionVersion: 0 });

  const transfers: ChainTransfer[] = [];
  for (const hash of await listHistory(ask, args.treasuryAccount))
    transfers.push(...readTransfers(hash, await read(hash)));
  const transactions: SolanaScan["transactions"] = [];
  const lamports: Record<string, bigint> = {};
  for (const lane of args.lanes) {
    for (const hash of await listHistory(ask, lane)) {
      const { transaction, meta } = await read(hash);
      if (transaction.message.accountKeys[0] !== lane) continue;
      const spent = BigInt((meta.preBalances[0] ?? 0) - (meta.postBalances[0] ?? 0));
      transactions.push({ hash, lane, fee: BigInt(meta.fee), spent, failed: meta.err !== null });
    }
    lamports[lane] = BigInt((await ask<{ value: number }>("getBalance", lane, final)).value);
  }
  const account = args.treasuryAccount;
  const { value } = await ask<{ value: { amount: string } }>("getTokenAccountBalance", account, final);
  return { transfers, transactions, held: { [args.mint]: BigInt(value.amount) }, lamports };
}

type CallRpc = <T>(method: string, ...params: unknown[]) => Promise<T>;

/** The signatures of an account's history, newest first. */
async function listHistory(ask: CallRpc, account: string): Promise<string[]> {
  const all: string[] = [];
  for (;;) {
    const before = all.length === 0 ? {} : { before: all.at(-1) };
    const config = { commitment: "finalized", limit: 1_000, ...before };
    const page = await ask<{ signature: string }[]>("getSignaturesForAddress", account, config);
    all.push(...page.map(({ signature }) => signature));
    if (page.length < 1_000) return all;
  }
}

function readTransfers(hash: string, { transaction, meta, blockTime }: Found): ChainTransfer[] {
  if (meta.err !== null) return [];
  const { accountKeys, instructions } = transaction.message;
  // The metadata holds a balance for every token account that the transaction names.
  const holdings = new Map([...meta.preTokenBalances, ...meta.postTokenBalances].map((one) => [one.accountIndex, one]));
  return instructions.flatMap(({ programIdIndex, accounts, data }, position) => {
    const bytes = base58.decode(data);
    const isTransfer = tokenPrograms.some((program) => program === accountKeys[programIdIndex]);
    if (!isTransfer || bytes[0] !== transferChecked) return [];
    const [source, , destination] = accounts.map((index) => holdings.get(index));
    if (source === undefined || destination === undefined)
      throw new Error(`${hash} moves tokens of an unknown account`);
    const amount = Buffer.from(bytes).readBigUInt64LE(1);
    const moved = { token: source.mint, from: source.owner, to: destination.owner, amount };
    const nonce = readMemo(accountKeys, instructions[position + 1]);
    return [{ txHash: hash, logIndex: position * perInstruction, ...moved, nonce, at: blockTime ?? 0 }];
  });
}

function readMemo(accountKeys: readonly string[], next: Instruction | undefined): string | null {
  if (next === undefined || accountKeys[next.programIdIndex] !== memoProgram) return null;
  return Buffer.from(base58.decode(next.data)).toString("utf8");
}

async function askSolana<T>(url: string, method: string, params: readonly unknown[]): Promise<T> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
  const { result, error } = (await response.json()) as { result: T; error?: { message: string } };
  if (error !== undefined) throw new Error(`${method}: ${error.message}`);
  return result;
}
