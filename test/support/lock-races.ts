import { sql } from "kysely";
import { openDb } from "../../db/open.ts";
import { insertObservations } from "../../db/queries/observations.ts";
import { refundPayment } from "../../payments/payouts/refund-payment.ts";
import { addCleanup } from "./cleanups.ts";
import { type MerchantFixture, unwrap } from "./merchant-fixture.ts";
import { testActor } from "./test-actor.ts";
import { waitFor } from "./wait-for.ts";

/** Requests a refund of a payment, minor units of the asset that was paid. Returns its id. */
export async function requestRefund({ deps, mode, db }: MerchantFixture, paymentId: string, value: bigint) {
  const { paid_asset: asset } = await db
    .selectFrom("payment")
    .select("paid_asset")
    .where("id", "=", paymentId)
    .executeTakeFirstOrThrow();
  const amount = { unit: `caip19/${asset}`, value };
  return unwrap(await refundPayment(deps, { actor: testActor, paymentId, mode, amount })).refundId;
}

/** Books a movement of the treasury with the nonce of a payout that has begun: a lost one that reached the chain later. */
export async function insertLatePayout(fixture: MerchantFixture, of: { id: string; amount: bigint }): Promise<void> {
  const transfers = await fixture.transfers();
  const transfer = transfers.find(({ settlement_id, refund_id }) => settlement_id === of.id || refund_id === of.id);
  if (!transfer) throw new Error(`${of.id} has no transfer`);
  const { chain, token, payer, receiver, authorization_nonce } = transfer;
  const place = { chain, block_id: "0x01", block_number: 1, tx_hash: "0x02", log_index: 0 };
  const movement = { token, payer, receiver, authorization_nonce, amount: of.amount, booked: true };
  await insertObservations(fixture.db, [{ ...place, ...movement, transfer_id: null, observed_at: fixture.deps.now() }]);
}

/** Waits until so many statements wait for locks. */
export async function waitForLocks({ db }: MerchantFixture, count: number): Promise<void> {
  const read = sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  const isWaiting = async () => (await read.execute(db)).rows.length === count;
  await waitFor(isWaiting, { within: 20_000, what: `${count} statements wait for locks` });
}

/** Opens a connection that adds to the same rows of the ledger's sums as the one that waits for a lock. */
export async function openSharing({ db, databaseUrl }: MerchantFixture) {
  const { rows } = await sql<{ pid: number }>`select pid from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`.execute(db);
  for (;;) {
    const one = openDb(databaseUrl, { max: 1 });
    const shard = sql<{ same: boolean }>`select pg_backend_pid() % 16 = ${rows[0]?.pid ?? 0}::int % 16 as same`;
    if ((await shard.execute(one)).rows[0]?.same) {
      addCleanup(() => one.destroy());
      return one;
    }
    await one.destroy();
  }
}

/** Returns the log lines of payouts whose adoption has failed. */
export const failuresOf = ({ lines }: MerchantFixture) => lines.filter((line) => line.includes("cannot be processed"));
