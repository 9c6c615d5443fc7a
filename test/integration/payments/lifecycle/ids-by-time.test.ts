import { expect, test } from "vitest";
import { refundPayment } from "../../../../payments/payouts/refund-payment.ts";
import { fundBuyer, startChain } from "../../../support/evm-chain.ts";
import { execute } from "../../../support/execute-sql.ts";
import { makeMerchantFixture, unwrap } from "../../../support/merchant-fixture.ts";
import { testActor } from "../../../support/test-actor.ts";

/** Each table whose ids a payment writes, with the column of its time. */
const tables = {
  merchant: "created_at",
  payment: "created_at",
  payment_option: "created_at",
  attempt: "created_at",
  transfer: "created_at",
  settlement: "created_at",
  refund: "created_at",
  webhook_event: "at",
};

test("the ids of all that a payment writes begin with their seconds, so that new rows share pages of the indexes", async () => {
  const chain = await startChain();
  const fixture = await makeMerchantFixture(chain);
  const paymentId = await fixture.pay(await fundBuyer(chain));
  unwrap(await refundPayment(fixture.deps, { actor: testActor, paymentId, mode: fixture.mode }));
  const offsets = Object.entries(tables).map(
    ([table, time]) => `select '${table}' as name,
      ('x' || substr(id, position('_' in id) + 1, 8))::bit(32)::bigint - extract(epoch from ${time}) as seconds from ${table}`,
  );
  const rows = await execute(fixture.databaseUrl, offsets.join(" union all "));
  expect(new Set(rows.map(({ name }) => name))).toEqual(new Set(Object.keys(tables)));
  // An id is made before its row is written, much earlier on a slow machine.
  expect(rows.filter(({ seconds }) => Math.abs(Number(seconds)) > 60)).toEqual([]);
});
