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

type Owner = { accountId: string; merchantId: string | null };

/** Sets the fee of an account, or of one merchant instead, for options created from now on. */
export async function setFee(
  { db, now }: Pick<PaymentDeps, "now"> & { db: Db },
  args: Owner & FeePolicy,
): Promise<void> {
  const { accountId: account_id, merchantId: merchant_id, basisPoints: basis_points, fixedMicros: fixed_micros } = args;
  await db
    .insertInto("fee_policy")
    .values({ account_id, merchant_id, basis_points, fixed_micros, updated_at: now() })
    .onConflict((conflict) =>
      conflict.columns(["account_id", "merchant_id"]).doUpdateSet({ basis_points, fixed_micros, updated_at: now() }),
    )
    .execute();
}

/**
 * Deletes a fee policy. Without its own policy a merchant has its account's; without a policy an account pays no fee.
 * Returns false when there was none.
 */
export async function clearFee({ db }: { db: Db }, { accountId, merchantId }: Owner): Promise<boolean> {
  const result = await db
    .deleteFrom("fee_policy")
    .where("account_id", "=", accountId)
    .where("merchant_id", merchantId === null ? "is" : "=", merchantId)
    .executeTakeFirst();
  return result.numDeletedRows > 0n;
}

/** Lists every fee policy, an account's own before those of its merchants. */
export async function listFees({ db }: { db: Db }) {
  return db
    .selectFrom("fee_policy")
    .selectAll()
    .orderBy("account_id")
    .orderBy("merchant_id", (order) => order.asc().nullsFirst())
    .execute();
}
