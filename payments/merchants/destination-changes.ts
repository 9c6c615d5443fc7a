import type { Transaction } from "kysely";
import type { AuditActor, AuditEntry } from "../../db/queries/audit-entries.ts";
import {
  type DestinationChangeRow,
  insertDestinationChanges,
  moveDestinationChanges,
  readChangeTerms,
} from "../../db/queries/destination-changes.ts";
import type { Tables } from "../../db/tables.ts";
import { newId } from "../ids.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { findApplyTime, type WantedChange } from "./destination-rules.ts";

/** A transaction that holds the merchant's lock, and the audit entries that are inserted at its end. */
export type ChangeDeps = Pick<PaymentDeps, "now" | "log"> & { db: Transaction<Tables>; audit: AuditEntry[] };

/**
 * Inserts requests for changes, and applies those that do not wait. The merchant must have no waiting change of these
 * assets. Returns the changes in the given order.
 */
export async function requestChanges(
  deps: ChangeDeps,
  args: { merchantId: string; actor: AuditActor; wanted: readonly WantedChange[] },
): Promise<DestinationChangeRow[]> {
  const { merchantId, actor, wanted } = args;
  const at = deps.now();
  const terms = await readChangeTerms(deps.db, merchantId);
  const rows = await insertDestinationChanges(
    deps.db,
    wanted.map((change) => ({
      id: newId("dchg", at),
      merchant_id: merchantId,
      destination_id: change.destinationId,
      asset: change.asset,
      given_asset: change.givenAsset,
      before: change.before,
      after: change.after,
      state: "requested" as const,
      requester_kind: actor.kind,
      requester_id: actor.id,
      requester_address: actor.address,
      created_at: at,
      applies_at: findApplyTime(terms, change, at),
      decider_kind: null,
      decider_id: null,
      decider_address: null,
      decided_at: null,
      rejection: null,
      applied_at: null,
    })),
  );
  report(deps, { rows, actor, action: "destination.change_requested" });
  const due = rows.filter((row) => row.applies_at <= at).map(({ id }) => id);
  const applied = await applyChanges(deps, { ids: due, from: "requested", actor });
  return rows.map((row) => applied.find(({ id }) => id === row.id) ?? row);
}

/**
 * Applies changes: a trigger updates the destinations, which settlements that begin afterwards and new options use.
 * Returns the changes that applied.
 */
export async function applyChanges(
  deps: ChangeDeps,
  args: { ids: readonly string[]; from: "requested" | "approved"; actor: AuditActor },
): Promise<DestinationChangeRow[]> {
  const { ids, from, actor } = args;
  const at = deps.now();
  const rows = await moveDestinationChanges(deps.db, { ids, from, to: "applied", at, set: { applied_at: at } });
  report(deps, { rows, actor, action: "destination.change_applied" });
  return rows;
}

/** Approves a waiting change, which then applies at once. Returns the change, or undefined when it no longer waits. */
export async function approveWaiting(
  deps: ChangeDeps,
  { id, actor }: { id: string; actor: AuditActor },
): Promise<DestinationChangeRow | undefined> {
  const at = deps.now();
  const rows = await moveDestinationChanges(deps.db, {
    ids: [id],
    from: "requested",
    to: "approved",
    at,
    set: toDecision(actor, at),
  });
  report(deps, { rows, actor, action: "destination.change_approved" });
  const [applied] = await applyChanges(deps, { ids: rows.map((row) => row.id), from: "approved", actor });
  return applied;
}

/** Rejects a waiting change. Returns the change, or undefined when it no longer waits. */
export async function rejectWaiting(
  deps: ChangeDeps,
  { id, actor, rejection }: { id: string; actor: AuditActor; rejection: DestinationChangeRow["rejection"] },
): Promise<DestinationChangeRow | undefined> {
  const at = deps.now();
  const set = { ...toDecision(actor, at), rejection };
  const rows = await moveDestinationChanges(deps.db, { ids: [id], from: "requested", to: "rejected", at, set });
  report(deps, { rows, actor, action: "destination.change_rejected" });
  return rows[0];
}

function toDecision(actor: AuditActor, at: Date) {
  return { decider_kind: actor.kind, decider_id: actor.id, decider_address: actor.address, decided_at: at };
}

/** Logs changes and adds their audit entries. */
function report(
  { audit, log, now }: ChangeDeps,
  { rows, actor, action }: { rows: readonly DestinationChangeRow[]; actor: AuditActor; action: string },
): void {
  for (const row of rows) {
    const { id: change, merchant_id: merchant, asset, before: from, after: to, applies_at: appliesAt } = row;
    log.info({ change, merchant, asset, from, to, appliesAt, actor: actor.id }, texts[row.state]);
  }
  audit.push(...rows.map((row) => toAuditEntry(row, { actor, action, at: now() })));
}

const texts = {
  requested: "destination change requested",
  approved: "destination change approved",
  applied: "destination change applied",
  rejected: "destination change rejected",
} as const satisfies Record<DestinationChangeRow["state"], string>;

function toAuditEntry(row: DestinationChangeRow, entry: Pick<AuditEntry, "actor" | "action" | "at">): AuditEntry {
  const { id: change, merchant_id: merchant, asset, rejection } = row;
  return {
    ...entry,
    subject: row.destination_id,
    before: row.before === null ? null : { destination: row.before },
    after: {
      change,
      merchant,
      asset,
      destination: row.after,
      appliesAt: row.applies_at.toISOString(),
      ...(rejection && { rejection }),
    },
  };
}
