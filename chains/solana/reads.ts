import { type AccountInfo, PublicKey } from "@solana/web3.js";
import { z } from "zod";
import { cleanText } from "../../ops/clean-text.ts";
import { ChainFault } from "../faults.ts";
import type { Call } from "./json-rpc.ts";
import type { SolanaChain } from "./open.ts";

/** Accounts in one call; what endpoints allow. */
const ACCOUNTS = 100;
/** Signatures in one call; what the method allows. */
const STATUSES = 256;

/** An account as the chain has it. */
export type Account = { owner: string; lamports: bigint; data: Uint8Array };

/** Accounts at an address each, in the order asked; undefined where there is none. */
export async function readAccounts(
  chain: SolanaChain,
  addresses: readonly string[],
  commitment: "confirmed" | "finalized" = "confirmed",
): Promise<(Account | undefined)[]> {
  return (await readAccountsAt(chain, addresses, commitment)).accounts;
}

/** The same with the slot up to which whoever answered knows of everything. */
export async function readAccountsAt(
  chain: SolanaChain,
  addresses: readonly string[],
  commitment: "confirmed" | "finalized",
): Promise<{ slot: number; accounts: (Account | undefined)[] }> {
  const chunks = chunk(addresses, ACCOUNTS).map((some) =>
    chain.rpc.ask("getMultipleAccounts", (connection) =>
      connection.getMultipleAccountsInfoAndContext(
        some.map((address) => new PublicKey(address)),
        commitment,
      ),
    ),
  );
  const answers = await Promise.all(chunks);
  return {
    slot: Math.min(...answers.map(({ context }) => context.slot)),
    accounts: answers.flatMap(({ value }) => value).map((info) => (info ? toAccount(info) : undefined)),
  };
}

function toAccount({ owner, lamports, data }: AccountInfo<Buffer>): Account {
  return { owner: owner.toBase58(), lamports: BigInt(lamports), data };
}

/** The newest slot at the network's finality. */
export function readHead(chain: SolanaChain): Promise<number> {
  return chain.rpc.ask("getSlot", (connection) => connection.getSlot(chain.network.finality));
}

/** The newest slot that any endpoint knows of, final or not: what was sent to the cluster has reached none later. */
export async function readNewestSlot(chain: SolanaChain): Promise<number> {
  return Math.max(...(await chain.rpc.askEach("getSlot", (connection) => connection.getSlot("processed"))));
}

export type Final = { slot: number; height: number };

/** How far the cluster is final: its slot, and the block height that blockhashes die by. */
export async function readFinal(chain: SolanaChain): Promise<Final> {
  const { absoluteSlot, blockHeight } = await chain.rpc.ask("getEpochInfo", (connection) =>
    connection.getEpochInfo("finalized"),
  );
  if (blockHeight === undefined) throw new Error(`${chain.chain} says no block height`);
  return { slot: absoluteSlot, height: blockHeight };
}

/** Returns when a final slot was, by the cluster's own clock, whole seconds; undefined where an endpoint does not know. */
export async function readSlotTime(chain: SolanaChain, slot: number): Promise<Date | undefined> {
  const asked = chain.rpc.ask("getBlockTime", (connection) => connection.getBlockTime(slot));
  const seconds = await asked.catch((error: unknown) => {
    if (error instanceof ChainFault && error.code === "rpc_answer") return null;
    throw error;
  });
  return seconds === null ? undefined : new Date(seconds * 1_000);
}

/** A blockhash to build on, the last block height at which it lives, and the slot in which it was the newest. */
export type Blockhash = { blockhash: string; lastHeight: number; slot: number };

/** The newest blockhash at `confirmed`: a finalized one would have spent a third of its life already. */
export async function readBlockhash(chain: SolanaChain): Promise<Blockhash> {
  const { context, value } = await chain.rpc.ask("getLatestBlockhash", (connection) =>
    connection.getLatestBlockhashAndContext("confirmed"),
  );
  return { blockhash: value.blockhash, lastHeight: value.lastValidBlockHeight, slot: context.slot };
}

/** What the cluster says of a transaction: not seen (undefined), or where, how deep, and whether it failed. */
export type Status = { slot: number; depth: "processed" | "confirmed" | "finalized"; error: string | undefined };

