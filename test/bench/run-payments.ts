import type { Hex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { createPayment, listOptions, type Shop, signOption, type WalletResult } from "../../local/buyer-client.ts";
import type { StackFile } from "../../local/stack-file.ts";
import { percentile, runPool } from "./bench-stats.ts";
import { createClient, type HttpResponse, type SendRequest } from "./http-client.ts";
import type { Timing } from "./payment-parts.ts";

/** A payment that is ready to be confirmed. */
export type Prepared = { paymentId: string; optionId: string; results: WalletResult[] };

/** $0.01, so that the buyers' funds last for a long bench. */
const CENTS = "1";

/** Creates payments, fetches options and signs, as merchants and wallets do before the measured part. */
export async function preparePayments(stack: StackFile, count: number): Promise<Prepared[]> {
  const shop: Shop = { baseUrl: stack.baseUrl, caller: stack.live };
  // A long deadline: on a slow machine the preparation takes longer than a payment's default lifetime.
  const expiresAt = new Date(Date.now() + 3_600_000);
  return runPool(Array.from({ length: count }), 16, async (_, index) => {
    const buyer = stack.evm.buyers[2 + (index % (stack.evm.buyers.length - 2))];
    if (!buyer) throw new Error("the stack has too few buyers");
    const account = privateKeyToAccount(buyer.privateKey as Hex);
    const paymentId = await createPayment(shop, { referenceId: `bench-${index}`, cents: CENTS, expiresAt });
    const [option] = await listOptions(shop, paymentId, [`${stack.evm.chain}:${account.address}`]);
    if (!option) throw new Error(`payment ${paymentId} has no option for ${account.address}`);
    return { paymentId, optionId: option.id, results: await signOption(shop, paymentId, option, account) };
  });
}

export type PaidRun = {
  paid: number;
  failed: string[];
  perSecond: number;
  p50: number;
  p95: number;
  timings: Timing[];
};

/** Confirms payments with the given concurrency until each is final. Times are from the confirm to the final status. */
export async function runPayments(
  stack: StackFile,
  prepared: readonly Prepared[],
  concurrency: number,
): Promise<PaidRun> {
  const { apiKey, merchantId } = stack.live;
  // Not fetch: the client's CPU time reduces that of the measured service.
  const ask = createClient(stack.baseUrl, { "api-key": apiKey, "merchant-id": merchantId }, concurrency);
  const failed: string[] = [];
  const timings: Timing[] = [];
  const begun = performance.now();
  await runPool(prepared, concurrency, async (one) => {
    try {
      timings.push(await payOne(ask, one));
    } catch (error) {
      failed.push(`${one.paymentId}: ${error instanceof Error ? error.message : error}`);
    }
  });
  const seconds = (performance.now() - begun) / 1000;
  const times = timings.map(({ sentAt, endedAt }) => endedAt - sentAt);
  return {
    paid: times.length,
    failed,
    perSecond: times.length / seconds,
    p50: percentile(times, 0.5),
    p95: percentile(times, 0.95),
    timings,
  };
}

/**
 * Confirms a payment and waits until it has succeeded, as native wallets do, which send `maxPollMs` with the confirm. Throws when
 * it ends otherwise.
 */
export async function payOne(ask: SendRequest, { paymentId, optionId, results }: Prepared): Promise<Timing> {
  const sentAt = Date.now();
  const path = `/v1/gateway/payment/${paymentId}`;
  let end = readStatus(await ask("POST", `${path}/confirm?${HOLD}`, JSON.stringify({ optionId, results })));
  while (!end.isFinal && Date.now() - sentAt < GIVEN_UP_MS)
    end = readStatus(await ask("GET", `${path}/status?${HOLD}`));
  if (end.status !== "succeeded") throw new Error(`ended ${end.status}`);
  return { paymentId, sentAt, endedAt: Date.now() };
}

const HOLD = "maxPollMs=10000";
/** The longest wait for the end of a payment, milliseconds. */
const GIVEN_UP_MS = 120_000;

function readStatus({ status, text }: HttpResponse): { status: string; isFinal: boolean } {
  if (status !== 200) throw new Error(`returned ${status}: ${text}`);
  return JSON.parse(text);
}
