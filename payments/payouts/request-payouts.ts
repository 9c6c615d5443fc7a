import {
  type DepositRow,
  listAssignedDeposits,
  listPaymentDeposits,
  listSettlementDeposits,
  listUnpaidSettlements,
} from "../../db/queries/deposits.ts";
import {
  type DepositClaim,
  MAX_DEPOSITS,
  MAX_PAYOUTS,
  type PayoutRequest,
  type PayoutResult,
} from "../../signer/protocol.ts";
import type { TreasurySigner } from "../../signer/treasury-signer.ts";
import type { PaymentDeps } from "../payment-deps.ts";

type Deps = Pick<PaymentDeps, "db"> & { signer: TreasurySigner };

/** A payout to be signed. `settlementId` finds the deposits behind a settlement. */
type WantedPayout = { request: PayoutRequest; settlementId?: string | undefined };

/**
 * Asks the signer for signatures, with the deposits behind each payout. A merchant whose verified deposits do not cover a
 * payout is asked for once more after the deposits of all its unpaid settlements are claimed: a refund can be paid from them.
 * Returns one result for each payout, in their order.
 */
export async function requestPayouts(deps: Deps, wanted: readonly WantedPayout[]): Promise<PayoutResult[]> {
  if (wanted.length === 0) return [];
  const requests = await attachDeposits(deps, wanted);
  const results = await signInBatches(deps, requests);
  const isShort = (index: number) => {
    const result = results[index];
    return result !== undefined && !result.ok && result.reason === "funds_short";
  };
  const short = requests.flatMap((request, index) => (isShort(index) ? [{ request, index }] : []));
  if (short.length === 0) return results;
  const merchants = new Set(short.flatMap(({ request }) => ("merchantId" in request ? request.merchantId : [])));
  for (const merchantId of merchants) await claimUnpaid(deps, merchantId);
  const retried = await signInBatches(
    deps,
    short.map(({ request }) => request),
  );
  for (const [at, { index }] of short.entries()) results[index] = retried[at] ?? results[index] ?? unanswered;
  return results;
}

const unanswered: PayoutResult = { ok: false, reason: "signer_unavailable", detail: "the signer gave no result" };

/** Adds the deposits to the requests. Deposits that exceed one request are claimed before. */
async function attachDeposits(deps: Deps, wanted: readonly WantedPayout[]): Promise<PayoutRequest[]> {
  const settlementIds = wanted.flatMap(({ settlementId }) => settlementId ?? []);
  const paymentIds = wanted.flatMap(({ request }) => (request.kind === "refund" ? request.paymentId : []));
  const ofPayment = Map.groupBy(await listPaymentDeposits(deps.db, paymentIds), (row) => row.payment_id);
  const first = await listSettlementDeposits(deps.db, { settlementIds, limit: MAX_DEPOSITS });
  const ofSettlement = Map.groupBy(first, (row) => row.settlement_id ?? "");
  if (first.length === MAX_DEPOSITS) await claimSettled(deps, settlementIds);
  return wanted.map(({ request, settlementId }): PayoutRequest => {
    if (request.kind === "return") return request;
    const rows = request.kind === "refund" ? ofPayment.get(request.paymentId) : ofSettlement.get(settlementId ?? "");
    return { ...request, deposits: (rows ?? []).map(toClaim) };
  });
}

/** Claims the deposits of settlements in parts. */
async function claimSettled(deps: Deps, settlementIds: readonly string[]): Promise<void> {
  let after: DepositRow | undefined;
  do {
    const page = await listSettlementDeposits(deps.db, { settlementIds, limit: MAX_DEPOSITS, after });
    if (page.length > 0) await deps.signer.claimDeposits(page.map(toClaim));
    after = page.length === MAX_DEPOSITS ? page.at(-1) : undefined;
  } while (after);
}

/** Claims the deposits that may cover a merchant's payouts and that its other payouts have not claimed. */
async function claimUnpaid(deps: Deps, merchantId: string): Promise<void> {
  for (let after = 0; ; ) {
    const page = await listAssignedDeposits(deps.db, { merchantId, limit: MAX_DEPOSITS, after });
    if (page.length > 0) await deps.signer.claimDeposits(page.map(toClaim));
    const last = page.at(-1);
    if (!last || page.length < MAX_DEPOSITS) break;
    after = last.resolution_id;
  }
  await claimSettled(deps, await listUnpaidSettlements(deps.db, merchantId));
}

/** Returns a deposit as the signer's protocol names it. */
export function toClaim({ asset, merchant_id, payment_id, tx_hash, log_index, signed }: DepositRow): DepositClaim {
  const claim = { asset, merchantId: merchant_id, paymentId: payment_id, txHash: tx_hash, logIndex: log_index };
  return signed ? { ...claim, transaction: signed.toString("base64") } : claim;
}

async function signInBatches({ signer }: Deps, requests: readonly PayoutRequest[]): Promise<PayoutResult[]> {
  const results: PayoutResult[] = [];
  for (const batch of splitRequests(requests)) results.push(...(await signer.signPayouts(batch)));
  return results;
}

/** Splits payouts into requests that are within the limits of the protocol. Pure. */
export function splitRequests(requests: readonly PayoutRequest[]): PayoutRequest[][] {
  const batches: PayoutRequest[][] = [];
  let deposits = 0;
  for (const request of requests) {
    const own = "deposits" in request ? request.deposits.length : 0;
    const batch = batches.at(-1);
    if (batch && batch.length < MAX_PAYOUTS && deposits + own <= MAX_DEPOSITS) {
      batch.push(request);
      deposits += own;
    } else {
      batches.push([request]);
      deposits = own;
    }
  }
  return batches;
}
