import { canonicalAsset } from "../../chains/canonical-ids.ts";
import { inTransaction } from "../../db/in-transaction.ts";
import { type AuditActor, insertAuditEntries } from "../../db/queries/audit-entries.ts";
import {
  findDestination,
  insertDestinations,
  listDestinationRows,
  removeDestination,
  updateDestination,
} from "../../db/queries/destinations.ts";
import { hasMerchant, lockMerchant } from "../../db/queries/merchants.ts";
import type { Db } from "../../db/tables.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import { newId } from "../ids.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import type { Owner } from "./merchants.ts";
import { type CheckDeps, findUnserved, validateAsset, validateDestination } from "./validate-destinations.ts";

type Deps = Pick<PaymentDeps, "db" | "now"> & CheckDeps;

/** An asset (CAIP-19) and the account (CAIP-10) on the same chain that it is paid out to (specification, 2.8). */
export type Destination = { asset: string; destination: string };
export type DestinationView = Destination & { id: string };

/** Lists a merchant's destinations in the order of registration. Refuses with `merchant_not_found`. */
export async function listDestinations(
  deps: Pick<Deps, "db">,
  args: Owner & { merchantId: string },
): Promise<Result<DestinationView[]>> {
  if (!(await hasMerchant(deps.db, args))) return refuse("merchant_not_found", "no such merchant");
  return done(await listDestinationRows(deps.db, args.merchantId));
}

/**
 * Registers destinations of a merchant, all or none. Accepts an asset that no configured network has; buyers are
 * offered it once a network has it. Refuses with `merchant_not_found`, with `params_validation` naming the invalid
 * entry, and with `settlement_asset_conflict` for an asset that has a destination already.
 */
export async function addDestinations(
  deps: Deps,
  args: Owner & { actor: AuditActor; merchantId: string; settlements: readonly Destination[] },
): Promise<Result<DestinationView[]>> {
  for (const [index, entry] of args.settlements.entries()) {
    const error = validateAsset(entry.asset) ?? validateDestination(deps, entry);
    if (error) return refuse("params_validation", `settlements.${index}.${error}`);
  }
  const unserved = await findUnserved(deps, args.settlements);
  if (unserved !== undefined)
    return refuse("params_validation", `settlements.${unserved}.destination: the account is not served`);
  return withMerchantLock(deps, args, async (db) => {
    const rows = args.settlements.map((entry) => ({
      id: newId("crypto"),
      asset: canonicalAsset(entry.asset),
      destination: entry.destination,
    }));
    const listed = await listDestinations({ db }, args);
    if (!listed.ok) return listed;
    const taken = new Set(listed.value.map(({ asset }) => asset));
    for (const [index, { asset }] of rows.entries()) {
      if (taken.has(asset))
        return refuse("settlement_asset_conflict", `settlements.${index}.asset: has a destination already`);
      taken.add(asset);
    }
    const at = deps.now();
    const written = { merchant_id: args.merchantId, created_at: at, updated_at: at };
    await insertDestinations(
      db,
      rows.map((row) => ({ ...row, ...written })),
    );
    const entry = { actor: args.actor, action: "destination.created", before: null, at };
    await insertAuditEntries(
      db,
      rows.map(({ id, ...row }) => ({ ...entry, subject: id, after: { merchant: args.merchantId, ...row } })),
    );
    return done(rows);
  });
}

/** Changes the account of a destination, for settlements that begin afterwards. The asset cannot change. */
export async function changeDestination(
  deps: Deps & Pick<PaymentDeps, "log">,
  args: Owner & { actor: AuditActor; merchantId: string; id: string; destination: string },
): Promise<Result<DestinationView>> {
  const { merchantId, id, destination } = args;
  const changed = await withMerchantLock(deps, args, async (db) => {
    const before = await findDestination(db, { merchantId, id });
    if (!before) return noSuchDestination();
    const entry = { asset: before.asset, destination };
    const error = validateDestination(deps, entry);
    if (error) return refuse("params_validation", error);
    if ((await findUnserved(deps, [entry])) !== undefined)
      return refuse("params_validation", "destination: the account is not served");
    const at = deps.now();
    await updateDestination(db, { id, destination, updated_at: at });
    const audited = { actor: args.actor, action: "destination.changed", subject: id, at };
    await insertAuditEntries(db, [{ ...audited, before: { destination: before.destination }, after: { destination } }]);
    return done(before);
  });
  if (!changed.ok) return changed;
  const { asset, destination: from } = changed.value;
  deps.log.info({ merchant: merchantId, asset, from, to: destination }, "destination changed");
  return done({ id, asset, destination });
}

/** Deletes a destination. Buyers are no longer offered the asset, and its balance waits for a new destination. */
export async function deleteDestination(
  deps: Deps & Pick<PaymentDeps, "log">,
  args: Owner & { actor: AuditActor; merchantId: string; id: string },
): Promise<Result<{ id: string }>> {
  const deleted = await withMerchantLock(deps, args, async (db) => {
    const row = await removeDestination(db, args);
    if (!row) return noSuchDestination();
    const entry = { actor: args.actor, action: "destination.deleted", subject: row.id, at: deps.now() };
    const before = { merchant: args.merchantId, asset: row.asset, destination: row.destination };
    await insertAuditEntries(db, [{ ...entry, before, after: null }]);
    return done(row);
  });
  if (!deleted.ok) return deleted;
  const { id, asset, destination: from } = deleted.value;
  deps.log.info({ merchant: args.merchantId, asset, from }, "destination deleted");
  return done({ id });
}

/**
 * Runs a change of a merchant's destinations while it holds the merchant's row lock. Without the lock, two calls that
 * register the same assets in different orders could deadlock. `work` must refuse before it writes. Refuses with
 * `merchant_not_found`.
 */
export function withMerchantLock<T>(
  deps: Deps,
  args: Owner & { merchantId: string },
  work: (db: Db) => Promise<Result<T>>,
): Promise<Result<T>> {
  return inTransaction(deps.db, async (db) =>
    (await lockMerchant(db, args)) ? work(db) : refuse("merchant_not_found", "no such merchant"),
  );
}

/** Refuses an unknown destination. The specification's error codes have none of their own for it. */
export const noSuchDestination = () => refuse("merchant_not_found", "the merchant has no such settlement");
