import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { ChainFault } from "../../chains/faults.ts";
import type { SeenTransfer } from "../../chains/movements.ts";
import { getSolanaChain } from "../../chains/open.ts";
import { readTransaction } from "../../chains/solana/history.ts";
import { readMovements } from "../../chains/solana/movements.ts";
import type { SolanaChain, SolanaToken } from "../../chains/solana/open.ts";
import { readFinal } from "../../chains/solana/reads.ts";
import { type Held, noteRead, releaseAccount, takeAccount } from "../../db/account-cursors.ts";
import { type HistoryEntry, listDueEntries, noteUnread, takeEntries } from "../../db/history-entries.ts";
import { listKnownMovements } from "../../db/sightings.ts";
import { cleanText } from "../../ops/clean-text.ts";
import type { Books } from "../books.ts";
import type { TransferDeps } from "../deps.ts";
import { recordBlocks } from "../record.ts";
import { bookForgotten, type Forgotten, readForgotten } from "./forgotten.ts";
import { listHistory } from "./list-history.ts";

/** An account is another reader's when this one has not been heard of for so long, milliseconds. */
const LEASE_MS = 30_000;
/** How long one run reads on, milliseconds: then the job ends, and another one goes on. */
const RUN_MS = 5_000;
/** Transactions read and recorded together, and calls side by side. */
const PART = 64;
const AT_ONCE = 16;
/** Waits before an entry that could not be read is tried again, milliseconds; it doubles up to the longest. */
const FIRST_WAIT_MS = 2_000;
const LONGEST_WAIT_MS = 10 * 60_000;
/** After so many tries, in about eight minutes, an entry no longer holds up payouts; it is still tried, and an alert says so. */
export const UNREADABLE = 8;

/** Who books what the history shows. */
type HistoryBooks = Pick<Books, "bound" | "gas" | "rent">;

type Account = { chain: SolanaChain; token: SolanaToken; held: Held; books: HistoryBooks };

/**
 * Finds what moved into or out of the treasury by transactions that are not ours, in the final history of its token
 * accounts. What is new is listed and stored first, then read in parts, each stored by itself: a crash between them loses
 * and doubles nothing, and strangers who send dust keep nothing waiting but each other. What was meant for a payment that
 * waits opens its attempt; the rest is for the exceptions. One caller at a time reads an account.
 * Gives `more` when something is left that can be read now. Throws ChainFault after everything else was tried.
 */
export async function readHistory(deps: TransferDeps, chainId: string, books: HistoryBooks): Promise<"idle" | "more"> {
  const chain = getSolanaChain(deps.chains, chainId);
  const ends: boolean[] = [];
  const failures: unknown[] = [];
  for (const token of chain.tokens.values()) {
    const held = { chain: chain.chain, account: token.treasuryAccount, owner: randomUUID() };
    await readAccount(deps, { chain, token, held, books }).then(
      (more) => ends.push(more),
      (error: unknown) => failures.push(error),
    );
  }
  if (failures.length > 0) throw failures[0];
  return ends.includes(true) ? "more" : "idle";
}

async function readAccount(deps: TransferDeps, account: Account): Promise<boolean> {
  const { chain, held } = account;
  const take = () => takeAccount(deps.db, { ...held, now: deps.now(), until: leaseEnd(deps) });
  const cursor = await take();
  if (!cursor) return false;
  try {
    const list = async () => listHistory(deps, chain, { cursor, held, final: (await readFinal(chain)).slot });
    // What is listed already is read, also while nothing can be listed.
    const listed = await list().catch((error: unknown) => ({ error }));
    const isRead = await readEntries(deps, account, async () => (await take()) !== undefined);
    if (typeof listed === "object") throw listed.error;
    return !listed || !isRead;
  } finally {
    await noteRead(deps.db, held, { unreadable: UNREADABLE });
    await releaseAccount(deps.db, held);
  }
}

const leaseEnd = (deps: TransferDeps) => new Date(deps.now().getTime() + LEASE_MS);

/** Reads part after part, no faster than the network's setting, until nothing is due, or the run has been long enough. */
async function readEntries(deps: TransferDeps, account: Account, renew: () => Promise<boolean>): Promise<boolean> {
  const { historyReadsPerSecond: perSecond } = account.chain.network;
  const limit = Math.min(PART, perSecond);
  const due = () => listDueEntries(deps.db, { ...account.held, now: deps.now(), limit });
  const began = performance.now();
  for (let entries = await due(); entries.length > 0; entries = await due()) {
    if (performance.now() - began > RUN_MS || !(await renew())) return false;
    const partBegan = performance.now();
    await readPart(deps, account, entries);
    const wait = (entries.length / perSecond) * 1_000 - (performance.now() - partBegan);
    if (entries.length === limit && wait > 0) await delay(wait);
  }
  return true;
}

