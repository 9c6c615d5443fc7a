import type { PaymentStatus } from "../../payments/views.ts";
import type { Log } from "../../runtime/log.ts";
import type { Metrics } from "../../runtime/metrics.ts";

/** One long poll that waits for a change of a payment. */
export type Watch = {
  /**
   * Returns the next status that is read of the payment: changed or not, or only one with a higher version than `after`. Returns
   * undefined when the time is up, the client has disconnected or the process drains.
   */
  next(after?: number): Promise<PaymentStatus | undefined>;
  /** Ends the watch and reports the total time that `next` has waited. Must be called. */
  close(): void;
};

/** The request that waits, as its route knows it. */
export type Hold = {
  /** Registers a callback for the client's disconnection. */
  onGone: (leave: () => void) => void;
  /** Records how long the request was held, milliseconds, so that its duration can be reported without it. */
  held: (ms: number) => void;
};

export type Waiters = {
  /**
   * Begins to watch a payment. Callers open the watch before they read the payment, so that no change is missed.
   * @param ms longest wait
   */
  open(args: Hold & { paymentId: string; ms: number }): Watch;
  /** Marks a payment as changed. It is read soon, in one query with other changed payments; not read when no request waits. */
  wake(paymentId: string): void;
  /** Marks every payment as changed for which a request waits. */
  wakeAll(): void;
  /** Ends all present watches, and every later one at once. */
  drain(): void;
  isDraining(): boolean;
  /** Stops retrying failed reads. */
  close(): void;
};

type WaiterDeps = {
  /** Returns the statuses of payments in one query. */
  listStatuses: (paymentIds: readonly string[]) => Promise<PaymentStatus[]>;
  metrics: Pick<Metrics, "longPolls" | "longPollEnds">;
  log: Pick<Log, "warn">;
};

type EndReason = "timeout" | "gone" | "drained";
type Entry = {
  /** The newest status that the watch has not returned. */
  status: PaymentStatus | undefined;
  ended: EndReason | undefined;
  /** Ends the wait of `next` when there is something to return. */
  notify: (() => void) | undefined;
};

/** Time after which payments are read again whose read has failed, milliseconds. */
const RETRY_MS = 1_000;
/** Payments per query, so that thousands of watched payments do not delay one that has changed. */
const BATCH_SIZE = 250;

/** Returns the waiters of one process. They read a payment only when it is marked as changed, so waiting costs nothing. */
export function createWaiters(deps: WaiterDeps): Waiters {
  const watched = new Map<string, Set<Entry>>();
  /** Payments to read. */
  const changed = new Set<string>();
  let reading = false;
  let retry: NodeJS.Timeout | undefined;
  let draining = false;

  /** Reads one batch at a time; messages that arrive meanwhile go into the next batch. */
  async function readChanged(): Promise<void> {
    if (reading) return;
    reading = true;
    // Messages of the same turn of the event loop share one query.
    await new Promise(setImmediate);
    try {
      for (let ids = takeNext(); ids.length > 0; ids = takeNext()) await readBatch(ids);
    } catch (err) {
      deps.log.warn({ err, payments: changed.size }, "cannot read changed payments; retrying in a second");
      retry = setTimeout(() => void readChanged(), RETRY_MS).unref();
    }
    reading = false;
  }
  async function readBatch(ids: readonly string[]): Promise<void> {
    const statuses = await deps.listStatuses(ids).catch((error: unknown) => {
      for (const id of ids) changed.add(id);
      throw error;
    });
    deliver(statuses);
  }
  /** Takes payments that a request still waits for. */
  function takeNext(): string[] {
    const ids: string[] = [];
    for (const id of changed) {
      if (ids.length === BATCH_SIZE) break;
      changed.delete(id);
      if (watched.has(id)) ids.push(id);
    }
    return ids;
  }
  function deliver(statuses: readonly PaymentStatus[]): void {
    for (const status of statuses)
      for (const entry of watched.get(status.paymentId) ?? []) {
        entry.status = status;
        entry.notify?.();
      }
  }

  return {
    open({ paymentId, ms, onGone, held }) {
      const entry: Entry = { status: undefined, ended: draining ? "drained" : undefined, notify: undefined };
      const entries = watched.get(paymentId) ?? new Set();
      watched.set(paymentId, entries.add(entry));
      return openWatch(deps, entry, { ms, onGone, held, leave: () => forget(watched, paymentId, entry) });
    },
    wake(paymentId) {
      if (!watched.has(paymentId)) return;
      changed.add(paymentId);
      void readChanged();
    },
    wakeAll() {
      for (const paymentId of watched.keys()) changed.add(paymentId);
      void readChanged();
    },
    drain() {
      draining = true;
      for (const entries of watched.values()) for (const entry of entries) end(entry, "drained");
    },
    isDraining: () => draining,
    close: () => clearTimeout(retry),
  };
}

/** Each watch is a held request, of which there are thousands: `next` waits in one promise, and in no async function. */
function openWatch(
  deps: WaiterDeps,
  entry: Entry,
  { ms, onGone, held, leave }: Hold & { ms: number; leave: () => void },
): Watch {
  const timer = setTimeout(end, ms, entry, "timeout");
  onGone(() => end(entry, "gone"));
  let heldMs: number | undefined;

  return {
    next(after = -1) {
      const present = take(entry, after);
      if (present !== undefined || entry.ended !== undefined) return Promise.resolve(present);
      if (heldMs === undefined) deps.metrics.longPolls.inc();
      heldMs ??= 0;
      const began = performance.now();
      return new Promise((resolve) => {
        entry.notify = () => {
          const status = take(entry, after);
          if (status === undefined && entry.ended === undefined) return;
          entry.notify = undefined;
          heldMs = (heldMs ?? 0) + performance.now() - began;
          resolve(status);
        };
      });
    },
    close() {
      clearTimeout(timer);
      leave();
      if (heldMs !== undefined) {
        deps.metrics.longPolls.dec();
        deps.metrics.longPollEnds.inc({ reason: entry.ended ?? "changed" });
      }
      held(heldMs ?? 0);
    },
  };
}

/** Returns the status that has been read, and undefined for one with no higher version than `after`. */
function take(entry: Entry, after: number): PaymentStatus | undefined {
  const { status } = entry;
  entry.status = undefined;
  return status !== undefined && status.stateVersion > after ? status : undefined;
}

function end(entry: Entry, reason: EndReason): void {
  entry.ended ??= reason;
  entry.notify?.();
}

function forget(watched: Map<string, Set<Entry>>, paymentId: string, entry: Entry): void {
  const entries = watched.get(paymentId);
  entries?.delete(entry);
  if (entries?.size === 0) watched.delete(paymentId);
}
