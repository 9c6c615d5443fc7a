import type { Transaction } from "kysely";
import { canonicalAsset } from "../../chains/canonical-ids.ts";
import { inTransaction } from "../../db/in-transaction.ts";
import { type AuditActor, type AuditEntry, insertAuditEntries } from "../../db/queries/audit-entries.ts";
import { type DestinationChangeRow, listWaitingChanges } from "../../db/queries/destination-changes.ts";
import { findDestination, listDestinationRows } from "../../db/queries/destinations.ts";
import { hasMerchant, lockMerchant } from "../../db/queries/merchants.ts";
import type { Db, Tables } from "../../db/tables.ts";
import { done, type Refusal, type Result, refuse } from "../error-codes.ts";
import { newId } from "../ids.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { type ChangeDeps, rejectWaiting, requestChanges } from "./destination-changes.ts";
import { planChange } from "./destination-rules.ts";
import type { Owner } from "./merchants.ts";
import { type Destination, type ValidateDeps, validateAsset, validateDestination } from "./validate-destinations.ts";

type Deps = Pick<PaymentDeps, "db" | "now" | "log"> & ValidateDeps;

/** A change that waits: the account that it asks for, and when it applies unless it is decided before. */
type PendingChange = { changeId: string; destination: string; requestedAt: Date; appliesAt: Date };

/**
 * A destination as its merchant sees it. `destination` is the account that applies now; of a destination that is added
 * and does not apply yet, it is the requested one. `pendingChange` is the change that waits.
 */
export type DestinationView = Destination & { id: string; pendingChange?: PendingChange };

/** Lists a merchant's destinations in the order of registration. Refuses with `merchant_not_found`. */
export async function listDestinations(
  deps: Pick<Deps, "db">,
  args: Owner & { merchantId: string },
): Promise<Result<DestinationView[]>> {
  if (!(await hasMerchant(deps.db, args))) return refuse("merchant_not_found", "no such merchant");
  const applied = await listDestinationRows(deps.db, args.merchantId);
  const waiting = await listWaitingChanges(deps.db, args.merchantId);
  const added = waiting.filter(({ destination_id: id }) => applied.every((row) => row.id !== id));
  return done([
    ...applied.map((row) => toView(row, waiting)),
    ...added.map(({ destination_id: id, after, ...row }) => toView({ ...row, id, destination: after ?? "" }, waiting)),
  ]);
}

/**
 * Adds destinations of a merchant, all or none. The first destination for an asset of a merchant that has not been paid
 * applies at once; others wait for the account's waiting period. Accepts an asset that no configured network has; buyers
 * are offered it once a network has it. Refuses like `findAdditionRefusal`. Does not screen: the API screens before the
 * transaction (`checkAdditions`), and every destination is screened before each payout.
 */
export async function addDestinations(
  deps: Deps,
  args: Owner & { merchantId: string; actor: AuditActor; settlements: readonly Destination[] },
): Promise<Result<DestinationView[]>> {
  const { merchantId, actor } = args;
  return withDestinationLock(deps, args, async (locked) => {
    const refusal = await findAdditionRefusal({ ...deps, db: locked.db }, args);
    if (refusal) return refusal;
    const at = locked.now();
    const wanted = args.settlements.map(({ asset, destination }) => ({
      destinationId: newId("crypto", at),
      asset: canonicalAsset(asset),
      givenAsset: asset === canonicalAsset(asset) ? null : asset,
      before: null,
      after: destination,
    }));
    const changes = await requestChanges(locked, { merchantId, actor, wanted });
    return done(
      wanted.map(({ destinationId: id, asset, givenAsset: given_asset, after: destination }) =>
        toView({ id, asset, given_asset, destination }, changes),
      ),
    );
  });
}

/**
 * Returns why destinations cannot be added, or undefined: `params_validation` naming the invalid entry,
 * `merchant_not_found`, or `settlement_asset_conflict` for an asset that has a destination already, applied or waiting.
 */
export async function findAdditionRefusal(
  deps: Pick<Deps, "db" | "networks">,
  args: Owner & { merchantId: string; settlements: readonly Destination[] },
): Promise<Refusal | undefined> {
  for (const [index, entry] of args.settlements.entries()) {
    const error = validateAsset(entry.asset) ?? validateDestination(deps, entry);
    if (error) return refuse("params_validation", `settlements.${index}.${error}`);
  }
  const listed = await listDestinations(deps, args);
  if (!listed.ok) return listed;
  const taken = new Set(listed.value.map(({ asset }) => canonicalAsset(asset)));
  for (const [index, { asset }] of args.settlements.entries()) {
    if (taken.has(canonicalAsset(asset)))
      return refuse("settlement_asset_conflict", `settlements.${index}.asset: has a destination already`);
    taken.add(canonicalAsset(asset));
  }
  return undefined;
}

/**
 * Changes the account of a destination after the account's waiting period, for settlements that begin afterwards. A
 * request for the account that applies now withdraws the waiting change. The asset cannot change. Does not screen, like
 * `addDestinations`.
 */
