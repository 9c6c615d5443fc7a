import type { RecentMoves } from "../../db/queries/payment-changes.ts";
import type { Log } from "../../runtime/log.ts";
import { repeatEvery } from "../../runtime/repeat.ts";

/** Interval between two reads, milliseconds. */
const READ_EVERY_MS = 1_000;
/**
 * Time for a transaction to commit after it has inserted an event, milliseconds. Longer than Postgres lets one statement run.
 * Every fifth read goes back that far.
 */
const COMMIT_WITHIN_MS = 20_000;
const WHOLE_EVERY = 5;
/** Time within which nearly every transaction commits, milliseconds. The other reads go back that far. */
const USUALLY_WITHIN_MS = 3_000;
/** Time after which the last read says nothing about the present, milliseconds. */
const STALE_AFTER_MS = 2_500;

type Deps = {
  /** Returns the id of the newest event that is older than a time in milliseconds; 0 when there is none. */
  findEventBefore: (ms: number) => Promise<number>;
  /** Returns the moves after an event, in one statement. */
  listMovesAfter: (after: number) => Promise<RecentMoves>;
  /** Called once for each move. */
  onMove: (paymentId: string) => void;
  /**
   * Called when moves may not be reported: the database has fewer events than before, as after a restore, or could not be read for so
   * long that reading all moves since then would cost too much.
   */
  onReset: () => void;
  log: Pick<Log, "warn">;
};

/** `isRecent` returns true while every move of the last seconds has been reported. */
export type MovesFollower = { isRecent(): boolean; close(): void };

/**
 * Reads the moves of all payments once a second, in one statement whatever the number of payments and long polls. It finds
 * what no message has announced. A statement never reads the moves of more than a minute: after a longer time without the
 * database the caller has to read every payment again.
 */
export function followMoves({ findEventBefore, listMovesAfter, onMove, onReset, log }: Deps): MovesFollower {
  /** The newest event at the time of each of the last reads, oldest first. */
  let marks: { at: number; newest: number }[] = [];
  const seen = new Set<number>();
  let reads = 0;
  let coveredAt = Number.NEGATIVE_INFINITY;

  async function read(): Promise<void> {
    const began = performance.now();
    const last = marks.at(-1);
    const isLost = last !== undefined && began - last.at > COMMIT_WITHIN_MS;
    // The first read goes back as far as the others: an event with a lower id than the newest one may not be committed yet.
    const known =
      last === undefined || isLost ? [{ at: began, newest: await findEventBefore(COMMIT_WITHIN_MS) }] : marks;
    const recent = known.findLast(({ at }) => at <= began - USUALLY_WITHIN_MS);
    const from = reads % WHOLE_EVERY === 0 ? known[0] : (recent ?? known[0]);
    const { newest, moves } = await listMovesAfter(from?.newest ?? 0);
    reads += 1;
    const isRestored = newest < (last?.newest ?? 0);
    marks = isRestored ? [] : known;
    if (isLost || isRestored) {
      onReset();
      seen.clear();
    }
    for (const { id, paymentId } of moves) if (!seen.has(id)) onMove(paymentId);
    for (const { id } of moves) seen.add(id);
    marks.push({ at: began, newest });
    const kept = marks.findLastIndex(({ at }) => at <= began - COMMIT_WITHIN_MS);
    marks = marks.slice(Math.max(0, kept));
    for (const id of seen) if (id <= (marks[0]?.newest ?? 0)) seen.delete(id);
    coveredAt = began;
  }
  const stop = repeatEvery(READ_EVERY_MS, () =>
    read().catch((err: unknown) => log.warn({ err }, "cannot read the moves of payments; retrying within a second")),
  );
  return { isRecent: () => performance.now() - coveredAt < STALE_AFTER_MS, close: stop };
}
