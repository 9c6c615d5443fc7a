import { type AccountInfo, type Connection, PublicKey } from "@solana/web3.js";
import { z } from "zod";
import { chunk } from "../../runtime/chunk.ts";
import { ChainError } from "../errors.ts";
import type { Call } from "../json-rpc.ts";
import type { SolanaChain } from "./open-solana-chain.ts";

/** A slot or a block height. One that is no whole number cannot be stored, and would stop what compares it with a column. */
export const Height = z.int().nonnegative();

/** Maximum number of accounts per call. */
const ACCOUNTS_PER_CALL = 100;

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

/** Accounts in the order of their addresses, and the slot that the answering endpoints have reached. */
type AccountsAt = { slot: number; accounts: (Account | undefined)[] };
type Commitment = "confirmed" | "finalized";

/** Returns accounts in the order of their addresses, and the slot that the answering endpoints have reached. */
export async function readAccountsAt(
  chain: SolanaChain,
  addresses: readonly string[],
  commitment: Commitment,
): Promise<AccountsAt> {
  const chunks = chunk(addresses, ACCOUNTS_PER_CALL).map((some) =>
    chain.rpc.ask("getMultipleAccounts", (connection) => askAccounts(connection, some, commitment)),
  );
  return joinChunks(await Promise.all(chunks));
}

/** Returns the same accounts as each endpoint has them. Leaves out endpoints that do not answer. Never throws. */
export async function readAccountsFromEach(
  chain: SolanaChain,
  addresses: readonly string[],
  commitment: Commitment,
): Promise<AccountsAt[]> {
  const answers = await chain.rpc.queryAvailable("getMultipleAccounts", async (connection) => {
    const chunks = chunk(addresses, ACCOUNTS_PER_CALL).map((some) => askAccounts(connection, some, commitment));
    return joinChunks(await Promise.all(chunks));
  });
  return answers.map(({ answer }) => answer);
}

async function askAccounts(
  connection: Connection,
  addresses: readonly string[],
  commitment: Commitment,
): Promise<AccountsAt> {
  const keys = addresses.map((address) => new PublicKey(address));
  const { context, value } = await connection.getMultipleAccountsInfoAndContext(keys, commitment);
  return { slot: Height.parse(context.slot), accounts: value.map((info) => (info ? toAccount(info) : undefined)) };
}

function joinChunks(chunks: readonly AccountsAt[]): AccountsAt {
  const slot = Math.min(...chunks.map((one) => one.slot));
  return { slot, accounts: chunks.flatMap(({ accounts }) => accounts) };
}

/** An amount of lamports, which can be more than `z.int` accepts. */
const Lamports = z.number().nonnegative().refine(Number.isInteger);

