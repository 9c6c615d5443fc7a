import { type AccountInfo, PublicKey } from "@solana/web3.js";
import { z } from "zod";
import { cleanText } from "../../runtime/clean-text.ts";
import { ChainError } from "../errors.ts";
import type { Call } from "../json-rpc.ts";
import type { SolanaChain } from "./open-solana-chain.ts";

/** Maximum number of accounts per call. */
const ACCOUNTS_PER_CALL = 100;
/** Maximum number of signatures per call. */
const SIGNATURES_PER_CALL = 256;

/** An account on the chain. */
export type Account = { owner: string; lamports: bigint; data: Uint8Array };

/**
 * Returns the account if something has created it: undefined if it does not exist, or has lamports only. Anyone can send lamports to
 * an address before it is used, and that does not prevent its creation.
 */
export function keepCreated(account: Account | undefined): Account | undefined {
  return account !== undefined && account.data.length > 0 ? account : undefined;
}

/** Returns accounts in the order of their addresses, undefined for an account that does not exist. */
export async function readAccounts(
  chain: SolanaChain,
  addresses: readonly string[],
  commitment: "confirmed" | "finalized" = "confirmed",
): Promise<(Account | undefined)[]> {
  return (await readAccountsAt(chain, addresses, commitment)).accounts;
}

