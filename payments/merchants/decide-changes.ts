import { limitLockWaits } from "../../db/in-transaction.ts";
import type { AuditActor } from "../../db/queries/audit-entries.ts";
import {
  type ChangeFilter,
  type DestinationChangeRow,
  findChangedMerchant,
  findDestinationChange,
  listDestinationChanges,
  listDueChanges,
} from "../../db/queries/destination-changes.ts";
import { findOwner, hasMerchant } from "../../db/queries/merchants.ts";
import { runEach } from "../../runtime/run-each.ts";
import { isOneRows } from "../../runtime/transient-errors.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import { isTransient } from "../is-transient.ts";
import { type Page, readCursor, toPage } from "../pagination.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { applyChanges, approveWaiting, rejectWaiting } from "./destination-changes.ts";
import { withDestinationLock } from "./destinations.ts";
import type { Owner } from "./merchants.ts";
import { storeStatement, type Voucher, vouchForDecision } from "./sign-decisions.ts";
import type { Decision } from "./verify-decision.ts";

type Deps = Pick<PaymentDeps, "db" | "now" | "log">;

/** The actor of a change. An operator's name and address stay with the service. */
export type ChangeActor = { type: "key" | "operator"; id: string | null; address: string | null };

/** A change of a destination. `previousDestination` is null for an addition, `destination` for a deletion. */
export type ChangeView = {
  changeId: string;
  settlementId: string;
  asset: string;
  previousDestination: string | null;
  destination: string | null;
  status: DestinationChangeRow["state"];
  requestedBy: ChangeActor;
  requestedAt: Date;
  appliesAt: Date;
  decidedBy: ChangeActor | null;
  decidedAt: Date | null;
  rejectionReason: DestinationChangeRow["rejection"];
  appliedAt: Date | null;
};

/** Changes applied in one run of `applyDueChanges`. */
const LIMIT = 100;

/** How long a due change waits for the lock on its merchant, milliseconds. The sweep waits meanwhile, and tries again. */
const LOCK_WAIT_MS = 1_000;

/** Lists the changes of a merchant's destinations, newest first. Refuses with `merchant_not_found`. */
export async function listChanges(
  deps: Pick<Deps, "db">,
  args: Owner & Pick<ChangeFilter, "state"> & { merchantId: string; cursor?: string | undefined; limit: number },
): Promise<Result<Page<ChangeView>>> {
  if (!(await hasMerchant(deps.db, args))) return refuse("merchant_not_found", "no such merchant");
  const after = readCursor(args.cursor, "time");
  if (!after.ok) return after;
  const rows = await listDestinationChanges(deps.db, args, { after: after.value, limit: args.limit + 1 });
  const { items, nextCursor } = toPage(rows, args.limit, (row) => [row.created_at.toISOString(), row.id]);
  return done({ items: items.map(toChangeView), nextCursor });
}

/** A change with who requested and decided it, for operators. */
export type ChangeLine = Omit<ChangeView, "requestedBy" | "decidedBy"> & {
  merchantId: string;
  requestedBy: string;
  decidedBy: string | null;
};

/** Lists the changes of all merchants, newest first. An undefined filter matches everything. */
export async function listAllChanges(
  deps: Pick<Deps, "db">,
  { limit, ...filter }: ChangeFilter & { limit: number },
): Promise<ChangeLine[]> {
  const rows = await listDestinationChanges(deps.db, filter, { limit });
  return rows.map((row) => ({
    ...toChangeView(row),
    merchantId: row.merchant_id,
    requestedBy: describe(row.requester_kind, row.requester_id, row.requester_address),
    decidedBy: row.decider_kind && describe(row.decider_kind, row.decider_id ?? "", row.decider_address),
  }));
}

const describe = (kind: string, id: string, address: string | null) =>
  [kind, id, ...(address === null ? [] : [`at ${address}`])].join(" ");

/** Returns the merchant of a change with its account and mode, also of a deleted merchant. */
export async function findChangeOwner(
  { db }: Pick<Deps, "db">,
  changeId: string,
): Promise<(Owner & { merchantId: string }) | undefined> {
  const merchantId = await findChangedMerchant(db, changeId);
  const owner = merchantId === undefined ? undefined : await findOwner(db, merchantId);
  if (merchantId === undefined || !owner) return undefined;
  return { accountId: owner.account_id, mode: owner.mode, evenDeleted: true, merchantId };
}

