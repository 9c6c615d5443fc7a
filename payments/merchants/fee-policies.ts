import { inTransaction } from "../../db/in-transaction.ts";
import { type AuditActor, insertAuditEntries } from "../../db/queries/audit-entries.ts";
import { deleteFeePolicy, type FeePolicyRow, findFeePolicy, upsertFeePolicy } from "../../db/queries/fee-policies.ts";
import type { Db } from "../../db/tables.ts";
import type { PaymentDeps } from "../payment-deps.ts";

/** The operator's fee on a payment: `basisPoints` in hundredths of a percent, `fixedMicros` in millionths of a unit of the asset. */
export type FeePolicy = { basisPoints: number; fixedMicros: bigint };
/** A fee in minor units of the asset; `fixed` is part of `total`. */
export type Fee = { total: bigint; fixed: bigint; basisPoints: number };

/** Decimals of a millionth. */
const MICROS = 6;

/** The policy of a merchant without a fee. */
export const noFee: FeePolicy = { basisPoints: 0, fixedMicros: 0n };

/**
 * Returns the fee of an amount (minor units). Rounds the percentage down and the fixed part up, to the minor unit. The
 * fee leaves the merchant at least one minor unit. Pure.
 */
export function calculateFee({ basisPoints, fixedMicros }: FeePolicy, amount: bigint, decimals: number): Fee {
  const percentage = (amount * BigInt(basisPoints)) / 10_000n;
  const scaled = fixedMicros * 10n ** BigInt(decimals);
  const fixed = (scaled + 10n ** BigInt(MICROS) - 1n) / 10n ** BigInt(MICROS);
  const most = amount > 0n ? amount - 1n : 0n;
  const total = percentage + fixed < most ? percentage + fixed : most;
  return { total, fixed: total - (percentage < total ? percentage : total), basisPoints };
}

type Owner = { actor: AuditActor; accountId: string; merchantId: string | null };
type Deps = Pick<PaymentDeps, "now"> & { db: Db };

/** Sets the fee of an account, or of one merchant instead, for options created from now on. */
export async function setFee(deps: Deps, args: Owner & FeePolicy): Promise<void> {
  const { actor, accountId, merchantId, basisPoints, fixedMicros } = args;
  const at = deps.now();
  await inTransaction(deps.db, async (db) => {
    const before = toAudited(await findFeePolicy(db, args));
    const row = {
      account_id: accountId,
      merchant_id: merchantId,
      basis_points: basisPoints,
      fixed_micros: fixedMicros,
    };
    await upsertFeePolicy(db, { ...row, updated_at: at });
    const entry = { actor, action: "fee.set", subject: merchantId ?? accountId, at };
    await insertAuditEntries(db, [{ ...entry, before, after: toAudited(row) }]);
  });
}

/**
 * Deletes a fee policy. Without its own policy a merchant has its account's; without a policy an account pays no fee.
 * Returns false when there was none.
 */
export async function clearFee(deps: Deps, { actor, ...owner }: Owner): Promise<boolean> {
  return inTransaction(deps.db, async (db) => {
    const before = toAudited(await findFeePolicy(db, owner));
    if (!(await deleteFeePolicy(db, owner))) return false;
    const subject = owner.merchantId ?? owner.accountId;
    await insertAuditEntries(db, [{ actor, action: "fee.cleared", subject, before, after: null, at: deps.now() }]);
    return true;
  });
}

function toAudited(row: Pick<FeePolicyRow, "basis_points" | "fixed_micros"> | undefined) {
  return row ? { basisPoints: row.basis_points, fixedMicros: row.fixed_micros.toString() } : null;
}
