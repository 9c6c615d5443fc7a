import { canonicalAsset } from "../../chains/canonical-ids.ts";
import { inTransaction } from "../../db/in-transaction.ts";
import { type AuditActor, insertAuditEntries } from "../../db/queries/audit-entries.ts";
import {
  type CollectionPolicyRow,
  deleteCollectionPolicy,
  insertCollectionPolicy,
  listCollectionPolicies,
} from "../../db/queries/collection-policies.ts";
import { newId } from "../ids.ts";
import { validateAsset } from "../merchants/validate-destinations.ts";
import { canonicalUnit, validateUnit } from "../money.ts";
import type { PaymentDeps } from "../payment-deps.ts";

type Deps = Pick<PaymentDeps, "db" | "now">;

/**
 * Selects the payments of a merchant that need buyer data. A null field matches everything. `minimum`: minor units of
 * `unit`.
 */
export type Policy = Pick<CollectionPolicyRow, "asset" | "unit" | "minimum">;

/** Returns true when a policy applies: by the paying asset, and from a minimum amount on. */
export function needsData(policies: readonly Policy[], paid: { asset: string; unit: string; value: bigint }): boolean {
  return policies.some(
    ({ asset, unit, minimum }) =>
      (asset === null || asset === paid.asset) &&
      (unit === null || (canonicalUnit(unit) === canonicalUnit(paid.unit) && paid.value >= (minimum ?? 0n))),
  );
}

/** Returns the error of an asset or a unit that no payment can have, so that the policy would select none; else undefined. */
export function validatePolicy({ asset, unit }: Pick<Policy, "asset" | "unit">): string | undefined {
  const error = asset === null ? undefined : validateAsset(asset);
  if (error || unit === null) return error;
  const unitError = validateUnit(unit);
  return unitError && `unit: ${unitError}`;
}

/** Adds a policy. It applies to options created from now on. */
export async function addPolicy(
  deps: Deps,
  args: { actor: AuditActor; merchantId: string } & Policy,
): Promise<{ id: string }> {
  const { actor, merchantId: merchant_id, asset, unit, minimum } = args;
  const at = deps.now();
  const id = newId("cpol", at);
  const row = { id, merchant_id, asset: asset === null ? null : canonicalAsset(asset), unit, minimum };
  await inTransaction(deps.db, async (db) => {
    await insertCollectionPolicy(db, { ...row, created_at: at });
    const entry = { actor, action: "collection_policy.created", subject: id, at };
    await insertAuditEntries(db, [{ ...entry, before: null, after: toAudited(row) }]);
  });
  return { id };
}

/** Lists a merchant's policies in the order of creation. */
export async function listPolicies(deps: Pick<Deps, "db">, merchantId: string): Promise<CollectionPolicyRow[]> {
  return listCollectionPolicies(deps.db, merchantId);
}

/** Deletes a policy. Returns false when there is none with that id. */
export async function removePolicy(deps: Deps, args: { actor: AuditActor; id: string }): Promise<boolean> {
  const { actor, id } = args;
  return inTransaction(deps.db, async (db) => {
    const row = await deleteCollectionPolicy(db, id);
    if (!row) return false;
    const entry = { actor, action: "collection_policy.deleted", subject: id, at: deps.now() };
    await insertAuditEntries(db, [{ ...entry, before: toAudited(row), after: null }]);
    return true;
  });
}

function toAudited({ merchant_id: merchant, asset, unit, minimum }: Omit<CollectionPolicyRow, "created_at">) {
  return { merchant, asset, unit, minimum: minimum?.toString() ?? null };
}
