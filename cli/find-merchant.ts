import { type PaymentClient, PermissionError } from "../client/index.ts";
import { isMerchantId } from "./account-ids.ts";
import { CliError, usageError } from "./cli-error.ts";
import { takeFirst } from "./take-first.ts";

/** Merchants that an error lists at most. */
const MOST = 10;

/** Returns the only merchant that a key reaches. Throws CliError when there are none or several, or when it may not list them. */
export async function findOnlyMerchant(client: PaymentClient): Promise<string> {
  const found = await takeFirst(client.merchants.list({ limit: MOST }), MOST).catch((error: unknown) => {
    if (!(error instanceof PermissionError)) throw error;
    throw usageError("the key may not list merchants, so name one: --merchant, or PAY_MERCHANT_ID");
  });
  const [only, ...others] = found;
  if (only && others.length === 0) {
    if (!isMerchantId(only.id)) throw new CliError("the service has answered with a merchant's id of another form");
    return only.id;
  }
  if (!only) throw usageError("the key reaches no merchant: create one, or use another key");
  const names = found.map(({ id, name }) => `${id} (${name})`).join(", ");
  throw usageError(`the key reaches several merchants, so name one with --merchant: ${names}`);
}

/** Returns a merchant for people: its id, and its name if the key may read that. Throws when the service refuses the key. */
export async function describeMerchant(client: PaymentClient, merchantId: string): Promise<string> {
  try {
    const { merchant } = await client.merchants.get(merchantId);
    return `${merchantId} (${merchant.name})`;
  } catch (error) {
    if (error instanceof PermissionError) return merchantId;
    throw error;
  }
}
