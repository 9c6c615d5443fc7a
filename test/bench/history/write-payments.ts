import { createHash, randomBytes } from "node:crypto";
import { sql } from "kysely";
import type { Hex } from "viem";
import { deriveNonce, paymentKey } from "../../../chains/natural-key.ts";
import { moveRows } from "../../../db/moves.ts";
import { insertKeyAttempt } from "../../../db/queries/attempts.ts";
import { confirmTransfers } from "../../../db/queries/confirmable-transfers.ts";
import { creditMerchants, insertGroups } from "../../../db/queries/ledger-groups.ts";
import { insertObservations } from "../../../db/queries/observations.ts";
import { lockPaying, moveToProcessing, moveToSucceeded } from "../../../db/queries/payment-moves.ts";
import { insertOptions } from "../../../db/queries/payment-options.ts";
import { insertPayment } from "../../../db/queries/payments.ts";
import { recordRequester } from "../../../db/queries/requesters.ts";
import { insertTransaction } from "../../../db/queries/transactions.ts";
import { assignTransfers, insertTransfers, type TransferCall } from "../../../db/queries/transfers.ts";
import { recordDeliveryAttempts } from "../../../db/queries/webhook-deliveries.ts";
import type { Pool } from "../../../db/tables.ts";
import type { IdPrefix } from "../../../payments/ids.ts";

/** Where the payments go: one merchant with an endpoint, an asset, and the lane that sends them. */
export type Shop = {
  accountId: string;
  merchantId: string;
  endpointId: string;
  laneId: string;
  chain: string;
  asset: string;
  token: string;
};

type Args = { shop: Shop; makeId: (prefix: IdPrefix, at: Date) => string; count: number; nonce: number; block: number };

const hex = (bytes: number): Hex => `0x${randomBytes(bytes).toString("hex")}`;

/**
 * Writes the rows of payments from their creation to the delivery of their webhooks, by the statements of the service: each
 * statement for all of them, as a busy fleet does. No chain and no queue is involved.
 */
