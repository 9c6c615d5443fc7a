import { canonicalAsset } from "../../chains/canonical-ids.ts";
import {
  type CollectionPolicyRow,
  deleteCollectionPolicy,
  insertCollectionPolicy,
  listCollectionPolicies,
} from "../../db/queries/collection-policies.ts";
import { newId } from "../ids.ts";
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
      (unit === null || (unit === paid.unit && paid.value >= (minimum ?? 0n))),
  );
}

/** Adds a policy. It applies to options created from now on. */
export async function addPolicy(deps: Deps, args: { merchantId: string } & Policy): Promise<{ id: string }> {
  const { merchantId: merchant_id, asset, unit, minimum } = args;
  const id = newId("cpol");
  await insertCollectionPolicy(deps.db, {
    id,
    merchant_id,
    asset: asset === null || asset === undefined ? null : canonicalAsset(asset),
    unit,
    minimum,
    created_at: deps.now(),
  });
  return { id };
}

/** Lists a merchant's policies in the order of creation. */
export async function listPolicies(deps: Pick<Deps, "db">, merchantId: string): Promise<CollectionPolicyRow[]> {
  return listCollectionPolicies(deps.db, merchantId);
}

/** Deletes a policy. Returns false when there is none with that id. */
export async function removePolicy(deps: Pick<Deps, "db">, id: string): Promise<boolean> {
  return deleteCollectionPolicy(deps.db, id);
}
