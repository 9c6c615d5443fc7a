import { ChainError, isTransientChainError, isUnreadable } from "../../chains/errors.ts";
import { readAccountMovements } from "../../chains/evm/account-logs.ts";
import { isUnavailable, type Rpc } from "../../chains/evm/evm-rpc.ts";
import { type BlockRange, readRangeInParts } from "../../chains/evm/log-ranges.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import { readNaturalKeys } from "../../chains/evm/transaction-movements.ts";
import type { EvmMovement } from "../../chains/token-movement.ts";
import type { Cursor } from "../../db/queries/chain-cursors.ts";
import { listConfirmable, listProofsBetween, type ProofLog } from "../../db/queries/confirmable-transfers.ts";
import { listKnownLogs } from "../../db/queries/observations.ts";
import { confirmChunk } from "../book-confirmed.ts";
import { bookUnmatched } from "../book-unmatched.ts";
import type { BookingHandlers } from "../booking-handlers.ts";
import { decideFinalHeight } from "../decide-final-height.ts";
import { isSameMovement } from "../match-movements.ts";
import { type BookUnsolicited, isOurs, listRecordable, recordBlocks } from "../record-movements.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { findFinalHeight } from "./final-heights.ts";
import { followReorg } from "./follow-reorg.ts";
import { setBlockTimes } from "./read-blocks.ts";
import {
  compareWithEndpoint,
  type EndpointRun,
  endWaitForSecond,
  hasWaitedForSecond,
  isDisagreement,
  listBlocksByEndpoint,
  listWitnesses,
  recordDisagreement,
} from "./second-reading.ts";
import { openAgreement, orphanRefuted } from "./two-endpoint-agreement.ts";
import { watchAccounts } from "./watched-accounts.ts";

/** Rows booked in one database transaction: more than one transaction of a lane moves. */
const CHUNK = 250;

/** Parts of a range that one pass reads again at most, so that a pass ends regardless of how far finality has advanced. */
const MAX_PARTS = 20;

/**
 * Confirms and books every included transfer at the depth of the network's finality. Reads the blocks a second time first:
 * this proves that a transfer is still on the chain, and finds what the first reading missed. On a chain with several
 * endpoints, the second reading uses another endpoint than the first (second-reading.ts), and no endpoint decides alone which
 * height is final (decide-final-height.ts).
 * With a single endpoint, it reads again what it read in an earlier pass (up to `readBefore`). Blocks are read in parts. Each
 * part is booked before the next one is read. Raises the cursor's final height; `markFinal` stores it.
 */
export async function confirmFinal(
  deps: TransferDeps,
  chain: EvmChain,
  args: { cursor: Cursor; readBefore: number; handlers: FinalHandlers },
): Promise<void> {
  const { cursor, handlers } = args;
  const { height, by } = await findFinalHeight(deps, chain, cursor);
  const final = Math.min(height, cursor.number);
  const before = cursor.finalNumber;
  const budget = { parts: MAX_PARTS };
  if (chain.endpoints.length > 1) await confirmWithOtherEndpoints(deps, chain, { ...args, final, by, budget });
  else
    await confirmFrom(deps, chain, { cursor, to: Math.min(final, args.readBefore), handlers, budget, rpc: chain.rpc });
  const isHeld = chain.endpoints.length > 1 && cursor.finalNumber < final;
  if (budget.parts === 0 || isHeld) {
    // Transfers that were claimed later, or could not be booked, can be below the final height.
    if (cursor.finalNumber === before) await bookUpTo(deps, chain, { cursor, final: before, handlers });
    return;
  }
  // Runs also when the final height has not changed.
  if (cursor.finalNumber === before || cursor.finalNumber < final)
    await bookUpTo(deps, chain, { cursor, final, handlers });
}

/** Reads the blocks up to a height that are not marked as final again from one endpoint, and books them within the budget. */
async function confirmFrom(
  deps: TransferDeps,
  chain: EvmChain,
  args: { cursor: Cursor; to: number; handlers: FinalHandlers; budget: { parts: number }; rpc: Rpc },
): Promise<void> {
  const { cursor, to, handlers, budget, rpc } = args;
  const range = { from: cursor.finalNumber + 1, to };
  const reason = "an endpoint omitted them";
  for await (const { part, found } of rereadRange(deps, chain, { range, rpc })) {
    await recordMissingMovements(deps, { ...chain, rpc }, { logs: found, unsolicited: handlers.unsolicited, reason });
    await bookUpTo(deps, chain, { cursor, final: part.to, handlers });
    budget.parts -= 1;
    if (budget.parts === 0) return;
  }
}

