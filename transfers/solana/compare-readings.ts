import { setTimeout as delay } from "node:timers/promises";
import { ChainError } from "../../chains/errors.ts";
import type { SolanaChain, SolanaToken } from "../../chains/solana/open-solana-chain.ts";
import { beginsAfter } from "../../chains/solana/transaction-history.ts";
import type { HistoryEntry, WaitingEntry } from "../../db/queries/history-entries.ts";
import type { StoredReading } from "../../db/tables.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { REQUIRED_ENDPOINTS } from "./list-agreement.ts";
import { digestReading, type Found, isExplained, type Reading, readEntry, readEntryElsewhere } from "./read-entry.ts";

/** Failed attempts, about half a minute, after which one endpoint is believed that alone shows a transaction. */
const ALONE_ATTEMPTS = 4;
/** How long no other endpoint has answered before one is believed, milliseconds: an attempt may have failed for another reason. */
const ALONE_MS = 30_000;
/** Part of the entries per second (`historyReadsPerSecond`) that are compared: the second endpoint's calls are the watcher's. */
const COMPARED = 1 / 20;
/** Time limit, milliseconds. A later run compares the others. */
const COMPARE_MS = 5_000;

type Deps = Pick<TransferDeps, "metrics" | "log" | "now">;
type Account = { chain: SolanaChain; token: SolanaToken };
type Entry = { entry: WaitingEntry };
/** What other endpoints show of an entry, and those that answered without it. */
type Compared = { readings: Reading[]; lacking: string[] };
/** Why an entry does not count yet; `isContradicted` when other endpoints show something else. */
type Failure = Entry & { error: ChainError; isContradicted: boolean };

/** Since when no endpoint of a cluster has answered beside the one that reads (Unix milliseconds). */
const aloneSince = new WeakMap<SolanaChain, number>();

/**
 * Compares stored readings, which one endpoint must not decide (`needsComparison`), with those of other endpoints. Returns what counts:
 * what two show, otherwise the movements that the instructions of one explain, and after half a minute what one alone shows of an entry
 * that `isRelisted` accepts (`isAlone`), or to which no other endpoint's history goes back.
 * `failures` has the others that were compared. Strangers make such transactions cheaply, so this is slower than reading, asks the other
 * endpoints one after the other until two agree, and leaves the rest to a later run when none answers or can spare a call.
 */
export async function compareReadings(
  deps: Deps,
  account: Account,
  {
    waiting,
    isRelisted,
  }: { waiting: readonly WaitingEntry[]; isRelisted: (entry: HistoryEntry, isOut: boolean) => boolean },
): Promise<{ reads: (Entry & Found & { isAlone: boolean })[]; failures: Failure[] }> {
  const { chain } = account;
  const reads: (Entry & Found & { isAlone: boolean })[] = [];
  const failures: Failure[] = [];
  const paceMs = 1_000 / Math.max(1, chain.network.historyReadsPerSecond * COMPARED);
  const until = performance.now() + COMPARE_MS;
  let isOut = false;
  for (const entry of waiting) {
    const isOld = entry.attempts_made >= ALONE_ATTEMPTS;
    if (isOut && !isOld) continue;
    if (performance.now() > until) break;
    let readings: Reading[] = [];
    try {
      const compared = await readOthers(account, entry);
      readings = compared.readings;
      isOut = readings.length + compared.lacking.length === 0;
      const isOnlyOne = isAloneForLong(deps, chain, isOut) && readings.length === 0 && isOld;
      const isAlone = isOnlyOne && isRelisted(entry, isOut);
      const isBelieved = isAlone || (isOnlyOne && (await isBeforeOthers(account, entry, compared)));
      const found = findDecided(entry, readings) ?? (isBelieved ? await readFirst(account, entry) : undefined);
      reads.push({ entry, isAlone, ...accept(deps, chain, { entry, readings, found }) });
    } catch (error) {
      if (!(error instanceof ChainError)) throw error;
      if (error.code === "budget_spent") {
        aloneSince.delete(chain);
        break;
      }
      failures.push({ entry, error, isContradicted: readings.length > 0 });
    }
    if (!isOut) await delay(paceMs);
  }
  return { reads, failures };
}

/** Returns false while the other endpoints have not been out for long. Notes whether they are. */
function isAloneForLong(deps: Deps, chain: SolanaChain, isOut: boolean): boolean {
  const now = deps.now().getTime();
  const since = aloneSince.get(chain) ?? now;
  if (isOut) aloneSince.set(chain, since);
  else aloneSince.delete(chain);
  return !isOut || now - since >= ALONE_MS;
}

/** Returns the readings of as many other endpoints as it takes until two agree. Throws ChainError `budget_spent`. */
async function readOthers(account: Account, { signature, reading: first }: WaitingEntry): Promise<Compared> {
  const readings: Reading[] = [];
  const lacking: string[] = [];
  const asked = new Set([first.by]);
  while (!findAgreed(first, readings)) {
    const next = await readEntryElsewhere(account, signature, (by) => !asked.has(by));
    if (!next) break;
    asked.add(next.by);
    if (next.answer) readings.push(next.answer);
    else lacking.push(next.by);
  }
  return { readings, lacking };
}

/** Returns true if all other endpoints answer without an entry because their histories begin after it. Throws ChainError `budget_spent`. */
async function isBeforeOthers({ chain }: Account, { slot }: WaitingEntry, { lacking }: Compared): Promise<boolean> {
  // Another one that is out may go back that far.
  if (lacking.length < chain.network.rpc.length - 1) return false;
  for (const by of lacking) if (!(await beginsAfter(chain, by, slot))) return false;
  return true;
}

/** Returns the reading of another endpoint that counts: one that two show, or one that its instructions explain. */
function findDecided({ reading: first }: WaitingEntry, readings: readonly Reading[]): Found | undefined {
  return findAgreed(first, readings) ?? readings.find(isExplained);
}

/** Returns the first of these readings that enough endpoints show. */
function findAgreed(first: StoredReading, readings: readonly Reading[]): Reading | undefined {
  const digests = [first.digest, ...readings.map(digestReading)];
  const countSame = (one: Reading) => digests.filter((digest) => digest === digestReading(one)).length;
  return readings.find((one) => countSame(one) >= REQUIRED_ENDPOINTS);
}

/** Returns what one endpoint alone shows. Only its digest is stored, so a movement is read again. Throws ChainError. */
async function readFirst(account: Account, { signature, reading }: WaitingEntry): Promise<Found> {
  return reading.digest === null ? { seen: [], forgotten: undefined } : readEntry(account, signature);
}

/** Returns what counts. Logs and counts the endpoints that show something else. Throws ChainError while nothing counts. */
function accept(
  deps: Deps,
  { chain }: SolanaChain,
  { entry, readings, found }: Entry & { readings: readonly Reading[]; found: Found | undefined },
): Found {
  const { signature: tx, reading: first } = entry;
  if (!found) {
    const detail =
      readings.length === 0 ? "only one endpoint shows a transaction" : "endpoints show different movements";
    throw new ChainError("rpc_answer", { detail: `${detail} ${tx}` });
  }
  const shown = [first, ...readings.map((one) => ({ by: one.by, digest: digestReading(one) }))];
  for (const { by } of shown.filter(({ digest }) => digest !== digestReading(found))) {
    deps.metrics.endpointDisagreements.inc({ chain, endpoint: by });
    deps.log.error(
      { chain, endpoint: by, tx },
      "an endpoint shows other movements of the treasury than another one; they are not recorded",
    );
  }
  return found;
}
