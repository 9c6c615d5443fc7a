import type { Log } from "../ops/log.ts";
import type { Metrics } from "../ops/metrics.ts";
import type { PaymentStatus } from "../payments/views.ts";

/** One long poll that waits for news of a payment. */
export type Watch = {
  /**
   * The next status that was read of the payment, changed or not; undefined at once when the time is up, the client
   * has left or the process drains.
   */
  next(): Promise<PaymentStatus | undefined>;
  /** Gives back how long `next` has waited in all, milliseconds. Must be called. */
  close(): number;
};

export type Waiters = {
  /**
   * Begins to watch before the caller reads, so that nothing falls between the two.
   * @param ms longest wait; `onGone` is told what to call when the client leaves
   */
  open(args: { paymentId: string; ms: number; onGone: (leave: () => void) => void }): Watch;
  /** Says that a payment has changed. Reads it soon, together with whatever else has changed by then. */
  wake(paymentId: string): void;
  /** Answers all who wait, now and from now on. */
  drain(): void;
  isDraining(): boolean;
  /** Ends the clock that reads what no message announced. */
  close(): void;
};

export type WaiterDeps = {
  /** Where payments stand, in one query. */
  listStatuses: (paymentIds: readonly string[]) => Promise<PaymentStatus[]>;
  metrics: Pick<Metrics, "longPolls" | "longPollEnds">;
  log: Pick<Log, "warn">;
};

type Over = "timeout" | "gone" | "drained";
type Entry = { news: PaymentStatus | undefined; over: Over | undefined; tell: (() => void) | undefined };

/** How often everything that is waited for is read, whether announced or not, milliseconds. */
const READ_EVERY_MS = 1_000;
/** Payments read in one query, so that thousands that wait do not hold up the one that was announced. */
const READ_AT_ONCE = 250;

/**
 * The waiters of one process. Messages make them quick; reading everything that is waited for once a second makes them
 * certain, so a Redis that is away costs a second and nothing else.
 */
export function createWaiters(deps: WaiterDeps): Waiters {
  const watched = new Map<string, Set<Entry>>();
  /** Announced, and to be read before anything else. */
  const changed = new Set<string>();
  /** To be read because a second has passed. */
  const unheard = new Set<string>();
  let reading = false;
  let draining = false;

  /** One read at a time: what is announced meanwhile goes into the next one. */
  async function readChanged(): Promise<void> {
    if (reading) return;
    reading = true;
    // Messages that arrived together are read together.
    await new Promise(setImmediate);
    for (let ids = takeNext(); ids.length > 0; ids = takeNext()) {
      await deps.listStatuses(ids).then(deliver, (err: unknown) => {
        unheard.clear();
        deps.log.warn({ err, payments: ids.length }, "waiting payments could not be read; next try within a second");
      });
    }
    reading = false;
  }
  function takeNext(): string[] {
    const from = changed.size > 0 ? changed : unheard;
    const ids = from.values().take(READ_AT_ONCE).toArray();
    for (const id of ids) {
      changed.delete(id);
      unheard.delete(id);
    }
    return ids;
  }
  function deliver(statuses: readonly PaymentStatus[]): void {
    for (const status of statuses)
      for (const entry of watched.get(status.paymentId) ?? []) {
        entry.news = status;
        entry.tell?.();
      }
  }
  const clock = setInterval(() => {
    for (const id of watched.keys()) unheard.add(id);
    if (unheard.size > 0) void readChanged();
  }, READ_EVERY_MS).unref();

  return {
    open({ paymentId, ms, onGone }) {
      const entry: Entry = { news: undefined, over: draining ? "drained" : undefined, tell: undefined };
      const entries = watched.get(paymentId) ?? new Set();
      watched.set(paymentId, entries.add(entry));
      return openWatch(deps, entry, { ms, onGone, leave: () => forget(watched, paymentId, entry) });
    },
    wake(paymentId) {
      if (!watched.has(paymentId)) return;
      changed.add(paymentId);
      void readChanged();
    },
    drain() {
      draining = true;
      for (const entries of watched.values()) for (const entry of entries) end(entry, "drained");
    },
    isDraining: () => draining,
    close: () => clearInterval(clock),
  };
}

function openWatch(
  deps: WaiterDeps,
  entry: Entry,
  { ms, onGone, leave }: { ms: number; onGone: (leave: () => void) => void; leave: () => void },
): Watch {
  const timer = setTimeout(end, ms, entry, "timeout");
  onGone(() => end(entry, "gone"));
  let heldMs = 0;
  let held = false;

  return {
    async next() {
      if (entry.news === undefined && entry.over === undefined) {
        if (!held) deps.metrics.longPolls.inc();
        held = true;
        const began = performance.now();
        await new Promise<void>((resolve) => {
          entry.tell = resolve;
        });
        entry.tell = undefined;
        heldMs += performance.now() - began;
      }
      const { news } = entry;
      entry.news = undefined;
      return news;
    },
    close() {
      clearTimeout(timer);
      leave();
      if (held) {
        deps.metrics.longPolls.dec();
        deps.metrics.longPollEnds.inc({ reason: entry.over ?? "changed" });
      }
      return heldMs;
    },
  };
}

function end(entry: Entry, reason: Over): void {
  entry.over ??= reason;
  entry.tell?.();
}

function forget(watched: Map<string, Set<Entry>>, paymentId: string, entry: Entry): void {
  const entries = watched.get(paymentId);
  entries?.delete(entry);
  if (entries?.size === 0) watched.delete(paymentId);
}
