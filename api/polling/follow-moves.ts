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
  /** Called when the database has fewer events than before, as after a restore. */
  onRewind: () => void;
  log: Pick<Log, "warn">;
};

/** `isRecent` returns true while every move of the last seconds has been reported. */
export type MovesFollower = { isRecent(): boolean; close(): void };

/**
 * Reads the moves of all payments once a second, in one statement whatever the number of payments and long polls. It finds
 * what no message has announced.
 */
export function followMoves({ findEventBefore, listMovesAfter, onMove, onRewind, log }: Deps): MovesFollower {
  /** The newest event at the time of each of the last reads, oldest first. */
  let marks: { at: number; newest: number }[] = [];
  const seen = new Set<number>();
  let reads = 0;
  let coveredAt = Number.NEGATIVE_INFINITY;

  async function read(): Promise<void> {
    const began = performance.now();
    // The first read goes back as far as the others: an event with a lower id than the newest one may not be committed yet.
    if (marks.length === 0) marks.push({ at: began, newest: await findEventBefore(COMMIT_WITHIN_MS) });
    const recent = marks.findLast(({ at }) => at <= began - USUALLY_WITHIN_MS);
    const from = reads % WHOLE_EVERY === 0 ? marks[0] : (recent ?? marks[0]);
    const { newest, moves } = await listMovesAfter(from?.newest ?? 0);
    reads += 1;
    if (newest < (marks.at(-1)?.newest ?? 0)) {
      onRewind();
      marks = [];
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
