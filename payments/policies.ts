import type { Selectable } from "kysely";
import { canonicalAsset } from "../chains/caip.ts";
import type { Tables } from "../db/tables.ts";
import type { PaymentDeps } from "./deps.ts";
import { newId } from "./ids.ts";

type Deps = Pick<PaymentDeps, "db" | "now">;

/** Which payments of a merchant need data of the buyer; what is null does not narrow. `minimum` in minor units of `unit`. */
export type Policy = Pick<Selectable<Tables["collection_policy"]>, "asset" | "unit" | "minimum">;

/** True when one of the policies asks for data: by the asset that pays, and from an amount on. */
export function needsData(policies: readonly Policy[], paid: { asset: string; unit: string; value: bigint }): boolean {
  return policies.some(
    ({ asset, unit, minimum }) =>
      (asset === null || asset === paid.asset) &&
      (unit === null || (unit === paid.unit && paid.value >= (minimum ?? 0n))),
  );
}

/** From now on payments that fit need data; options that were handed out before stay as they are. */
export async function addPolicy(deps: Deps, args: { merchantId: string } & Policy): Promise<{ id: string }> {
  const { merchantId: merchant_id, asset, unit, minimum } = args;
  const id = newId("cpol");
  await deps.db
    .insertInto("collection_policy")
    .values({
      id,
      merchant_id,
      asset: asset === null || asset === undefined ? null : canonicalAsset(asset),
      unit,
      minimum,
      created_at: deps.now(),
    })
    .execute();
  return { id };
}

/** A merchant's policies, in the order they were made. */
export async function listPolicies(
  deps: Pick<Deps, "db">,
  merchantId: string,
): Promise<Selectable<Tables["collection_policy"]>[]> {
  return deps.db
    .selectFrom("collection_policy")
    .selectAll()
    .where("merchant_id", "=", merchantId)
    .orderBy("created_at")
    .execute();
}

/** False when there was none of that id. */
export async function removePolicy(deps: Pick<Deps, "db">, id: string): Promise<boolean> {
  const removed = await deps.db.deleteFrom("collection_policy").where("id", "=", id).returning("id").executeTakeFirst();
  return removed !== undefined;
}
