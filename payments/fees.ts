import type { Db } from "../db/tables.ts";
import type { PaymentDeps } from "./deps.ts";

/** What the operator takes of a payment: hundredths of a percent, and millionths of a unit of the asset. */
export type FeePolicy = { points: number; fixedMicros: bigint };
/** A fee in minor units of the asset; `fixed` is part of `total`. */
export type Fee = { total: bigint; fixed: bigint; points: number };

/** A millionth of a unit has six decimals. */
const MICROS = 6;

/** Who pays no fee. */
export const noFee: FeePolicy = { points: 0, fixedMicros: 0n };

/**
 * Pure: the fee of an amount (minor units). The percentage is rounded down and the fixed part up, to the minor unit;
 * together they leave the merchant at least one.
 */
export function reckonFee({ points, fixedMicros }: FeePolicy, amount: bigint, decimals: number): Fee {
  const percentage = (amount * BigInt(points)) / 10_000n;
  const scaled = fixedMicros * 10n ** BigInt(decimals);
  const fixed = (scaled + 10n ** BigInt(MICROS) - 1n) / 10n ** BigInt(MICROS);
  const most = amount > 0n ? amount - 1n : 0n;
  const total = percentage + fixed < most ? percentage + fixed : most;
  return { total, fixed: total - (percentage < total ? percentage : total), points };
}

type Owner = { accountId: string; merchantId: string | null };

/** Sets what is taken of an account's payments, or of one merchant's instead; for options that are made from now on. */
export async function setFee(
  { db, now }: Pick<PaymentDeps, "now"> & { db: Db },
  args: Owner & FeePolicy,
): Promise<void> {
  const { accountId: account_id, merchantId: merchant_id, points, fixedMicros: fixed_micros } = args;
  await db
    .insertInto("fee_policy")
    .values({ account_id, merchant_id, points, fixed_micros, updated_at: now() })
    .onConflict((conflict) =>
      conflict.columns(["account_id", "merchant_id"]).doUpdateSet({ points, fixed_micros, updated_at: now() }),
    )
    .execute();
}

/** Takes a policy away: of a merchant its account's counts again, of an account nothing is taken. False without one. */
export async function clearFee({ db }: { db: Db }, { accountId, merchantId }: Owner): Promise<boolean> {
  const result = await db
    .deleteFrom("fee_policy")
    .where("account_id", "=", accountId)
    .where("merchant_id", merchantId === null ? "is" : "=", merchantId)
    .executeTakeFirst();
  return result.numDeletedRows > 0n;
}

/** Every policy, an account's own before those of its merchants. */
export async function listFees({ db }: { db: Db }) {
  return db
    .selectFrom("fee_policy")
    .selectAll()
    .orderBy("account_id")
    .orderBy("merchant_id", (order) => order.asc().nullsFirst())
    .execute();
}
