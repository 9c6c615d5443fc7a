import type { GetPaymentStatusResponse } from "../client/index.ts";
import { isTestKey } from "./account-ids.ts";
import { CliError, usageError } from "./cli-error.ts";
import type { MerchantConnection } from "./connection.ts";
import { type Family, payAsBuyer } from "./pay-as-buyer.ts";

/** How long a payment may take, milliseconds. */
const WAIT_MS = 60_000;

/**
 * Pays a payment: in test mode as the test wallet of its checkout page, with a live key as a buyer of the local stack. Returns
 * the final status. Throws CliError for a live key of any other service.
 */
export async function payPayment(
  { client, stack, ...connection }: MerchantConnection,
  paymentId: string,
  { family, signal }: { family: Family; signal: AbortSignal },
): Promise<GetPaymentStatusResponse> {
  const waiting = { timeoutMs: WAIT_MS, signal };
  if (isTestKey(connection.apiKey)) {
    await payAsTestWallet(connection.url, paymentId);
    return client.payments.waitUntilFinal(paymentId, waiting);
  }
  if (stack) return payAsBuyer({ ...connection, stack }, paymentId, { family, ...waiting });
  throw usageError("pay pays with buyers of the local stack only: real money needs a wallet");
}

/** Has the checkout page of a test payment sign as its test wallet. The page needs no key. */
async function payAsTestWallet(url: string, paymentId: string): Promise<void> {
  const page = `${url}/checkout/${encodeURIComponent(paymentId)}/test-wallet`;
  const headers = { "content-type": "application/json" };
  const response = await fetch(page, { method: "POST", headers, body: "{}", redirect: "error" });
  const answer = (await response.json()) as { message?: string; code?: string; collectUrl?: string };
  if (!response.ok) throw new CliError(`${answer.message} (${answer.code})`);
  if (answer.collectUrl !== undefined)
    throw new CliError(`the merchant collects data of the buyer first: ${answer.collectUrl}`);
}