/** Returns accounts in the order of their addresses, and the slot that the answering endpoints have reached. */
export async function readAccountsAt(
  chain: SolanaChain,
  addresses: readonly string[],
  commitment: "confirmed" | "finalized",
): Promise<{ slot: number; accounts: (Account | undefined)[] }> {
  const chunks = chunk(addresses, ACCOUNTS_PER_CALL).map((some) =>
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

const Accounts = z.object({
  value: z.array(
    z.object({ owner: z.string(), lamports: z.number(), data: z.tuple([z.string(), z.literal("base64")]) }).nullable(),
  ),
});

/** Returns those of these accounts that exist in the newest state, which may be reverted, by their addresses. */
export async function readNewestAccounts(
  chain: SolanaChain,
  addresses: readonly string[],
): Promise<Map<string, Account>> {
  const options = { encoding: "base64", commitment: "processed" };
  const found = await Promise.all(
    chunk(addresses, ACCOUNTS_PER_CALL).map(async (some) => {
      const { value } = await chain.rpc.ask("getMultipleAccounts", async (_connection, call) =>
        Accounts.parse(await call("getMultipleAccounts", [some, options])),
      );
      return some.flatMap((address, index): [string, Account][] => {
        const account = value[index];
        if (!account) return [];
        const { owner, lamports, data } = account;
        return [[address, { owner, lamports: BigInt(lamports), data: Buffer.from(data[0], "base64") }]];
      });
    }),
  );
  return new Map(found.flat());
}

const Validity = z.object({ context: z.object({ slot: z.number() }), value: z.boolean() });

/** Returns those of these blockhashes that are valid in the newest state, each with the slot of the answer. */
export async function listValidBlockhashes(
  chain: SolanaChain,
  blockhashes: readonly string[],
): Promise<Map<string, number>> {
  const answers = await Promise.all(
    blockhashes.map(async (blockhash): Promise<[string, number][]> => {
      const { context, value } = await chain.rpc.ask("isBlockhashValid", async (_connection, call) =>
        Validity.parse(await call("isBlockhashValid", [blockhash, { commitment: "processed" }])),
      );
      return value ? [[blockhash, context.slot]] : [];
    }),
  );
  return new Map(answers.flat());
}

function toAccount({ owner, lamports, data }: AccountInfo<Buffer>): Account {
  return { owner: owner.toBase58(), lamports: BigInt(lamports), data };
}

/** Returns the newest slot at the network's finality. */
export function readHead(chain: SolanaChain): Promise<number> {
  return chain.rpc.ask("getSlot", async (_connection, call) =>
    z.number().parse(await call("getSlot", [{ commitment: chain.network.finality }])),
  );
}

/**
 * Returns the newest slot of any endpoint, final or not. A transaction sent before the call cannot be in a later slot.
 */
export async function readNewestSlot(chain: SolanaChain): Promise<number> {
  return Math.max(...(await chain.rpc.queryAll("getSlot", (connection) => connection.getSlot("processed"))));
}

export type FinalizedState = { slot: number; height: number };

const EpochInfo = z.object({ absoluteSlot: z.number(), blockHeight: z.number() });

const askFinal = async (call: Call): Promise<FinalizedState> => {
  const { absoluteSlot, blockHeight } = EpochInfo.parse(await call("getEpochInfo", [{ commitment: "finalized" }]));
  return { slot: absoluteSlot, height: blockHeight };
};

/** Returns the newest final slot and block height. Blockhashes expire by block height. */
export function readFinal(chain: SolanaChain): Promise<FinalizedState> {
  return chain.rpc.ask("getEpochInfo", (_connection, call) => askFinal(call));
}

/** Returns the highest final block height that two endpoints have reached. Throws ChainError `rpc_unreachable` if only one answers. */
export async function readAgreedHeight(chain: SolanaChain): Promise<number> {
  const answers = await chain.rpc.queryAll("getEpochInfo", (_connection, call) => askFinal(call));
  return answers.map(({ height }) => height).toSorted((one, other) => other - one)[1] ?? 0;
}

/** Returns the cluster's time of a final slot in whole seconds, or undefined if the endpoint does not know it. */
export async function readSlotTime(chain: SolanaChain, slot: number): Promise<Date | undefined> {
  const answer = chain.rpc.ask("getBlockTime", async (_connection, call) =>
    z
      .number()
      .nullable()
      .parse(await call("getBlockTime", [slot])),
  );
  const seconds = await answer.catch((error: unknown) => {
    if (error instanceof ChainError && error.code === "rpc_answer") return null;
    throw error;
  });
  return seconds === null ? undefined : new Date(seconds * 1_000);
}

/** A recent blockhash, the last block height at which it is valid, and the slot in which it was the newest. */
export type Blockhash = { blockhash: string; lastValidHeight: number; slot: number };

const LatestBlockhash = z.object({
  context: z.object({ slot: z.number() }),
  value: z.object({ blockhash: z.string(), lastValidBlockHeight: z.number() }),
});

/** Returns the newest confirmed blockhash. A finalized one would already be a third of the way to its expiry. */
export async function readBlockhash(chain: SolanaChain): Promise<Blockhash> {
  const { context, value } = await chain.rpc.ask("getLatestBlockhash", async (_connection, call) =>
    LatestBlockhash.parse(await call("getLatestBlockhash", [{ commitment: "confirmed" }])),
  );
  return { blockhash: value.blockhash, lastValidHeight: value.lastValidBlockHeight, slot: context.slot };
}

/** The status of a transaction: its slot, its commitment, and its error if it failed. */
export type SignatureStatus = {
  slot: number;
  depth: "processed" | "confirmed" | "finalized";
  error: string | undefined;
};

/**
 * Returns the statuses of signatures in order, and the slot that the answering endpoints have reached. A status is undefined
 * if the transaction is unknown. Nodes keep the statuses of about one minute in memory; they search for older ones only if
 * `history` is true.
 */
export async function readStatuses(
  chain: SolanaChain,
  signatures: readonly string[],
  { history }: { history: boolean },
): Promise<{ slot: number; statuses: (SignatureStatus | undefined)[] }> {
  const answers = await Promise.all(
    chunk(signatures, SIGNATURES_PER_CALL).map((some) =>
      chain.rpc.ask("getSignatureStatuses", (_connection, call) => askStatuses(call, some, history)),
    ),
  );
  const slot = Math.min(...answers.map((answer) => answer.slot));
  return { slot, statuses: answers.flatMap(({ statuses }) => statuses) };
}

/** One endpoint's status of a signature, and the slot that the endpoint has reached. */
export type EndpointStatus = { by: string; slot: number; status: SignatureStatus | undefined };

/** Returns the status of each signature at each endpoint that answers, searching the whole history. Never throws. */
export async function readEndpointStatuses(
  chain: SolanaChain,
  signatures: readonly string[],
): Promise<Map<string, EndpointStatus[]>> {
  const words = new Map(signatures.map((signature): [string, EndpointStatus[]] => [signature, []]));
  for (const some of chunk([...words.keys()], SIGNATURES_PER_CALL)) {
    const answers = await chain.rpc.queryAvailable("getSignatureStatuses", (_connection, call) =>
      askStatuses(call, some, true),
    );
    for (const { by, answer } of answers)
      for (const [index, signature] of some.entries())
        words.get(signature)?.push({ by, slot: answer.slot, status: answer.statuses[index] });
  }
  return words;
}

/**
 * Returns the signatures that no endpoint has ever seen, searching the whole history. At least two endpoints that have
 * reached slot `since` must confirm it. Throws ChainError `rpc_unreachable` or `rpc_behind` if fewer do.
 */
export async function listNeverSeen(
  chain: SolanaChain,
  signatures: readonly string[],
  { since }: { since: number },
): Promise<Set<string>> {
  const never = new Set<string>();
  for (const some of chunk(signatures, SIGNATURES_PER_CALL)) {
    const answers = await chain.rpc.queryAll("getSignatureStatuses", (_connection, call) =>
      askStatuses(call, some, true),
    );
    const unseen = some.filter((_one, index) => answers.every(({ statuses }) => statuses[index] === undefined));
    // A lagging endpoint may not have seen the transaction yet, so its answer does not count.
    if (unseen.length > 0 && answers.filter(({ slot }) => slot >= since).length < 2)
      throw new ChainError("rpc_behind", { detail: `${chain.chain}: two endpoints must reach slot ${since}` });
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
): Promise<{ slot: number; statuses: (SignatureStatus | undefined)[] }> {
  const options = history ? [{ searchTransactionHistory: true }] : [];
  const { context, value } = Statuses.parse(await call("getSignatureStatuses", [signatures, ...options]));
  if (value.length !== signatures.length) throw new Error("an endpoint returned a wrong number of statuses");
  const statuses = value.map((entry) => {
    if (!entry) return undefined;
    const { slot, err, confirmationStatus, confirmations } = entry;
    // Old nodes send no confirmationStatus. The confirmations of a final transaction are null.
    const depth = confirmationStatus ?? (confirmations === null ? "finalized" : "processed");
    return { slot, depth, error: err === null || err === undefined ? undefined : cleanText(JSON.stringify(err), 200) };
  });
  return { slot: context.slot, statuses };
}

/** Splits a list into parts of at most `size` items. */
function chunk<T>(all: readonly T[], size: number): T[][] {
  const parts: T[][] = [];
  for (let from = 0; from < all.length; from += size) parts.push(all.slice(from, from + size));
  return parts;
}
