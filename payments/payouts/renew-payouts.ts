import type { Chains } from "../../chains/open-chains.ts";
import { listPayoutsOfOtherTreasury, type ReadyPayout, renewPayout } from "../../db/queries/former-payouts.ts";
import type { Db } from "../../db/tables.ts";
import type { PayoutRequest } from "../../signer/protocol.ts";
import type { RefusalReason } from "../../signer/refusals.ts";
import type { TreasurySigner } from "../../signer/treasury-signer.ts";
import { requestPayouts } from "./request-payouts.ts";

/** The payouts that the present treasury makes now, and those that the signer refuses, by reason. */
type Renewed = { renewed: string[]; refused: Partial<Record<RefusalReason, number>> };

/**
 * Has payouts that were not sent signed by the present treasury, after another one has replaced theirs. They keep amount, receiver
 * and number. The signer refuses those that the former treasury has made. Call it only with a signer that keeps records.
 */
export async function renewPayouts({
  db,
  chains,
  signer,
}: {
  db: Db;
  chains: Chains;
  signer: TreasurySigner;
}): Promise<Renewed> {
  const result: Renewed = { renewed: [], refused: {} };
  for (const { chain, treasury } of chains.values()) {
    const payouts = await listPayoutsOfOtherTreasury(db, { chain, treasury });
    const wanted = payouts.map((payout) => ({
      request: toRequest(payout),
      settlementId: payout.settlement_id ?? undefined,
    }));
    for (const [index, answer] of (await requestPayouts({ db, signer }, wanted)).entries()) {
      const payout = payouts[index];
      if (!payout) continue;
      if (!answer.ok) result.refused[answer.reason] = (result.refused[answer.reason] ?? 0) + 1;
      else if (await renewPayout(db, { payout, treasury, signature: answer.signature })) result.renewed.push(payout.id);
    }
  }
  return result;
}

function toRequest({ asset, amount, receiver, merchant_id, number, payment_id }: ReadyPayout): PayoutRequest {
  const paid = { merchantId: merchant_id, number, asset, amount, receiver, deposits: [] };
  return payment_id === null ? { kind: "settlement", ...paid } : { kind: "refund", paymentId: payment_id, ...paid };
}