export async function changeDestination(
  deps: Deps,
  args: Owner & { merchantId: string; id: string; actor: AuditActor; destination: string },
): Promise<Result<DestinationView>> {
  const { merchantId, id, actor, destination: wanted } = args;
  return withDestinationLock(deps, args, async (locked) => {
    const found = await findDestinationToChange({ ...deps, db: locked.db }, args);
    if (!found.ok) return found;
    const { asset, given_asset, applied, waiting } = found.value;
    const before = applied?.destination ?? null;
    const plan = planChange({ applied: before, waiting: waiting?.after ?? null, wanted });
    const shown = { id, asset, given_asset, destination: before ?? wanted };
    if (plan === "keep") return done(toView(shown, waiting ? [waiting] : []));
    const rejection = plan === "withdraw" ? "withdrawn" : "replaced";
    if (waiting) await rejectWaiting(locked, { id: waiting.id, actor, rejection });
    if (plan === "withdraw") return done(toView(shown, []));
    const change = { destinationId: id, asset, givenAsset: given_asset, before, after: wanted };
    const changes = await requestChanges(locked, { merchantId, actor, wanted: [change] });
    const isApplied = changes.some(({ state }) => state === "applied");
    return done(toView(isApplied ? { ...shown, destination: wanted } : shown, changes));
  });
}

/**
 * Deletes a destination at once, and rejects its waiting change. Buyers are no longer offered the asset, and its balance
 * waits for a new destination.
 */
export async function deleteDestination(
  deps: Deps,
  args: Owner & { merchantId: string; id: string; actor: AuditActor },
): Promise<Result<{ id: string }>> {
  const { merchantId, id, actor } = args;
  return withDestinationLock(deps, args, async (locked) => {
    const { applied, waiting } = await findBoth(locked, { merchantId, id });
    if (!applied && !waiting) return noSuchDestination();
    const rejection = applied ? "replaced" : "withdrawn";
    if (waiting) await rejectWaiting(locked, { id: waiting.id, actor, rejection });
    if (applied) {
      const { asset, given_asset: givenAsset, destination: before } = applied;
      const change = { destinationId: id, asset, givenAsset, before, after: null };
      await requestChanges(locked, { merchantId, actor, wanted: [change] });
    }
    return done({ id });
  });
}

/**
 * Returns a destination, and the change of it that waits. Refuses with `merchant_not_found` an unknown destination, and with
 * `params_validation` an account that it cannot be changed to.
 */
export async function findDestinationToChange(
  deps: Pick<Deps, "db" | "networks">,
  args: { merchantId: string; id: string; destination: string },
) {
  const both = await findBoth(deps, args);
  const there = both.applied ?? both.waiting;
  if (!there) return noSuchDestination();
  const { asset, given_asset } = there;
  const error = validateDestination(deps, { asset, destination: args.destination });
  return error ? refuse("params_validation", error) : done({ asset, given_asset, ...both });
}

async function findBoth({ db }: Pick<Deps, "db">, { merchantId, id }: { merchantId: string; id: string }) {
  const waiting = await listWaitingChanges(db, merchantId);
  return {
    applied: await findDestination(db, { merchantId, id }),
    waiting: waiting.find(({ destination_id }) => destination_id === id),
  };
}

function toView(
  row: Destination & { id: string; given_asset: string | null },
  changes: readonly DestinationChangeRow[],
): DestinationView {
  const view = { id: row.id, asset: row.given_asset ?? row.asset, destination: row.destination };
  const waiting = changes.find(({ destination_id, state }) => destination_id === row.id && state === "requested");
  if (!waiting) return view;
  const { id: changeId, after, created_at: requestedAt, applies_at: appliesAt } = waiting;
  return { ...view, pendingChange: { changeId, destination: after ?? "", requestedAt, appliesAt } };
}

/** Runs changes of a merchant's destinations like `withMerchantLock`, and inserts their audit entries at the end. */
export function withDestinationLock<T>(
  deps: Pick<PaymentDeps, "db" | "now" | "log">,
  args: Owner & { merchantId: string },
  work: (deps: ChangeDeps) => Promise<Result<T>>,
): Promise<Result<T>> {
  return withMerchantLock(deps, args, async (db) => {
    const audit: AuditEntry[] = [];
    const result = await work({ db, now: deps.now, log: deps.log, audit });
    await insertAuditEntries(db, audit);
    return result;
  });
}

/**
 * Runs a change of a merchant's destinations while it holds the merchant's row lock. Without the lock, two calls that
 * register the same assets in different orders could deadlock. `work` must refuse before it writes. Refuses with
 * `merchant_not_found`.
 */
export function withMerchantLock<T>(
  deps: { db: Db },
  args: Owner & { merchantId: string },
  work: (db: Transaction<Tables>) => Promise<Result<T>>,
): Promise<Result<T>> {
  return inTransaction(deps.db, async (db) =>
    (await lockMerchant(db, args)) ? work(db) : refuse("merchant_not_found", "no such merchant"),
  );
}

/** Refuses an unknown destination. The specification's error codes have none of their own for it. */
export const noSuchDestination = () => refuse("merchant_not_found", "the merchant has no such settlement");