/**
 * The statuses of signatures, in the order asked, one call for 256 of them; and the slot up to which whoever answered
 * knows of everything. Nodes keep those of the last minute or so at hand; older ones they look for only when the whole
 * history is asked for.
 */
export async function readStatuses(
  chain: SolanaChain,
  signatures: readonly string[],
  { history }: { history: boolean },
): Promise<{ slot: number; statuses: (Status | undefined)[] }> {
  const answers = await Promise.all(
    chunk(signatures, STATUSES).map((some) =>
      chain.rpc.ask("getSignatureStatuses", (_connection, call) => askStatuses(call, some, history)),
    ),
  );
  const slot = Math.min(...answers.map((answer) => answer.slot));
  return { slot, statuses: answers.flatMap(({ statuses }) => statuses) };
}

/** One endpoint's word on a signature, and the slot up to which it knows of everything. */
export type Word = { by: string; slot: number; status: Status | undefined };

/** What each endpoint that answers says of some signatures by itself, with the whole history searched. Never throws. */
export async function readWords(chain: SolanaChain, signatures: readonly string[]): Promise<Map<string, Word[]>> {
  const words = new Map(signatures.map((signature): [string, Word[]] => [signature, []]));
  for (const some of chunk([...words.keys()], STATUSES)) {
    const answers = await chain.rpc.askAny("getSignatureStatuses", (_connection, call) =>
      askStatuses(call, some, true),
    );
    for (const { by, answer } of answers)
      for (const [index, signature] of some.entries())
        words.get(signature)?.push({ by, slot: answer.slot, status: answer.statuses[index] });
  }
  return words;
}

/**
 * Which of some signatures no endpoint has ever seen, with the whole history searched: at least two endpoints have to say
 * so that have come to a slot themselves. Throws ChainFault while there are fewer: `rpc_unreachable`, or `rpc_behind`.
 */
export async function listNeverSeen(
  chain: SolanaChain,
  signatures: readonly string[],
  { since }: { since: number },
): Promise<Set<string>> {
  const never = new Set<string>();
  for (const some of chunk(signatures, STATUSES)) {
    const answers = await chain.rpc.askEach("getSignatureStatuses", (_connection, call) =>
      askStatuses(call, some, true),
    );
    const unseen = some.filter((_one, index) => answers.every(({ statuses }) => statuses[index] === undefined));
    // An endpoint that lags has not seen anything yet, and what it does not know says nothing.
    if (unseen.length > 0 && answers.filter(({ slot }) => slot >= since).length < 2)
      throw new ChainFault("rpc_behind", { detail: `${chain.chain}: slot ${since}, at two endpoints` });
    for (const signature of unseen) never.add(signature);
  }
  return never;
}

const Statuses = z.object({
  context: z.object({ slot: z.number() }),
  value: z.array(
    z
      .object({
        slot: z.number(),
        err: z.unknown(),
        confirmationStatus: z.enum(["processed", "confirmed", "finalized"]).nullish(),
        confirmations: z.number().nullish(),
      })
      .nullable(),
  ),
});

async function askStatuses(
  call: Call,
  signatures: readonly string[],
  history: boolean,
): Promise<{ slot: number; statuses: (Status | undefined)[] }> {
  const options = history ? [{ searchTransactionHistory: true }] : [];
  const { context, value } = Statuses.parse(await call("getSignatureStatuses", [signatures, ...options]));
  if (value.length !== signatures.length) throw new Error("an endpoint gave fewer statuses than it was asked for");
  const statuses = value.map((told) => {
    if (!told) return undefined;
    const { slot, err, confirmationStatus, confirmations } = told;
    // Old nodes name no depth; what is final has no confirmations to count any more.
    const depth = confirmationStatus ?? (confirmations === null ? "finalized" : "processed");
    return { slot, depth, error: err === null || err === undefined ? undefined : cleanText(JSON.stringify(err), 200) };
  });
  return { slot: context.slot, statuses };
}

/** Splits a list into parts of so many at most. */
function chunk<T>(all: readonly T[], size: number): T[][] {
  const parts: T[][] = [];
  for (let from = 0; from < all.length; from += size) parts.push(all.slice(from, from + size));
  return parts;
}
