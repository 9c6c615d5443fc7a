import { insertAudited, ownActor } from "./audit/entries.ts";
import type { SignerDeps } from "./signer-deps.ts";
import { inStoreTransaction, type Store } from "./store.ts";

// A signer that was stopped lets nothing apply for a while after its start: an operator may have stopped it because of an
// intrusion, and must find in `signer waiting` what became due meanwhile.

/** How long nothing applies after a stop, milliseconds. */
const HOLD_MS = 3_600_000;

/**
 * A signer that ran this recently was not stopped but restarted, milliseconds. A supervisor restarts a process that crashes within
 * five minutes, so a signer that crashes again and again does not hold claims back for ever.
 */
const RESTART_MS = 600_000;

/** How often the store learns that the signer runs, milliseconds. */
const NOTE_EVERY_MS = 10_000;

/**
 * Records that the signer runs, and that it did not run since the last time, if that is long ago. A hold that was computed by a
 * clock that was ahead begins again by the corrected one. Call it every second, and before the signer answers its first request.
 */
export function noteRun({ store, log }: Pick<SignerDeps, "store" | "log">, at: Date): void {
  const last = store.prepare("select at from last_run").get()?.["at"];
  const gap = typeof last === "number" ? at.getTime() - last : 0;
  if (typeof last === "number" && Math.abs(gap) < NOTE_EVERY_MS) return;
  inStoreTransaction(store, () => {
    store
      .prepare("insert into last_run (id, at) values (1, ?) on conflict (id) do update set at = excluded.at")
      .run(at.getTime());
    const wasStopped = gap >= RESTART_MS;
    // A clock that was ahead has ended a stop in what is the future now, and would hold claims until an hour after that.
    const wentBack = (findStopEnd(store) ?? 0) > at.getTime();
    if (typeof last !== "number" || !(wasStopped || wentBack)) return;
    const row = { from_at: wasStopped ? last : at.getTime(), until_at: at.getTime() };
    const action = wasStopped ? "signer.started_after_stop" : "signer.clock_went_back";
    insertAudited(store, { table: "stop", row, action, actor: ownActor, at });
    const reason = wasStopped ? "signer was stopped" : "clock has gone back to before the end of a stop";
    log.warn(
      { ranLast: new Date(last), holdEnd: new Date(at.getTime() + HOLD_MS) },
      `${reason}: nothing that waits applies before the hold ends`,
    );
  });
}

/** Returns when the newest stop ended, Unix milliseconds; undefined if there was none. */
function findStopEnd(store: Store): number | undefined {
  const end = store.prepare("select until_at from stop order by id desc limit 1").get()?.["until_at"];
  return typeof end === "number" ? end : undefined;
}

/**
 * Returns until when nothing applies because the signer was stopped, Unix milliseconds; 0 if it was not. A machine that was
 * suspended, or whose clock was corrected, may answer a request before `noteRun` has seen it.
 */
export function findHoldEnd(store: Store, at: Date): number {
  const last = store.prepare("select at from last_run").get()?.["at"];
  if (typeof last === "number" && at.getTime() - last >= RESTART_MS) return at.getTime() + HOLD_MS;
  const end = findStopEnd(store);
  return end !== undefined && at.getTime() < end + HOLD_MS ? Math.min(end, at.getTime()) + HOLD_MS : 0;
}
