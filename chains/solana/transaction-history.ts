import type { Connection, VersionedTransactionResponse } from "@solana/web3.js";
import { z } from "zod";
import { ChainError } from "../errors.ts";
import type { Call } from "../json-rpc.ts";
import { Height } from "./cluster-state.ts";
import { isSignature } from "./ed25519-keys.ts";
import { askFirstSlot } from "./first-block.ts";
import type { SolanaChain } from "./open-solana-chain.ts";
import { isSlotNotReached } from "./solana-rpc.ts";

/** Maximum number of signatures per call. Some endpoints return fewer. */
const PAGE = 1_000;

/** A final transaction that names an account. `memo` is the endpoint's text about its memos, not cleaned. */
export type ListedTransaction = { signature: string; slot: number; failed: boolean; memo: string };

/** A list with an entry that cannot be stored is no answer, so that the other endpoints' lists are. */
const Listed = z.array(
  z.object({
    signature: z.string().refine(isSignature),
    slot: z.int().nonnegative(),
    err: z.unknown(),
    memo: z.string().nullish(),
  }),
);

/** Which page of an account's history to list. The page contains neither `until` nor `before`. */
type PageArgs = {
  account: string;
  until?: string | undefined;
  before?: string | undefined;
  atSlot?: number | undefined;
  limit?: number;
  depth?: "confirmed" | "finalized";
};

/**
 * Returns a page of the transactions that name an account, newest first, after `until` and before `before`, final ones
 * unless `depth` says otherwise. An empty page is the end of the list. Skips endpoints that have not reached slot `atSlot`.
 * Throws ChainError.
 */
export async function listSignatures(chain: SolanaChain, args: PageArgs): Promise<ListedTransaction[]> {
  return chain.rpc.ask("getSignaturesForAddress", (_connection, call) => askSignatures(call, args));
}

/** The same at each endpoint: after which transaction each lists. */
type EachPageArgs = Omit<PageArgs, "until" | "before"> & { untilOf?: (by: string) => string | undefined };

/** A page of an account's history, as one endpoint lists it. */
export type EndpointPage = { by: string; page: readonly ListedTransaction[] };

/**
 * Where the listing of an account continues at each endpoint: before a signature, which has this slot. It is null at an endpoint whose
 * list has ended; one that is missing begins with the newest transaction.
 */
export type EndpointPlaces = { readonly [endpoint: string]: { before: string; slot: number } | null };

/**
 * Returns pages as `listSignaturesOfEach` does: those that satisfy `isUsable`, and the empty ones of endpoints of whose history's first
 * slot `isEnd` says that it is the end. `short` names the endpoints whose pages do not count, and `answered` those that answered, the
 * ones that have not reached slot `atSlot` included. Throws ChainError if no endpoint answers, unless the list of one has ended.
 */
export async function findSignatures(
  chain: SolanaChain,
  { places, ...args }: EachPageArgs & { places: EndpointPlaces },
  { isUsable, isEnd }: { isUsable(one: EndpointPage): boolean; isEnd(firstSlot: number): boolean },
): Promise<{ pages: readonly EndpointPage[]; short: readonly string[]; answered: readonly string[] }> {
  let { shown, answered } = await listSignaturesOfEach(chain, args, places);
  if (answered.length === 0 && !Object.values(places).includes(null)) {
    // This asks suspended endpoints too, and several times.
    shown = [await chain.rpc.ask("getSignaturesForAddress", askPage(args, places))];
    answered = shown.map(({ by }) => by);
  }
  const usable = shown.filter((one) => isUsable(one));
  const empty = shown.filter((one) => one.page.length === 0 && !isUsable(one));
  const pages = [...usable, ...(await keepEnded(chain, empty, isEnd))];
  const short = shown.filter((one) => !pages.includes(one)).map(({ by }) => by);
  return { pages, short, answered };
}

/** Returns the pages of the endpoints of whose history's first slot `isEnd` says that it is the end. */
async function keepEnded(
  chain: SolanaChain,
  pages: readonly EndpointPage[],
  isEnd: (firstSlot: number) => boolean,
): Promise<readonly EndpointPage[]> {
  if (pages.length === 0) return [];
  // Read after the pages: blocks that are deleted in between count as missing.
  const begins = await chain.rpc.queryAvailable(
    "getFirstAvailableBlock",
    (_connection, call) => askFirstSlot(call),
    (by) => pages.some((page) => page.by === by),
  );
  return pages.filter(({ by }) => begins.some((one) => one.by === by && isEnd(one.answer)));
}

/**
 * Returns a page as `listSignatures` does, from each endpoint that has reached slot `atSlot`. Each continues at its own place, and
 * one whose list has ended is not asked. `answered` names the endpoints that answered. Never throws.
 */
export async function listSignaturesOfEach(
  chain: SolanaChain,
  args: EachPageArgs,
  places: EndpointPlaces,
): Promise<{ shown: readonly EndpointPage[]; answered: readonly string[] }> {
  const ask = askPage(args, places);
  const answers = await chain.rpc.queryAvailable(
    "getSignaturesForAddress",
    (...endpoint) =>
      ask(...endpoint).catch((error: unknown) => {
        if (isSlotNotReached(error)) return undefined;
        throw error;
      }),
    (by) => places[by] !== null,
  );
  return { shown: answers.flatMap(({ answer }) => answer ?? []), answered: answers.map(({ by }) => by) };
}

