import { randomUUID } from "node:crypto";
import pRetry from "p-retry";
import {
  ask,
  type Buyer,
  confirm,
  listOptions,
  type PaymentStatus,
  Refused,
  type Shop,
  signOption,
  type WalletResult,
  waitFinal,
} from "../../local/buyer-client.ts";

/** A signed payment that has not been confirmed. */
export type SignedPayment = { paymentId: string; optionId: string; results: WalletResult[] };

/** Repeats a request after a 503, as callers do. */
const repeat = <T>(request: () => Promise<T>): Promise<T> =>
  pRetry(request, {
    retries: 300,
    factor: 1,
    minTimeout: 200,
    shouldRetry: ({ error }) => error instanceof Refused && error.status === 503,
  });

/** Creates a payment of `cents` and signs the buyer's option without confirming it. */
export async function signPayment(
  shop: Shop,
  chain: { id: string },
  buyer: Buyer,
  args: { cents?: string; referenceId?: string } = {},
): Promise<SignedPayment> {
  // Longer than the default, so that the payment does not expire on a slow machine.
  const expiresAt = Math.ceil(Date.now() / 1_000) + 600;
  const amount = { unit: "iso4217/USD", value: args.cents ?? "100" };
  const order = { referenceId: args.referenceId ?? "order", amount, expiresAt };
  // The key prevents a second payment when a 503 has followed the creation of the first one.
  const key = { "idempotency-key": randomUUID() };
  const { id: paymentId } = (await repeat(() => ask(shop, "POST", "/v1/payments", order, key))) as { id: string };
  const [option] = await repeat(() => listOptions(shop, paymentId, [`${chain.id}:${buyer.address}`]));
  if (!option) throw new Error(`payment ${paymentId} offers nothing to ${buyer.address}`);
  return { paymentId, optionId: option.id, results: await repeat(() => signOption(shop, paymentId, option, buyer)) };
}

/** Signs `count` payments, by the buyers in turn. */
export async function signPayments(
  shop: Shop,
  chain: { id: string },
  buyers: readonly Buyer[],
  count: number,
): Promise<SignedPayment[]> {
  const indexes = Array.from({ length: count }, (_, index) => index);
  return mapConcurrently(indexes, 8, (index) => {
    const buyer = buyers[index % buyers.length];
    if (!buyer) throw new Error("there are no buyers");
    return signPayment(shop, chain, buyer, { referenceId: `order-${index}` });
  });
}

/**
 * Confirms like a wallet on a bad connection: retries until it gets an answer, then polls until the payment is final.
 */
export async function confirmUntilFinal(
  shop: Shop,
  { paymentId, optionId, results }: SignedPayment,
  withinMs = 270_000,
): Promise<PaymentStatus> {
  const until = Date.now() + withinMs;
  for (;;) {
    try {
      await confirm(shop, paymentId, { optionId, results });
      return await waitFinal(shop, paymentId, until - Date.now());
    } catch (error) {
      // A wallet retries only after 5xx responses and broken connections (specification, part 7).
      if ((error instanceof Refused && error.status < 500) || Date.now() > until) throw error;
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
  }
}

/** Runs a task for each item, up to `atOnce` concurrently. Returns the results in order. */
export async function mapConcurrently<I, O>(
  items: readonly I[],
  atOnce: number,
  task: (item: I) => Promise<O>,
): Promise<O[]> {
  const results: O[] = [];
  let next = 0;
  const runNext = async (): Promise<void> => {
    for (let index = next++; index < items.length; index = next++) results[index] = await task(items[index] as I);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, runNext));
  return results;
}
