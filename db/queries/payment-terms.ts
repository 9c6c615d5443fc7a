import { sql } from "kysely";
import { jsonArrayFrom } from "kysely/helpers/postgres";
import type { Db } from "../tables.ts";

/**
 * Returns what the options of a payment depend on: the destinations of its merchant, the fee policy of the merchant or
 * else of its account (null without one), and the accounts for which the requester has posted buyer data. One statement,
 * because a wallet waits for it.
 */
export async function readPaymentTerms(db: Db, args: { paymentId: string; requester: string | null }) {
  return db
    .selectFrom("payment as p")
    .leftJoinLateral(
      (query) =>
        query
          .selectFrom("fee_policy as f")
          .select(["f.basis_points", "f.fixed_micros"])
          .whereRef("f.account_id", "=", "p.account_id")
          .where((where) =>
            where.or([where("f.merchant_id", "=", where.ref("p.merchant_id")), where("f.merchant_id", "is", null)]),
          )
          .orderBy("f.merchant_id", (order) => order.asc().nullsLast())
          .limit(1)
          .as("fee"),
      (join) => join.onTrue(),
    )
    .select((query) => [
      "fee.basis_points",
      "fee.fixed_micros",
      jsonArrayFrom(
        query
          .selectFrom("settlement_destination as d")
          .select(["d.asset", "d.destination", "d.direct", "d.accepts_other_assets"])
          .whereRef("d.merchant_id", "=", "p.merchant_id"),
      ).as("destinations"),
      sql<string[]>`array(select c.account from collected_data c
        where c.payment_id = p.id and c.requester = ${args.requester} and c.attempt_id is null)`.as("collected"),
    ])
    .where("p.id", "=", args.paymentId)
    .executeTakeFirstOrThrow();
}