export async function writePayments(db: Pool, { shop, makeId, count, nonce, block }: Args): Promise<void> {
  const { accountId, merchantId, chain, asset, token, laneId } = shop;
  const at = new Date();
  const mode = "live" as const;
  const expires_at = new Date(at.getTime() + 300_000);
  const treasury = `0x${"7e".repeat(20)}`;
  const made = Array.from({ length: count }, () => ({
    id: makeId("pay", at),
    optionId: makeId("opt", at),
    attemptId: makeId("att", at),
    transferId: makeId("trf", at),
    payer: hex(20),
    amount: 1_000_000n + BigInt(randomBytes(3).readUIntBE(0, 3)),
  }));
  const nonces = made.map(({ id }) => deriveNonce("bench", paymentKey({ merchantId, paymentId: id })));
  const ids = made.map(({ id }) => id);

  await Promise.all(
    made.map(({ id, amount }) => {
      const response_body = JSON.stringify({ paymentId: id, status: "requires_action" });
      const digest = createHash("sha256").update(id).digest();
      const row = {
        id,
        account_id: accountId,
        merchant_id: merchantId,
        mode,
        reference_id: `order-${id}`,
        description: null,
      };
      const values = { metadata: null, unit: "iso4217/USD", value: amount / 10_000n, checkout: null };
      const claim = { operation: "createPayment", key: id, digest, status: 201, response_body };
      return insertPayment(db, { ...row, ...values, created_at: at, expires_at, due_at: expires_at }, claim);
    }),
  );

  const valid_before = Math.floor(expires_at.getTime() / 1000) + 600;
  const movements = made.map(({ payer, amount }, index) => {
    return {
      chain,
      asset,
      token,
      payer,
      receiver: treasury,
      amount,
      authorization_nonce: nonces[index] ?? "0x",
      valid_before,
      kind: "eip3009" as const,
    };
  });
  const options = await Promise.all(
    made.map(async ({ id, optionId, payer }, index) => {
      const movement = movements[index];
      if (!movement) throw new Error("a payment has no movement");
      const quote = { fee: 0n, fee_fixed: 0n, fee_basis_points: 0, direct: false, rate: null, quoted_until: null };
      const owed = { owed_asset: null, owed_amount: null, needs_data: false, allowance: null };
      const row = {
        id: optionId,
        payment_id: id,
        number: 1,
        account: `${chain}:${payer}`,
        ...movement,
        ...quote,
        ...owed,
      };
      const [option] = await insertOptions(db, [{ ...row, created_at: at }]);
      if (!option) throw new Error("an option was not inserted");
      return { ...option, registered: null };
    }),
  );

  await Promise.all(
    ids.map((id) =>
      recordRequester(db, { id, requester: null, has_other_requesters: false }, { name: id.slice(-22), isOne: true }),
    ),
  );

  const signatures = made.map(() => hex(65));
  await Promise.all(
    made.map(({ id, attemptId, optionId }, index) => {
      const results = [{ type: "walletRpc", data: [signatures[index]] }];
      const digest = createHash("sha256").update(attemptId).digest();
      const row = { id: attemptId, payment_id: id, option_id: optionId, digest, results, verification: "key" as const };
      return insertKeyAttempt(db, { ...row, created_at: at, due_at: expires_at });
    }),
  );

  await db.transaction().execute(async (trx) => {
    const attempts = made.map(({ attemptId }) => attemptId);
    await moveRows(trx, "attempt", { ids: attempts, from: "waiting", to: "verified", at, set: { due_at: null } });
    const verified = options.map((option, index) => {
      const { id = "", attemptId = "" } = made[index] ?? {};
      return { id, attemptId, option };
    });
    if ((await moveToProcessing(trx, verified, at)).length !== count) throw new Error("a payment has not moved");
    const none = {
      settlement_id: null,
      permit: null,
      lane_id: null,
      lane_nonce: null,
      hold_until: null,
      last_error: null,
    };
    await insertTransfers(
      trx,
      made.map(({ id, transferId }, index) => {
        const signature = Buffer.from((signatures[index] ?? "").slice(2), "hex");
        const row = { id: transferId, purpose: "payment" as const, payment_id: id, ...none, due_at: expires_at };
        return { ...row, signature, ...(movements[index] as (typeof movements)[number]) };
      }),
      at,
    );
  });

  const transferIds = made.map(({ transferId }) => transferId);
  const hash = hex(32);
  await db.transaction().execute(async (trx) => {
    const gas = { gas_limit: 5_000_000n, max_fee_per_gas: 1n, max_priority_fee_per_gas: 1n };
    const row = { lane_id: laneId, nonce, chain, hash, bytes: randomBytes(300 * count), ...gas };
    await insertTransaction(trx, { ...row, state: "signed", created_at: at });
    const { rows: calls } = await sql<TransferCall>`
      select id, payer, receiver, amount, signature from transfer where id = any(${transferIds})`.execute(trx);
    if ((await assignTransfers(trx, { calls, laneId, nonce, at })).length !== count)
      throw new Error("a transfer was not assigned");
  });

  const block_id = hex(32);
  await db.transaction().execute(async (trx) => {
    const place = { chain, block_id, tx_hash: hash, block_number: block, token, receiver: treasury, observed_at: at };
    await insertObservations(
      trx,
      made.map(({ payer, amount, transferId }, index) => {
        const seen = { log_index: index, payer, amount, authorization_nonce: nonces[index] ?? null };
        return { ...place, ...seen, transfer_id: transferId };
      }),
    );
    const set = { due_at: null, hold_until: null, last_error: null };
    await moveRows(trx, "transfer", { ids: transferIds, from: "assigned", to: "included", at, set });
  });

  await db.transaction().execute(async (trx) => {
    const paying = await lockPaying(trx, ids);
    const confirmed = await confirmTransfers(trx, { ids: transferIds, upTo: block, at });
    const amounts = new Map(confirmed.map((one) => [one.payment_id, one.amount]));
    const amount = confirmed.reduce((sum, one) => sum + one.amount, 0n);
    await insertGroups(
      trx,
      confirmed.map((one) => ({
        kind: "payment",
        subject: one.id,
        entries: [
          { account: "treasury", asset, amount: one.amount },
          { account: `payable:${merchantId}`, asset, amount: -one.amount },
        ],
        onChain: { chain, block_number: block, block_id, tx_hash: hash, log_index: one.log_index },
      })),
      at,
    );
    await creditMerchants(trx, [{ merchantId, asset, amount, settlements: 0 }]);
    const paid = paying.map((payment) => {
      return { payment, txHash: hash, asset, amount: amounts.get(payment.id) ?? 0n, settlementId: null };
    });
    await moveToSucceeded(trx, paid, at);
  });

  const { rows: events } = await sql<{ id: string }>`
    select id from webhook_event where payment_id = any(${ids})`.execute(db);
  const outcome = { attemptsMade: 0, state: "delivered" as const, outcome: "200", sentAt: at, at, dueAt: null };
  await recordDeliveryAttempts(
    db,
    shop.endpointId,
    events.map(({ id }) => ({ id, ...outcome, responseType: "text/plain", responseBody: "ok" })),
  );
}
