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
 * Records that the signer runs, and that it did not run since the last time, if that is long ago. Call it every second, and
 * before the signer answers its first request.
 */
export function noteRun({ store, log }: Pick<SignerDeps, "store" | "log">, at: Date): void {
  const last = store.prepare("select at from last_run").get()?.["at"];
  const gap = typeof last === "number" ? at.getTime() - last : 0;
  if (typeof last === "number" && Math.abs(gap) < NOTE_EVERY_MS) return;
  inStoreTransaction(store, () => {
    store
      .prepare("insert into last_run (id, at) values (1, ?) on conflict (id) do update set at = excluded.at")
      .run(at.getTime());
    if (typeof last !== "number" || gap < RESTART_MS) return;
    const row = { from_at: last, until_at: at.getTime() };
    insertAudited(store, { table: "stop", row, action: "signer.started_after_stop", actor: ownActor, at });
    const holdEnd = new Date(at.getTime() + HOLD_MS);
    log.warn(
      { ranLast: new Date(last), holdEnd },
      "signer was stopped: nothing that waits applies before the hold ends",
    );
  });
}

/**
 * Returns until when nothing applies because the signer was stopped, Unix milliseconds; 0 if it was not. A machine that was
 * suspended may answer a request before `noteRun` has seen the stop.
 */
export function findHoldEnd(store: Store, at: Date): number {
  const last = store.prepare("select at from last_run").get()?.["at"];
  if (typeof last === "number" && at.getTime() - last >= RESTART_MS) return at.getTime() + HOLD_MS;
  const end = store.prepare("select until_at from stop order by id desc limit 1").get()?.["until_at"];
  return typeof end === "number" && at.getTime() < end + HOLD_MS ? end + HOLD_MS : 0;
}