/**
 * Reads the movements of our accounts in a range a second time, in parts. Throws ChainError `endpoints_disagree` when a part
 * lacks a log that proves a transfer, and `rpc_behind` on a chain with a single endpoint.
 */
function rereadRange(
  deps: Pick<TransferDeps, "db">,
  chain: EvmChain,
  { range, rpc }: { range: BlockRange; rpc: Rpc },
): AsyncGenerator<{ part: BlockRange; found: EvmMovement[] }> {
  const read = async (part: BlockRange) => {
    const proofs = await listProofsBetween(deps.db, { chain: chain.chain, ...part });
    const accounts = watchAccounts(chain, new Set(proofs.map(({ receiver }) => receiver)));
    const found = await readAccountMovements(rpc, part, accounts);
    requireProofs(chain, proofs, found);
    return found;
  };
  return readRangeInParts(rpc, range, { longest: chain.network.logRange, read });
}

/**
 * Reads the blocks from other endpoints than the first reading, and books them. Skips an endpoint that does not answer or
 * stays behind for too long; only large amounts still wait for it. Two that have not reached the height are waited for without a
 * limit (`decideFinalHeight`). An endpoint that disagrees stops the chain, unless a third one agrees with the first reading.
 */
async function confirmWithOtherEndpoints(
  deps: TransferDeps,
  chain: EvmChain,
  args: {
    cursor: Cursor;
    readBefore: number;
    final: number;
    by: string | undefined;
    handlers: FinalHandlers;
    budget: { parts: number };
  },
): Promise<void> {
  const { cursor, final, by, handlers, budget } = args;
  for (const run of await listBlocksByEndpoint(deps, chain, { from: cursor.finalNumber + 1, to: final })) {
    let disagreement: unknown;
    let hasAnswered = false;
    let witnessed = -1;
    const reached = new Map<string, number>();
    for (const witness of listWitnesses(chain, { ...run, by })) {
      if (cursor.finalNumber >= run.to || budget.parts === 0) break;
      try {
        const to = await compareWithEndpoint(deps, chain, witness, run.to);
        hasAnswered = true;
        reached.set(witness.reporter.name, to);
        await confirmFrom(deps, chain, { cursor, to, handlers, budget, rpc: witness.endpoint.rpc });
        witnessed = Math.max(witnessed, to);
      } catch (error) {
        if (!isTransientChainError(error)) throw error;
        if (error instanceof ChainError && error.code === "rpc_behind") hasAnswered = true;
        if (isUnreadable(error)) {
          const facts = { chain: chain.chain, endpoint: witness.endpoint.name };
          deps.log.error({ ...facts, err: error }, "an endpoint's second reading cannot be read");
        }
        if (!isDisagreement(error)) continue;
        recordDisagreement(deps, chain, witness.endpoint, error);
        disagreement = error;
      }
    }
    if (budget.parts === 0) return;
    const { afterWait } = decideFinalHeight([run.to, ...reached.values()]);
    if (cursor.finalNumber >= run.to) endWaitForSecond(chain);
    else if (disagreement !== undefined) {
      await recheckFirstReading(deps, chain, { cursor, run });
      throw disagreement;
    } else if (afterWait !== run.to) return endWaitForSecond(chain);
    else if (!hasAnswered || hasWaitedForSecond(deps, chain, { wanted: run.to, reached: witnessed }))
      await confirmAlone(deps, chain, { ...args, run });
    else return;
  }
}

/**
 * Checks the endpoint of the first reading after another endpoint has disagreed. When it no longer shows the first reading
 * either, the cursor goes back and the blocks are read again. While it does, the disagreement remains and nothing is booked.
 */
async function recheckFirstReading(
  deps: TransferDeps,
  chain: EvmChain,
  { cursor, run }: { cursor: Cursor; run: EndpointRun },
): Promise<void> {
  const reader = chain.endpoints.find(({ name }) => name === run.sourceEndpoint);
  if (!reader) return;
  const range = { from: cursor.finalNumber + 1, to: run.to };
  try {
    await compareWithEndpoint(deps, chain, { endpoint: reader, reporter: reader }, run.to);
    for await (const _ of rereadRange(deps, chain, { range, rpc: reader.rpc }));
  } catch (error) {
    if (isDisagreement(error)) Object.assign(cursor, await followReorg(deps, chain, cursor, range.from));
    else if (!(error instanceof ChainError) || !error.transient) throw error;
  }
}

/**
 * Confirms without a second endpoint, as on a chain with a single one, because no other endpoint answered in time. Asks the
 * endpoint of the first reading, and any endpoint when that one does not answer.
 */