/** Returns a question that lists a page at an endpoint's own place. */
function askPage({ untilOf, ...args }: EachPageArgs, places: EndpointPlaces) {
  return async (_connection: Connection, call: Call, by: string): Promise<EndpointPage> => ({
    by,
    page: await askSignatures(call, { ...args, until: untilOf?.(by), before: places[by]?.before }),
  });
}

/** Returns a page as `listSignatures` does, from one endpoint. */
export async function askSignatures(call: Call, args: PageArgs): Promise<ListedTransaction[]> {
  const { account, until, before, atSlot, limit = PAGE, depth = "finalized" } = args;
  // JSON leaves out what is undefined.
  const bounds = { until, before, minContextSlot: atSlot, limit: Math.min(PAGE, limit), commitment: depth };
  const page = Listed.parse(await call("getSignaturesForAddress", [account, bounds]));
  // An entry without `err` does not say that the transaction succeeded.
  return page.map(({ signature, slot, err, memo }) => ({ signature, slot, failed: err !== null, memo: memo ?? "" }));
}

/** Returns the newest final transaction that names an account, up to a slot, as one endpoint shows it, or undefined if there is none. */
export async function findNewestSignature(
  chain: SolanaChain,
  account: string,
  upTo = Number.POSITIVE_INFINITY,
): Promise<{ signature: string; slot: number; by: string } | undefined> {
  const limit = upTo === Number.POSITIVE_INFINITY ? 1 : PAGE;
  for (let before: string | undefined; ; ) {
    const args = { account, before, limit };
    const { by, page } = await chain.rpc.ask("getSignaturesForAddress", async (_connection, call, by) => {
      return { by, page: await askSignatures(call, args) };
    });
    const newest = page.find(({ slot }) => slot <= upTo);
    if (newest || page.length === 0) return newest && { signature: newest.signature, slot: newest.slot, by };
    before = page.at(-1)?.signature;
  }
}

/**
 * Returns true if an endpoint says that its history begins after a slot, and false if it does not answer. Asks as `queryNext` does, and
 * throws ChainError `budget_spent`.
 */
export async function beginsAfter(chain: SolanaChain, endpoint: string, slot: number): Promise<boolean> {
  const isAsked = (by: string) => by === endpoint;
  const begin = await chain.rpc.queryNext("getFirstAvailableBlock", (_connection, call) => askFirstSlot(call), isAsked);
  return begin !== undefined && begin.answer > slot;
}

/** A transaction, and how deep it has to be. */
type Wanted = { signature: string; commitment: "confirmed" | "finalized" };
/** Reads something from a transaction as endpoint `by` has it. Throws ChainError `rpc_answer` for an answer that lacks what is needed. */
type Read<T> = (shown: VersionedTransactionResponse, by: string) => T;

/**
 * Returns what `read` reads from a transaction as each endpoint has it. Leaves out endpoints that do not answer or do not have
 * it, and those for whose answers `read` throws ChainError. Never throws.
 */
export async function readTransactionFromEach<T>(
  chain: SolanaChain,
  wanted: Wanted,
  read: Read<T>,
): Promise<{ by: string; answer: T }[]> {
  const answers = await chain.rpc.queryAvailable("getTransaction", askReading(wanted, read));
  return answers.flatMap(({ by, answer }) => (answer === undefined ? [] : [{ by, answer }]));
}

/**
 * Returns what `read` reads from a transaction at the next endpoint whose name satisfies `isAsked` and that answers: undefined if it
 * does not have it. Asks as `queryNext` does.
 */
export function readTransactionFromNext<T>(
  chain: SolanaChain,
  wanted: Wanted,
  read: Read<T>,
  isAsked: (by: string) => boolean,
): Promise<{ by: string; answer: T | undefined } | undefined> {
  return chain.rpc.queryNext("getTransaction", askReading(wanted, read), isAsked);
}

/** Returns what `findTransaction` reads from a final transaction. Throws ChainError `rpc_behind` if no endpoint that answered has it. */
export async function readTransaction<T>(chain: SolanaChain, signature: string, read: Read<T>): Promise<T> {
  const found = await findTransaction(chain, { signature, commitment: "finalized" }, read);
  if (found !== undefined) return found;
  throw new ChainError("rpc_behind", { detail: `transaction ${signature}` });
}

/**
 * Returns what `read` reads from a transaction at the first endpoint, or at any other one if that endpoint does not have it or returns
 * an error, or `read` throws ChainError `rpc_answer` for its answer. Returns undefined if no endpoint that answered has it. Throws
 * ChainError.
 */
export async function findTransaction<T>(chain: SolanaChain, wanted: Wanted, read: Read<T>): Promise<T | undefined> {
  const ask = askReading(wanted, read);
  let refusal: unknown;
  const first = await chain.rpc.ask("getTransaction", ask).catch((error: unknown) => {
    if (!(error instanceof ChainError && error.code === "rpc_answer")) throw error;
    refusal = error;
    return undefined;
  });
  if (first !== undefined) return first;
  const all = await chain.rpc.queryAvailable("getTransaction", ask);
  const found = all.find(({ answer }) => answer !== undefined)?.answer;
  if (found === undefined && refusal !== undefined) throw refusal;
  return found;
}

function askReading<T>({ signature, commitment }: Wanted, read: Read<T>) {
  return async (connection: Connection, _call: Call, by: string): Promise<T | undefined> => {
    const shown = await connection.getTransaction(signature, { commitment, maxSupportedTransactionVersion: 0 });
    if (!shown) return undefined;
    Height.parse(shown.slot);
    return read(shown, by);
  };
}
