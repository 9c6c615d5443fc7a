import { setTimeout as delay } from "node:timers/promises";
import { ChainError } from "../../chains/errors.ts";
import { isSame } from "../../chains/solana/final-movements.ts";
import type { SolanaChain, SolanaToken } from "../../chains/solana/open-solana-chain.ts";
import type { HistoryEntry } from "../../db/queries/history-entries.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { REQUIRED_ENDPOINTS } from "./list-agreement.ts";
import { type Found, isExplained, type Reading, readEntryElsewhere } from "./read-entry.ts";

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
type Entry = { entry: HistoryEntry };
/** The readings of an entry, and whether an endpoint beside the first has answered. */
type Compared = { readings: Reading[]; isAnswered: boolean };
/** An entry as one endpoint shows it. */
export type ReadEntry = Entry & { reading: Reading };

/** Since when no endpoint of a cluster has answered beside the one that reads (Unix milliseconds). */
const aloneSince = new WeakMap<SolanaChain, number>();

/**
 * Compares readings that one endpoint must not decide (`needsComparison`) with those of other endpoints. Returns those that count:
 * what two show, otherwise the movements that the instructions of one explain, and after half a minute what one alone shows.
 * `failures` has the others that were compared. Strangers make such transactions cheaply, so this is slower than reading, asks the other
 * endpoints one after the other until two agree, and leaves the rest to a later run when none answers or can spare a call.
 */
export async function compareReadings(
  deps: Deps,
  account: Account,
  open: readonly ReadEntry[],
): Promise<{ reads: (Entry & Found)[]; failures: (Entry & { error: ChainError })[] }> {
  const { chain } = account;
  const reads: (Entry & Found)[] = [];
  const failures: (Entry & { error: ChainError })[] = [];
  const paceMs = 1_000 / Math.max(1, chain.network.historyReadsPerSecond * COMPARED);
  const until = performance.now() + COMPARE_MS;
  let isOut = false;
  for (const { entry, reading } of open) {
    const isOld = entry.attempts_made >= ALONE_ATTEMPTS;
    if (isOut && !isOld) continue;
    if (performance.now() > until) break;
    try {
      const { readings, isAnswered } = await readOthers(account, reading, entry);
      isOut = !isAnswered;
      const isBelieved = isAloneForLong(deps, chain, isOut) && isOld;
      reads.push({ entry, ...decide(deps, chain, { entry, readings, isBelieved }) });
    } catch (error) {
      if (!(error instanceof ChainError)) throw error;
      if (error.code === "budget_spent") {
        aloneSince.delete(chain);
        break;
      }
      failures.push({ entry, error });
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

/** Returns a reading with those of as many other endpoints as it takes until two agree. Throws ChainError `budget_spent`. */
async function readOthers(account: Account, reading: Reading, { signature }: HistoryEntry): Promise<Compared> {
  const readings = [reading];
  const asked = new Set([reading.by]);
  while (!findAgreed(readings)) {
    const next = await readEntryElsewhere(account, signature, (by) => !asked.has(by));
    if (!next) break;
    asked.add(next.by);
    if (next.answer) readings.push(next.answer);
  }
  return { readings, isAnswered: asked.size > 1 };
}

/** Returns what counts. Logs and counts the endpoints that show something else. Throws ChainError while nothing counts. */
function decide(
  deps: Deps,
  { chain }: SolanaChain,
  { entry, readings, isBelieved }: Entry & { readings: readonly Reading[]; isBelieved: boolean },
): Found {
  const { signature: tx } = entry;
  const isAlone = readings.length < REQUIRED_ENDPOINTS;
  const found = findAgreed(readings) ?? readings.find(isExplained) ?? (isAlone && isBelieved ? readings[0] : undefined);
  if (!found) {
    const detail = isAlone ? "only one endpoint shows a transaction" : "endpoints show different movements";
    throw new ChainError("rpc_answer", { detail: `${detail} ${tx}` });
  }
  for (const { by } of readings.filter(({ seen }) => !isSame(seen, found.seen))) {
    deps.metrics.endpointDisagreements.inc({ chain, endpoint: by });
    deps.log.error(
      { chain, endpoint: by, tx },
      "an endpoint shows other movements of the treasury than another one; they are not recorded",
    );
  }
  return found;
}

/** Returns the first reading that enough endpoints show. */
function findAgreed(readings: readonly Reading[]): Reading | undefined {
  const countSame = (one: Reading) => readings.filter(({ seen }) => isSame(seen, one.seen)).length;
  return readings.find((one) => countSame(one) >= REQUIRED_ENDPOINTS);
}