async function confirmAlone(
  deps: TransferDeps,
  chain: EvmChain,
  args: { cursor: Cursor; readBefore: number; run: EndpointRun; handlers: FinalHandlers; budget: { parts: number } },
): Promise<void> {
  const { cursor, readBefore, handlers, budget, run } = args;
  deps.metrics.singleEndpointConfirmations.inc({ chain: chain.chain });
  deps.log.warn(
    { chain: chain.chain, upTo: run.to },
    "no second endpoint answers; one is trusted except for large amounts",
  );
  const to = Math.min(run.to, readBefore);
  const reader = chain.endpoints.find(({ name }) => name === run.sourceEndpoint);
  await confirmFrom(deps, chain, { cursor, to, handlers, budget, rpc: reader?.rpc ?? chain.rpc }).catch(
    (error: unknown) => {
      if (!isUnavailable(error)) throw error;
      return confirmFrom(deps, chain, { cursor, to, handlers, budget, rpc: chain.rpc });
    },
  );
  if (cursor.finalNumber < run.to && budget.parts > 0) await bookUpTo(deps, chain, { cursor, final: run.to, handlers });
}

/** Functions that book what has become final. */
type FinalHandlers = Pick<BookingHandlers, "confirmed" | "unsolicited" | "unmatched">;

/**
 * Books the movements up to a height that was read twice, and raises the cursor's final height, which `markFinal` stores. Transfers are
 * first: a stranger can make any number of other movements, and endpoints can disagree about them.
 */
async function bookUpTo(
  deps: TransferDeps,
  chain: EvmChain,
  { cursor, final, handlers }: { cursor: Cursor; final: number; handlers: FinalHandlers },
): Promise<void> {
  const agreement = openAgreement(deps, chain);
  const { unmatched: book, unsolicited } = handlers;
  const held: string[] = [];
  const confirm = async () => {
    for (let full = true; full; ) {
      const listed = await listConfirmable(deps.db, { chain: chain.chain, upTo: final, limit: CHUNK, except: held });
      const confirmable = await agreement.keepTransfers(listed);
      held.push(...listed.flatMap((one) => (confirmable.includes(one) ? [] : [one.id])));
      await confirmChunk(deps, chain, confirmable, { final, book: handlers.confirmed });
      full = listed.length === CHUNK;
    }
  };
  await confirm();
  const unmatched = { final, book, unsolicited, keepAgreedMovements: agreement.keepMovements };
  if (await bookUnmatched(deps, chain, unmatched)) await confirm();
  for (const movement of agreement.listRefuted()) await orphanRefuted(deps, chain, cursor, movement);
  cursor.finalNumber = Math.max(cursor.finalNumber, final);
}

/** Throws when the second reading of blocks lacks a log that proves a transfer; see `rereadRange`. */
function requireProofs(chain: EvmChain, proofs: readonly ProofLog[], found: readonly EvmMovement[]): void {
  const shown = new Map(found.map((log) => [`${log.blockId} ${log.logIndex}`, log]));
  const gone = proofs.find((proof) => {
    const log = shown.get(`${proof.block_id} ${proof.log_index}`);
    return !log || !isSameMovement(log, proof);
  });
  if (!gone) return;
  const detail = `the second reading lacks a log of block ${gone.block_number}`;
  throw new ChainError(chain.endpoints.length > 1 ? "endpoints_disagree" : "rpc_behind", { detail });
}

/**
 * Records movements into or out of the treasury that are not recorded yet. Reads the receipts of these alone.
 * @param args.reason says in the log why they are missing
 */
export async function recordMissingMovements(
  deps: TransferDeps,
  chain: EvmChain,
  { logs, unsolicited, reason }: { logs: readonly EvmMovement[]; unsolicited: BookUnsolicited; reason: string },
): Promise<void> {
  const ours = logs.filter((log) => isOurs(chain, log));
  const known = await listKnownLogs(deps.db, { chain: chain.chain, logs: ours });
  const missed = ours.filter((log) => !known.has(`${log.blockId} ${log.logIndex}`));
  const recordable = await listRecordable(deps.db, chain, missed);
  if (recordable.length === 0) return;
  deps.log.warn({ chain: chain.chain, logs: recordable.length, reason }, "movements were missing and are recorded now");
  const seen = await readNaturalKeys(chain, recordable);
  await setBlockTimes(deps, chain, seen);
  const count = await deps.db
    .transaction()
    .execute((db) => recordBlocks(db, deps, chain, { seen, landed: [], unsolicited, isLate: true }));
  count();
}
