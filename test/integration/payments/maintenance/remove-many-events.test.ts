import { sql } from "kysely";
import { expect, test } from "vitest";
import { removeHistory } from "../../../../payments/maintenance/remove-history.ts";
import { startChain } from "../../../support/evm-chain.ts";
import { insertPaymentRow } from "../../../support/insert-rows.ts";
import { makeMerchantFixture } from "../../../support/merchant-fixture.ts";

const DAY_MS = 86_400_000;
const days = { attempt: null, webhook_event: 30, event: null, payment_option: null };

test("the events of a payment with thousands of refunds leave in parts, so that no statement reaches its timeout", async () => {
  const { db, deps, ...merchant } = await makeMerchantFixture(await startChain());
  const paymentId = await insertPaymentRow(db, merchant, { mode: "test", state: "cancelled" });
  const old = new Date(Date.now() - 60 * DAY_MS);
  await db.transaction().execute(async (own) => {
    await sql`set local session_replication_role = replica`.execute(own);
    await sql`update payment set created_at = ${old}, updated_at = ${old}, expires_at = ${old}`.execute(own);
    await sql`insert into refund (id, payment_id, number, account_id, mode, merchant_id, asset, amount, state, created_at, updated_at)
      select 'rfnd_' || n, id, n, account_id, mode, merchant_id, 'eip155:1/slip44:60', 1, 'withdrawn', ${old}, ${old}
      from payment, generate_series(1, 6000) n`.execute(own);
    await sql`update webhook_event set at = ${old}`.execute(own);
    await sql`insert into webhook_event (account_id, mode, merchant_id, type, refund_id, at)
      select account_id, mode, merchant_id, 'refund.created', id, ${old} from refund`.execute(own);
  });
  const countLeft = async () => {
    const { rows } = await sql<{ count: number }>`
      select count(*)::integer as count from webhook_event v left join refund r on r.id = v.refund_id
      where ${paymentId} in (v.payment_id, r.payment_id)`.execute(db);
    return rows[0]?.count ?? 0;
  };
  const before = await countLeft();
  const remove = (after: number) =>
    removeHistory({ ...deps, now: () => new Date(Date.now() + after * DAY_MS) }, { days, exportHistory: undefined });
  await remove(31);
  expect(await countLeft()).toBe(before - 5_000);
  await remove(33);
  expect(await countLeft()).toBe(0);
});
