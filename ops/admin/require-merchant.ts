import { findMerchantOwner } from "../../payments/maintenance/operator-actions.ts";
import { type Context, RefusedError } from "./command.ts";

/** Returns a merchant's id with its account and mode. Throws RefusedError when it does not exist. */
export async function requireMerchant(context: Context, merchantId: string) {
  const owner = await findMerchantOwner(context, merchantId);
  if (!owner) throw new RefusedError(`there is no merchant ${merchantId}`);
  return { ...owner, merchantId };
}

/** Returns a merchant as `requireMerchant` does, with the operator that changes it. */
export async function requireMerchantToChange(context: Context, merchantId: string) {
  return { ...(await requireMerchant(context, merchantId)), actor: await context.actor() };
}