/** What an entry shows: movements, and what it has cost us where it is a transaction of ours that the rows have forgotten. */
type Found = { seen: SeenTransfer[]; forgotten: Forgotten | undefined };
type Read = { entry: HistoryEntry } & Found;

/**
 * Reads some entries side by side and records them. One that cannot be read or recorded is tried later, by itself. Throws
 * ChainFault `rpc_unreachable` when no endpoint answered, without asking for the rest; what was read is recorded.
 */
async function readPart(deps: TransferDeps, account: Account, entries: readonly HistoryEntry[]): Promise<void> {
  const reads: Read[] = [];
  const queue = [...entries];
  let silence: ChainFault | undefined;
  const go = async (): Promise<void> => {
    for (let entry = queue.shift(); entry; entry = queue.shift()) {
      const found = await readEntry(account, entry).catch((error: unknown) => ({ error }));
      if (!("error" in found)) {
        reads.push({ entry, ...found });
        continue;
      }
      await putOff(deps, entry, found.error);
      if (!(found.error instanceof ChainFault && found.error.code === "rpc_unreachable")) continue;
      silence = found.error;
      queue.splice(0);
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, entries.length) }, go));
  await record(deps, account, reads);
  if (silence) throw silence;
}

async function readEntry({ chain, token }: Account, { signature }: HistoryEntry): Promise<Found> {
  const accounts = new Map([[token.treasuryAccount, token.token]]);
  const transaction = await readTransaction(chain, signature);
  const { slot } = transaction;
  const at = transaction.blockTime ? new Date(transaction.blockTime * 1_000) : undefined;
  const seen = readMovements(transaction, { owner: chain.treasury, accounts }).map((movement): SeenTransfer => {
    const { mint, payer, receiver, amount, memo, index } = movement;
    return {
      ...{ blockHash: String(slot), blockNumber: slot, txHash: signature, logIndex: index },
      ...{ token: mint, payer, receiver, amount, authorizationNonce: memo ?? null, at },
    };
  });
  return { seen, forgotten: readForgotten(chain, { signature, slot }, transaction) };
}

/** What was read, in one database transaction; when one entry cannot be recorded, the others do not wait for it. */
async function record(deps: TransferDeps, account: Account, reads: readonly Read[]): Promise<void> {
  const [first, ...others] = reads;
  if (!first) return;
  try {
    await recordTogether(deps, account, reads);
  } catch (error) {
    if (others.length === 0) return putOff(deps, first.entry, error);
    for (const one of reads) await record(deps, account, [one]);
  }
}

async function recordTogether(deps: TransferDeps, account: Account, reads: readonly Read[]): Promise<void> {
  const { chain, held, books } = account;
  const signatures = reads.map(({ entry }) => entry.signature);
  const count = await deps.db.transaction().execute(async (db) => {
    const ours = await takeEntries(db, held, signatures);
    const taken = reads.filter(({ entry }) => ours.has(entry.signature));
    await bookForgotten(
      deps,
      db,
      taken.flatMap(({ forgotten }) => forgotten ?? []),
      books,
    );
    const all = taken.flatMap(({ seen }) => seen);
    // What was recorded before keeps the transfer that it stands for.
    const known = await listKnownMovements(db, chain.chain, all);
    const seen = all.filter((one) => !known.has(`${one.blockHash} ${one.txHash} ${one.logIndex}`));
    return recordBlocks(db, deps, chain, { seen, landed: [], bound: books.bound });
  });
  count();
}

/** Whatever is wrong with one entry is kept with it. What is wrong with the database is thrown by the writing of it. */
async function putOff(deps: TransferDeps, entry: HistoryEntry, error: unknown): Promise<void> {
  const { chain, account, signature, tries } = entry;
  const words = cleanText(error instanceof Error ? `${error.name}: ${error.message}` : String(error), 200);
  const wait = Math.min(FIRST_WAIT_MS * 2 ** tries, LONGEST_WAIT_MS);
  await noteUnread(deps.db, entry, { error: words, dueAt: new Date(deps.now().getTime() + wait) });
  const facts = { chain, account, tx: signature, tries: tries + 1, err: error };
  if (tries + 1 >= UNREADABLE) deps.log.error(facts, "a transaction of the treasury's history cannot be read");
  else deps.log.warn(facts, "a transaction of the treasury's history is read again later");
}
