import type { Result } from "../../payments/error-codes.ts";
import { type OwnedStatus, type PaymentQuery, showStatus } from "../../payments/lifecycle/read-payment.ts";
import type { PaymentStatus } from "../../payments/views.ts";
import type { PaymentChangeSubscription, PublishPaymentChanges, Session } from "../../queues/payment-changes.ts";
import { withTimeout } from "../../runtime/timeout.ts";

/** Age after which a status is read again in any case, milliseconds. */
const MAX_AGE_MS = 10_000;
/** Statuses that are kept at most. */
const MOST = 20_000;
/** Time after which a status that was not read again is dropped, milliseconds. Longer than any read takes. */
const DROPPED_AFTER_MS = 60_000;
/** Time after which every process has learned of a change, also without a message, milliseconds. */
const KNOWN_AFTER_MS = 5_000;
/** How long a response waits for its change to be published, milliseconds. */
const PUBLISH_MS = 100;

type Deps = {
  /** Reads the status of a payment of any account and mode. */
  findOwnedStatus: (paymentId: string) => Promise<OwnedStatus | undefined>;
  /** Reads the statuses of payments in one query. Omits unknown ids. */
  listOwnedStatuses: (paymentIds: readonly string[]) => Promise<OwnedStatus[]>;
  publishPaymentChanges: PublishPaymentChanges;
  /** Returns true while unannounced changes are found within seconds. */
  isFollowed: () => boolean;
  now: () => Date;
} & Pick<PaymentChangeSubscription, "catchUp" | "current">;

/** `session` is undefined once the payment may have changed. The status is then the oldest that may be shown. */
type Kept = { owned: OwnedStatus; session: Session | undefined; readAt: number; keptAt: number };

export type StatusCache = {
  /** Returns the status of a payment. Refuses with `payment_not_found`, also for one of another mode, account or merchant. */
  findStatus(query: PaymentQuery): Promise<Result<PaymentStatus>>;
  /**
   * Reads the statuses of payments of any account in one query, and keeps them: a client whose long poll has ended usually
   * sends the next one. Omits unknown ids.
   */
  readStatuses(paymentIds: readonly string[]): Promise<PaymentStatus[]>;
  /**
   * Notifies every process that may keep an older status of what another route is about to show, which it has read from the
   * database.
   */
  notify(statuses: readonly PaymentStatus[]): Promise<void>;
  /** Marks a payment as changed by a message that every process gets. */
  announce(paymentId: string): void;
  /** Marks a payment as changed. */
  change(paymentId: string): void;
  /** Drops everything. */
  forget(): void;
};

/**
 * Keeps the statuses of payments that are polled, so that an unchanged one costs no statement. A request uses a kept status
 * only after every message that was published before it has arrived. A change that no message has announced is published
 * before it is shown. So no caller sees an older status than before, on whichever process.
 */
