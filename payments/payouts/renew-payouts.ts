import type { Chains } from "../../chains/chain.ts";
import { type AuditActor, insertAuditEntries } from "../../db/queries/audit-entries.ts";
import { listPayoutsOfOtherTreasury, type ReadyPayout, renewPayout } from "../../db/queries/former-payouts.ts";
import type { Pool } from "../../db/tables.ts";
import type { PayoutRequest } from "../../signer/protocol.ts";
import type { RefusalReason } from "../../signer/refusals.ts";
import type { TreasurySigner } from "../../signer/treasury-signer.ts";
import { requestPayouts } from "./request-payouts.ts";

/**
 * The number of payouts that the present treasury makes now, and of those that are refused, by reason. `may_be_sent`: the payout
 * was in a transaction, which the former treasury's signature may still make valid; all other reasons are the signer's.
 */
type Renewed = { renewed: number; refused: Partial<Record<RefusalReason | "may_be_sent", number>> };

/**
 * Has payouts that were not sent signed by the present treasury, after another one has replaced theirs. They keep amount, receiver
 * and number. The signer refuses those that the former treasury has made. Call it only with a signer that keeps records.
 */
export async function renewPayouts(
  deps: { db: Pool; now: () => Date; chains: Chains; signer: TreasurySigner },
  actor: AuditActor,
): Promise<Renewed> {
  const { db } = deps;
  const result: Renewed = { renewed: 0, refused: {} };
  for (const { chain, treasury } of deps.chains.values()) {
    const ready = await listPayoutsOfOtherTreasury(db, { chain, treasury });
    const payouts = ready.filter((payout) => !payout.was_assigned);
    if (payouts.length < ready.length)
      result.refused.may_be_sent = (result.refused.may_be_sent ?? 0) + ready.length - payouts.length;
    const wanted = payouts.map((payout) => ({
      request: toRequest(payout),
      settlementId: payout.settlement_id ?? undefined,
    }));
    for (const [index, answer] of (await requestPayouts(deps, wanted)).entries()) {
      const payout = payouts[index];
      if (!payout) continue;
      if (!answer.ok) result.refused[answer.reason] = (result.refused[answer.reason] ?? 0) + 1;
      else if (await renewOne(deps, actor, { payout, treasury, signature: answer.signature })) result.renewed += 1;
    }
  }
  return result;
}

async function renewOne(
  { db, now }: { db: Pool; now: () => Date },
  actor: AuditActor,
  renewal: { payout: ReadyPayout; treasury: string; signature: string | null },
): Promise<boolean> {
  const { payout, treasury } = renewal;
  return db.transaction().execute(async (db) => {
    const isRenewed = await renewPayout(db, renewal);
    const [before, after] = [{ payer: payout.payer }, { payer: treasury }];
    const entry = { actor, action: "payout.renewed", subject: payout.id, before, after, at: now() };
    if (isRenewed) await insertAuditEntries(db, [entry]);
    return isRenewed;
  });
}

function toRequest({ asset, amount, receiver, merchant_id, number, payment_id }: ReadyPayout): PayoutRequest {
  const paid = { merchantId: merchant_id, number, asset, amount, receiver, deposits: [] };
  return payment_id === null ? { kind: "settlement", ...paid } : { kind: "refund", paymentId: payment_id, ...paid };
}
