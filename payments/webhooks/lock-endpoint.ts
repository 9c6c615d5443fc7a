import type { Transaction } from "kysely";
import { inTransaction } from "../../db/in-transaction.ts";
import { type AuditActor, type AuditEntry, insertAuditEntries } from "../../db/queries/audit-entries.ts";
import { type EndpointQuery, type EndpointRow, findEndpointRow } from "../../db/queries/webhook-endpoints.ts";
import { countEndpointEvents, insertEndpointEvent } from "../../db/queries/webhook-events.ts";
import type { Db, Tables } from "../../db/tables.ts";
import { done, type Refusal, type Result, refuse } from "../error-codes.ts";
import { toActor } from "../merchants/decide-changes.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { noEndpoint } from "./endpoint-views.ts";
import type { EventType } from "./event-types.ts";

export type EndpointDeps = Pick<PaymentDeps, "now"> & { db: Db };

/** A change of an endpoint, and who makes it. */
export type EndpointChange = EndpointQuery & { actor: AuditActor };

/** What a change leaves behind: an audit entry, and an event for the account's other endpoints. */
type Trace = {
  audit: Pick<AuditEntry, "action" | "before" | "after">;
  event: { type: EventType; reason: "failing" | "requested" | null };
};

/**
 * Runs a change of a locked endpoint in one transaction with its audit entry and its event. Refuses with
 * `webhook_endpoint_not_found` an endpoint of another account or mode, and with `forbidden` an API key that changes an
 * endpoint of an operator: a stolen key must not silence it.
 */
export async function changeLocked<T>(
  deps: EndpointDeps,
  args: EndpointChange,
  work: (db: Transaction<Tables>, row: EndpointRow) => Promise<Result<{ value: T } & Partial<Trace>>>,
): Promise<Result<T>> {
  return inTransaction(deps.db, async (db) => {
    const row = await findEndpointRow(db, args, { lock: true });
    if (!row) return noEndpoint();
    if (row.by_operator && args.actor.kind === "key")
      return refuse("forbidden", "an operator has registered the webhook endpoint and alone can change it");
    const changed = await work(db, row);
    if (!changed.ok) return changed;
    const { value, audit, event } = changed.value;
    if (audit && event) await recordChange(db, row, { actor: args.actor, at: deps.now(), audit, event });
    return done(value);
  });
}

/** What API keys do to the endpoints of an account and mode within a day: changes, and test events. */
const MAX_PER_DAY = { change: 300, test: 1_000 };
/** When a caller that has done so much in a day should try again, seconds: what it did a day ago counts no more. */
export const FLOOD_RETRY_S = 3_600;
const DAY_MS = 24 * 60 * 60_000;

/**
 * Refuses with `rate_limited` what an API key does too often in a day. Each change is an event at the other endpoints, and the
 * rows of these events stay: a stolen key must not flood the one of an operator. Deletion is not limited, as it stops what a
 * thief has registered.
 */
export async function refuseFlood(
  { db, now }: EndpointDeps,
  { account_id: accountId, mode }: Pick<EndpointRow, "account_id" | "mode">,
  { actor, what }: { actor: AuditActor; what: keyof typeof MAX_PER_DAY },
): Promise<Refusal | undefined> {
  if (actor.kind !== "key") return undefined;
  const limit = MAX_PER_DAY[what];
  const since = new Date(now().getTime() - DAY_MS);
  if ((await countEndpointEvents(db, { accountId, mode, since, tests: what === "test", limit })) < limit)
    return undefined;
  const events = what === "test" ? "test events" : "changes of webhook endpoints";
  const message = `the account has ${limit} ${events} in this mode within a day, which is the most`;
  return refuse("rate_limited", message, FLOOD_RETRY_S);
}

/** Writes a change of an endpoint to the events of its account, and to the audit log: its URL, never its secret. */
export async function recordChange(
  db: Db,
  row: EndpointRow,
  { actor, at, audit, event }: { actor: AuditActor; at: Date } & Trace,
): Promise<void> {
  const changedBy = actor.kind === "worker" ? null : toActor(actor);
  await insertEndpointEvent(db, {
    account_id: row.account_id,
    mode: row.mode,
    type: event.type,
    endpoint_id: row.id,
    detail: JSON.stringify({ reason: event.reason, changed_by: changedBy }),
    at,
  });
  await insertAuditEntries(db, [{ ...audit, actor, subject: row.id, at }]);
}