export function createStatusCache(deps: Deps): StatusCache {
  const kept = new Map<string, Kept>();
  /** Payments that are being read. `changed` is set when a message arrives meanwhile. */
  const reading = new Map<string, Set<{ changed: boolean }>>();
  /** When the newest message about a payment arrived, oldest first. */
  const announced = new Map<string, number>();

  async function find(paymentId: string): Promise<OwnedStatus | undefined> {
    const session = deps.isFollowed() ? await deps.catchUp() : undefined;
    const one = kept.get(paymentId);
    const isUsable = session !== undefined && one?.session === session;
    return isUsable && performance.now() - one.readAt < MAX_AGE_MS ? one.owned : read(paymentId, session);
  }

  async function read(paymentId: string, session: Session | undefined): Promise<OwnedStatus | undefined> {
    const [owned] = await readNoted([paymentId], session, async () => {
      const found = await deps.findOwnedStatus(paymentId);
      return found ? [found] : [];
    });
    return owned;
  }

  /** Reads statuses, and keeps for the session those that no message has changed meanwhile. */
  async function readNoted(
    paymentIds: readonly string[],
    session: Session | undefined,
    readRows: () => Promise<OwnedStatus[]>,
  ): Promise<OwnedStatus[]> {
    const readAt = performance.now();
    const marks = new Map(paymentIds.map((id) => [id, beginRead(id)]));
    try {
      const found = await readRows();
      await publishNews(found.map(({ status }) => status));
      const isLasting = session !== undefined && deps.current() === session;
      return found.map((owned) => {
        const isKept = isLasting && marks.get(owned.status.paymentId)?.changed === false;
        return keep({ owned, session: isKept ? session : undefined, readAt });
      });
    } finally {
      for (const [id, mark] of marks) endRead(id, mark);
    }
  }

  function beginRead(paymentId: string): { changed: boolean } {
    const mark = { changed: false };
    reading.set(paymentId, (reading.get(paymentId) ?? new Set()).add(mark));
    return mark;
  }

  function endRead(paymentId: string, mark: { changed: boolean }): void {
    const marks = reading.get(paymentId);
    marks?.delete(mark);
    if (marks?.size === 0) reading.delete(paymentId);
  }

  /** Keeps a status unless a newer one is kept, and returns the newer of the two. */
  function keep(one: Omit<Kept, "keptAt">): OwnedStatus {
    const { paymentId, stateVersion } = one.owned.status;
    const other = kept.get(paymentId);
    if (other && other.owned.status.stateVersion > stateVersion) return other.owned;
    const keptAt = performance.now();
    kept.delete(paymentId);
    kept.set(paymentId, { ...one, keptAt });
    dropOldest(kept, (oldest) => kept.size > MOST || keptAt - oldest.keptAt >= DROPPED_AFTER_MS);
    return one.owned;
  }

  async function publishNews(statuses: readonly PaymentStatus[]): Promise<void> {
    const news = statuses.filter(isNews).map(({ paymentId }) => paymentId);
    if (news.length === 0) return;
    await withTimeout(deps.publishPaymentChanges(news), PUBLISH_MS, "Redis").catch(() => undefined);
  }

  /** Returns true when another process may keep an older status and no message has announced the change. */
  function isNews(status: PaymentStatus): boolean {
    const changed = status.changedAt.getTime();
    const isRecent = deps.now().getTime() - changed < KNOWN_AFTER_MS;
    return isRecent && isNewer(status) && (announced.get(status.paymentId) ?? 0) < changed;
  }

  /** Returns true for a status after the first one that is newer than the kept one. */
  function isNewer({ paymentId, stateVersion }: PaymentStatus): boolean {
    return stateVersion > (kept.get(paymentId)?.owned.status.stateVersion ?? 0);
  }

  function change(paymentId: string): void {
    const one = kept.get(paymentId);
    if (one) one.session = undefined;
    for (const mark of reading.get(paymentId) ?? []) mark.changed = true;
  }

  return {
    findStatus: async (query) => showStatus(await find(query.paymentId), query),
    async readStatuses(paymentIds) {
      const session = deps.isFollowed() ? deps.current() : undefined;
      const found = await readNoted(paymentIds, session, () => deps.listOwnedStatuses(paymentIds));
      return found.map(({ status }) => status);
    },
    async notify(statuses) {
      const newer = statuses.filter(isNewer);
      await publishNews(newer);
      for (const { paymentId } of newer) change(paymentId);
    },
    announce(paymentId) {
      const now = deps.now().getTime();
      announced.delete(paymentId);
      announced.set(paymentId, now);
      dropOldest(announced, (at) => now - at >= KNOWN_AFTER_MS);
      change(paymentId);
    },
    change,
    forget() {
      kept.clear();
      for (const marks of reading.values()) for (const mark of marks) mark.changed = true;
    },
  };
}

/** Drops entries from the front, which are the oldest, while the condition holds. */
function dropOldest<V>(entries: Map<string, V>, isOver: (value: V) => boolean): void {
  for (const [name, value] of entries) {
    if (!isOver(value)) return;
    entries.delete(name);
  }
}