/**
 * Approves or rejects a waiting change. An approved change applies at once. Repeatable. `by` vouches for the decision to the
 * signer, which otherwise keeps to its own waiting period. Refuses with `merchant_not_found` an unknown change, with
 * `invalid_state` a change that was decided otherwise or has applied, and a merchant's statement like `verifyDecision`.
 */
export async function decideChange(
  deps: Deps,
  args: Owner & {
    merchantId: string;
    changeId: string;
    actor: AuditActor;
    decision: Decision;
    by?: Voucher | undefined;
  },
): Promise<Result<ChangeView>> {
  const { merchantId, changeId: id, actor, decision, by } = args;
  return withDestinationLock(deps, args, async (locked) => {
    const change = await findDestinationChange(locked.db, { merchantId, id });
    if (!change) return refuse("merchant_not_found", "the merchant has no such change of a settlement");
    const vouched = by ? await vouchForDecision(locked, { change, decision, by }) : done(undefined);
    if (!vouched.ok) return vouched;
    const moved =
      decision === "approve"
        ? await approveWaiting(locked, { id, actor })
        : await rejectWaiting(locked, { id, actor, rejection: "decided" });
    if (!moved && !isRepeated(change, decision, by)) return refuse("invalid_state", `the change is ${change.state}`);
    // The signer knows no merchants of the test mode: nothing is paid for them.
    if (vouched.value && args.mode === "live") await storeStatement(locked, { statement: vouched.value, of: id });
    return done(toChangeView(moved ?? change));
  });
}

/**
 * Returns true if a change has this decision already. The signer may still wait when a change has applied in time, so a
 * signed approval counts for such a change too.
 */
function isRepeated(
  { state, rejection, decided_at }: DestinationChangeRow,
  decision: Decision,
  by: Voucher | undefined,
): boolean {
  if (decision === "reject") return rejection === "decided";
  return state === "applied" && (decided_at !== null || by !== undefined);
}

/**
 * Applies waiting changes whose time has come. Any worker can run it at any time: a guarded move decides. A change that
 * cannot be applied does not keep the others waiting: its error is thrown after them. The other changes of a merchant whose
 * row is locked wait for the next run.
 */
export async function applyDueChanges(deps: Deps): Promise<void> {
  const due = await listDueChanges(deps.db, { now: deps.now(), limit: LIMIT });
  const locked = new Set<string>();
  const apply = async (change: DueChange) => {
    if (locked.has(change.merchant_id)) return;
    await applyDueChange(deps, change).catch((err: unknown) => {
      if (isOneRows(err)) locked.add(change.merchant_id);
      deps.log.error({ change: change.id, merchant: change.merchant_id, err }, "destination change cannot be applied");
      throw err;
    });
  };
  await runEach(due, apply, { isTransient });
}

type DueChange = Pick<DestinationChangeRow, "id" | "merchant_id">;

async function applyDueChange(deps: Deps, { id, merchant_id: merchantId }: DueChange): Promise<void> {
  const owner = await findOwner(deps.db, merchantId);
  if (!owner) throw new Error(`there is no merchant ${merchantId}`);
  const args = { accountId: owner.account_id, mode: owner.mode, evenDeleted: true, merchantId } as const;
  const actor = { kind: "worker", id: "destination-changes", address: null } as const;
  await deps.db.transaction().execute(async (db) => {
    await limitLockWaits(db, LOCK_WAIT_MS);
    await withDestinationLock({ ...deps, db }, args, async (locked) =>
      done(await applyChanges(locked, { ids: [id], from: "requested", actor })),
    );
  });
}

function toChangeView(row: DestinationChangeRow): ChangeView {
  const { decider_kind: kind, decider_id: id, decider_address: address } = row;
  return {
    changeId: row.id,
    settlementId: row.destination_id,
    asset: row.given_asset ?? row.asset,
    previousDestination: row.before,
    destination: row.after,
    status: row.state,
    requestedBy: toActor({ kind: row.requester_kind, id: row.requester_id, address: row.requester_address }),
    requestedAt: row.created_at,
    appliesAt: row.applies_at,
    decidedBy: kind && toActor({ kind, id, address }),
    decidedAt: row.decided_at,
    rejectionReason: row.rejection,
    appliedAt: row.applied_at,
  };
}

/** Returns an actor as a merchant sees it. */
export function toActor({
  kind,
  id,
  address,
}: Pick<AuditActor, "kind" | "address"> & { id: string | null }): ChangeActor {
  return kind === "key" ? { type: kind, id, address } : { type: "operator", id: null, address: null };
}
