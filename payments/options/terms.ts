import { listPaidAssets, type PaidAsset, type PaymentWithTerms } from "../../db/queries/payment-terms.ts";
import type { Db } from "../../db/tables.ts";
import type { Policy } from "../buyer-data/collection-policies.ts";
import { type FeePolicy, noFee } from "../merchants/fee-policies.ts";

/** The merchant's settings that its options depend on, and the buyer data that the requester has given. */
export type Terms = {
  /** Assets that the merchant is paid in. */
  settled: ReadonlySet<string>;
  /** Assets that also take payments made in other assets of the same currency. */
  takers: ReadonlySet<string>;
  /** Destinations (CAIP-10) that buyers pay directly, by asset. */
  direct: ReadonlyMap<string, string>;
  /** Policies that ask for buyer data. */
  policies: Policy[];
  /** Accounts that the requester has given buyer data for. */
  collected: ReadonlySet<string>;
  fee: FeePolicy;
};

/** Reads the assets that a merchant is paid in, as its payments' terms have them. */
export async function readPaidAssets(db: Db, merchantId: string): Promise<Pick<Terms, "settled" | "takers">> {
  return toPaidAssets(await listPaidAssets(db, merchantId));
}

/** Returns the assets that a merchant is paid in. */
export function toPaidAssets(destinations: readonly PaidAsset[]): Pick<Terms, "settled" | "takers"> {
  return {
    settled: new Set(destinations.map(({ asset }) => asset)),
    takers: new Set(destinations.filter((one) => one.accepts_other_assets).map(({ asset }) => asset)),
  };
}

/** Returns the terms of a payment that was read with them. */
export function toTerms(payment: PaymentWithTerms): Terms {
  const { destinations, policies, collected, basis_points: basisPoints, fixed_micros: fixedMicros } = payment;
  return {
    ...toPaidAssets(destinations),
    direct: new Map(destinations.filter((one) => one.direct).map(({ asset, destination }) => [asset, destination])),
    policies: policies.map((one) => ({ ...one, minimum: one.minimum === null ? null : BigInt(one.minimum) })),
    collected: new Set(collected),
    fee: basisPoints === null || fixedMicros === null ? noFee : { basisPoints, fixedMicros },
  };
}
