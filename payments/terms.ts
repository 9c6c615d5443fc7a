import { sql } from "kysely";
import type { Db } from "../db/tables.ts";
import type { Policy } from "./policies.ts";

/** What a merchant's options depend on: assets it is paid in, whom it asks for data, and who has given it. */
export type Terms = { settled: ReadonlySet<string>; policies: Policy[]; collected: ReadonlySet<string> };

/** All of it in one statement: a wallet waits for its options. */
export async function readTerms(db: Db, payment: { id: string; merchant_id: string }): Promise<Terms> {
  const { rows } = await sql<{
    kind: "settled" | "policy" | "collected";
    text: string | null;
    unit: string | null;
    minimum: bigint | null;
  }>`
    select 'settled' as kind, asset as text, null as unit, null::numeric as minimum
      from settlement_destination where merchant_id = ${payment.merchant_id}
    union all select 'policy', asset, unit, minimum from collection_policy where merchant_id = ${payment.merchant_id}
    union all select 'collected', account, null, null from collected_data where payment_id = ${payment.id}`.execute(db);
  const textsOf = (kind: "settled" | "collected") =>
    new Set(rows.flatMap((row) => (row.kind === kind && row.text !== null ? [row.text] : [])));
  const policies = rows
    .filter(({ kind }) => kind === "policy")
    .map(({ text: asset, unit, minimum }) => ({ asset, unit, minimum }));
  return { settled: textsOf("settled"), policies, collected: textsOf("collected") };
}
