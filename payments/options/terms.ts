import type { Db } from "../../db/tables.ts";
import type { Policy } from "../buyer-data/collection-policies.ts";
import { type FeePolicy, noFee } from "../merchants/fee-policies.ts";
import type { Requester } from "../requester.ts";

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

type Payment = { id: string; account_id: string; merchant_id: string };

/** Reads the terms of a payment, with concurrent queries because a wallet waits for its options. */
export async function readTerms(db: Db, payment: Payment, requester?: Requester): Promise<Terms> {
  const [destinations, policies, collected, fee] = await Promise.all([
    listDestinationTerms(db, payment),
    listCollectionPolicies(db, payment),
    requester ? listAccountsWithData(db, payment, requester) : [],
    findFee(db, payment),
  ]);
  return {
    settled: new Set(destinations.map(({ asset }) => asset)),
    takers: new Set(destinations.filter((one) => one.accepts_other_assets).map(({ asset }) => asset)),
    direct: new Map(destinations.filter((one) => one.direct).map(({ asset, destination }) => [asset, destination])),
    policies,
    collected: new Set(collected.map(({ account }) => account)),
    fee,
  };
}

function listDestinationTerms(db: Db, { merchant_id }: Payment) {
  return db
    .selectFrom("settlement_destination")
    .select(["asset", "destination", "direct", "accepts_other_assets"])
    .where("merchant_id", "=", merchant_id)
    .execute();
}

function listCollectionPolicies(db: Db, { merchant_id }: Payment): Promise<Policy[]> {
  return db
    .selectFrom("collection_policy")
    .select(["asset", "unit", "minimum"])
    .where("merchant_id", "=", merchant_id)
    .execute();
}

function listAccountsWithData(db: Db, { id }: Payment, requester: Requester) {
  return db
    .selectFrom("collected_data")
    .select("account")
    .where("payment_id", "=", id)
    .where("requester", "=", requester.name)
    .where("attempt_id", "is", null)
    .execute();
}

/** Returns the merchant's fee policy, or else its account's. */
async function findFee(db: Db, { account_id, merchant_id }: Payment): Promise<FeePolicy> {
  const row = await db
    .selectFrom("fee_policy")
    .select(["basis_points", "fixed_micros"])
    .where("account_id", "=", account_id)
    .where(({ or, eb }) => or([eb("merchant_id", "=", merchant_id), eb("merchant_id", "is", null)]))
    .orderBy("merchant_id", (order) => order.asc().nullsLast())
    .limit(1)
    .executeTakeFirst();
  return row ? { basisPoints: row.basis_points, fixedMicros: row.fixed_micros } : noFee;
}
