import { canonicalAddress, canonicalAsset } from "../../chains/canonical-ids.ts";
import { inTransaction } from "../../db/in-transaction.ts";
import { type AuditActor, insertAuditEntries } from "../../db/queries/audit-entries.ts";
import { wakeRefunds } from "../../db/queries/payout-queue.ts";
import { listDueRefunds } from "../../db/queries/refunds.ts";
import { memberNames } from "../../runtime/member-names.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import { type SigningKey, sign, storeStatement } from "../merchants/sign-decisions.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { chainOf } from "./sign-payout.ts";

/** What an operator has verified of a return on the chain. `amount` is in minor units. */
type VerifiedReturn = { asset: string; amount: bigint; receiver: string; txHash: string };

/**
 * Signs an operator's approval of a refund that returns money without a payment, and stores it for the signer, which requires
 * two operators. Refuses with `payment_not_found` when there is no such refund that waits,
 * and with `invalid_state` when it is another return than the operator verified.
 */
export function approveReturn(
  deps: Pick<PaymentDeps, "db" | "now">,
  {
    refundId,
    verified: given,
    by,
    actor,
  }: { refundId: string; verified: VerifiedReturn; by: SigningKey; actor: AuditActor },
): Promise<Result<{ refundId: string }>> {
  return inTransaction(deps.db, async (db) => {
    const [refund] = await listDueRefunds(db, [refundId]);
    if (!refund || refund.payment_id !== null || refund.exception_tx_hash === null || refund.log_index === null)
      return refuse("payment_not_found", "there is no refund of an exception that waits with this id");
    const { asset, amount, exception_tx_hash: txHash, log_index: logIndex } = refund;
    const verified = toCanonical(given);
    const found = toCanonical({ asset, amount, receiver: refund.receiver ?? "", txHash });
    const differing = memberNames(verified).find((name) => verified[name] !== found[name]);
    if (differing)
      return refuse("invalid_state", `${differing}: the refund names ${found[differing]}, which you did not verify`);
    const subject = { action: "return movement", ...verified, logIndex } as const;
    await storeStatement({ db, now: deps.now }, { statement: sign(deps, { subject, by }), of: refundId });
    await wakeRefunds(db, { merchantId: "", asset });
    const entry = { actor, action: "approve return", subject: refundId, before: null, after: { signer: by.name } };
    await insertAuditEntries(db, [{ ...entry, at: deps.now() }]);
    return done({ refundId });
  });
}

function toCanonical({ asset: given, receiver, ...one }: VerifiedReturn): VerifiedReturn {
  const asset = canonicalAsset(given);
  return { ...one, asset, receiver: canonicalAddress(chainOf(asset), receiver) };
}
