import { sql } from "kysely";
import type { Db } from "../db/tables.ts";
import { type FeePolicy, noFee } from "./fees.ts";
import type { Policy } from "./policies.ts";
import type { Requester } from "./requester.ts";

/** The merchant's settings that its options depend on, and the buyer data that the requester has given. */
export type Terms = {
  settled: ReadonlySet<string>;
  /** Assets that also take payments made in other assets of the same currency. */
  takers: ReadonlySet<string>;
  /** Destinations (CAIP-10) that buyers pay directly, by asset. */
  direct: ReadonlyMap<string, string>;
  policies: Policy[];
  collected: ReadonlySet<string>;
  fee: FeePolicy;
};

/** All of it in one statement: a wallet waits for its options. */
export async function readTerms(
  db: Db,
  payment: { id: string; account_id: string; merchant_id: string },
  requester?: Requester,
): Promise<Terms> {
  const { rows } = await sql<{
    kind: "settled" | "policy" | "collected" | "fee";
    text: string | null;
    unit: string | null;
    minimum: bigint | null;
    taker?: boolean;
  }>`
    select 'settled' as kind, asset as text, case when direct then destination end as unit, null::numeric as minimum,
      takes_others as taker
      from settlement_destination where merchant_id = ${payment.merchant_id}
    union all select 'policy', asset, unit, minimum, false from collection_policy where merchant_id = ${payment.merchant_id}
    union all select 'collected', account, null, null, false from collected_data
      where payment_id = ${payment.id} and requester = ${requester?.name ?? null} and attempt_id is null
    union all (
      select 'fee', points::text, null, fixed_micros, false from fee_policy
      where account_id = ${payment.account_id} and (merchant_id = ${payment.merchant_id} or merchant_id is null)
      order by merchant_id nulls last limit 1
    )`.execute(db);
  const textsOf = (kind: "settled" | "collected") =>
    new Set(rows.flatMap((row) => (row.kind === kind && row.text !== null ? [row.text] : [])));
  const policies = rows
    .filter(({ kind }) => kind === "policy")
    .map(({ text: asset, unit, minimum }) => ({ asset, unit, minimum }));
  const fee = rows.find(({ kind }) => kind === "fee");
  return {
    settled: textsOf("settled"),
    takers: new Set(rows.flatMap(({ kind, text, taker }) => (kind === "settled" && text && taker ? [text] : []))),
    direct: new Map(
      rows.flatMap(({ kind, text, unit }) => (kind === "settled" && text && unit ? [[text, unit] as const] : [])),
    ),
    policies,
    collected: textsOf("collected"),
    fee: fee ? { points: Number(fee.text), fixedMicros: fee.minimum ?? 0n } : noFee,
  };
}