const Accounts = z.object({
  value: z.array(
    z.object({ owner: z.string(), lamports: Lamports, data: z.tuple([z.string(), z.literal("base64")]) }).nullable(),
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

const Validity = z.object({ context: z.object({ slot: Height }), value: z.boolean() });

const askValidity = async (call: Call, blockhash: string, commitment: "processed" | "finalized") =>
  Validity.parse(await call("isBlockhashValid", [blockhash, { commitment }]));

/** Returns those of these blockhashes that are valid in the newest state, each with the slot of the answer. */
export async function listValidBlockhashes(
  chain: SolanaChain,
  blockhashes: readonly string[],
): Promise<Map<string, number>> {
  const answers = await Promise.all(
    blockhashes.map(async (blockhash): Promise<[string, number][]> => {
      const { context, value } = await chain.rpc.ask("isBlockhashValid", (_connection, call) =>
        askValidity(call, blockhash, "processed"),
      );
      return value ? [[blockhash, context.slot]] : [];
    }),
  );
  return new Map(answers.flat());
}

/** Whether an endpoint says that a blockhash is valid, and the slot of its state. */
export type BlockhashReport = { by: string; isValid: boolean; slot: number };

/**
 * Asks each endpoint whether these blockhashes are valid in its newest or final state. One that lags does not know a new blockhash yet,
 * and says that it is not. Leaves out endpoints that do not answer. Never throws.
 */
export async function readBlockhashReports(
  chain: SolanaChain,
  blockhashes: readonly string[],
  commitment: "processed" | "finalized",
): Promise<Map<string, BlockhashReport[]>> {
  const reports = await Promise.all(
    blockhashes.map(async (blockhash): Promise<[string, BlockhashReport[]]> => {
      const answers = await chain.rpc.queryAvailable("isBlockhashValid", (_connection, call) =>
        askValidity(call, blockhash, commitment),
      );
      return [blockhash, answers.map(({ by, answer }) => ({ by, isValid: answer.value, slot: answer.context.slot }))];
    }),
  );
  return new Map(reports);
}

function toAccount({ owner, lamports, data }: AccountInfo<Buffer>): Account {
  return { owner: owner.toBase58(), lamports: BigInt(lamports), data };
}

/** Returns the newest slot at the network's finality. */
export function readHead(chain: SolanaChain): Promise<number> {
  return chain.rpc.ask("getSlot", (_connection, call) => askHead(chain, call));
}

/** Returns the same slot of each endpoint whose name satisfies `isAsked`. Leaves out endpoints that do not answer. Never throws. */
export async function readHeadFromEach(chain: SolanaChain, isAsked?: (by: string) => boolean): Promise<number[]> {
  const answers = await chain.rpc.queryAvailable("getSlot", (_connection, call) => askHead(chain, call), isAsked);
  return answers.map(({ answer }) => answer);
}

async function askHead({ network }: SolanaChain, call: Call): Promise<number> {
  return Height.parse(await call("getSlot", [{ commitment: network.finality }]));
}

export type FinalizedState = { slot: number; height: number };

const EpochInfo = z.object({ absoluteSlot: Height, blockHeight: Height });

const askState = async (call: Call, commitment: Commitment): Promise<FinalizedState> => {
  const { absoluteSlot, blockHeight } = EpochInfo.parse(await call("getEpochInfo", [{ commitment }]));
  return { slot: absoluteSlot, height: blockHeight };
};

/** Returns the newest final slot and block height. Blockhashes expire by block height. */
export function readFinal(chain: SolanaChain): Promise<FinalizedState> {
  return chain.rpc.ask("getEpochInfo", (_connection, call) => askState(call, "finalized"));
}

/** The newest final slot and block height of an endpoint. */
export type ReportedState = { by: string } & FinalizedState;

/**
 * Asks each endpoint for its newest final slot and block height, and passes its name and the answer to come to `onAsked`. Ends when all
 * have answered or failed. Never throws.
 */
export async function askFinalOfEach(
  chain: SolanaChain,
  onAsked: (by: string, answer: Promise<ReportedState>) => void,
): Promise<void> {
  await chain.rpc.queryAvailable("getEpochInfo", async (_connection, call, by) => {
    const answer = askState(call, "finalized").then((state) => ({ by, ...state }));
    onAsked(by, answer);
    await answer;
  });
}

/**
 * Returns the highest confirmed block height that two endpoints have reached. Throws ChainError `rpc_unreachable` if only one
 * answers.
 */
export async function readAgreedHeight(chain: SolanaChain): Promise<number> {
  const heights = await chain.rpc.queryAll("getEpochInfo", (_connection, call) => askConfirmedHeight(call));
  return heights.toSorted((one, other) => other - one)[1] ?? 0;
}

/** Returns the confirmed block height of each endpoint. Leaves out endpoints that do not answer. Never throws. */
export async function readConfirmedHeights(chain: SolanaChain): Promise<number[]> {
  const answers = await chain.rpc.queryAvailable("getEpochInfo", (_connection, call) => askConfirmedHeight(call));
  return answers.map(({ answer }) => answer);
}

const askConfirmedHeight = async (call: Call): Promise<number> => (await askState(call, "confirmed")).height;

/** A time in seconds, as far as a date can hold it. */
const Seconds = z.int().nonnegative().max(8.64e12);

/** Returns the cluster's time of a final slot in whole seconds, or undefined if the endpoint does not know it. */
export async function readSlotTime(chain: SolanaChain, slot: number): Promise<Date | undefined> {
  const answer = chain.rpc.ask("getBlockTime", async (_connection, call) =>
    Seconds.nullable().parse(await call("getBlockTime", [slot])),
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
  context: z.object({ slot: Height }),
  value: z.object({ blockhash: z.string(), lastValidBlockHeight: Height }),
});

/** Returns the newest confirmed blockhash. A finalized one would already be a third of the way to its expiry. */
export async function readBlockhash(chain: SolanaChain): Promise<Blockhash> {
  const { context, value } = await chain.rpc.ask("getLatestBlockhash", async (_connection, call) =>
    LatestBlockhash.parse(await call("getLatestBlockhash", [{ commitment: "confirmed" }])),
  );
  return { blockhash: value.blockhash, lastValidHeight: value.lastValidBlockHeight, slot: context.slot };
}

/**
 * Returns the last block height at which a transaction with a blockhash can be included that is signed before the call, by the
 * endpoint that has the newest blockhash. Throws ChainError `rpc_unreachable` if only one endpoint answers.
 */
export async function readLastValidHeight(chain: SolanaChain): Promise<number> {
  const answers = await chain.rpc.queryAll("getLatestBlockhash", async (_connection, call) =>
    LatestBlockhash.parse(await call("getLatestBlockhash", [{ commitment: "processed" }])),
  );
  return Math.max(...answers.map(({ value }) => value.lastValidBlockHeight));
}
