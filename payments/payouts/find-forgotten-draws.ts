import { deriveNonce, refundKey } from "../../chains/natural-key.ts";
import { listUnresolvedPayouts, type PayoutAccount } from "../../db/queries/payout-nonces.ts";
import {
  listCustomersAmong,
  listPaymentsOfCustomers,
  type RefundablePayment,
} from "../../db/queries/possible-refunds.ts";
import { listRefunds } from "../../db/queries/refunds.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import type { BalanceKey } from "./group-by-balance.ts";

/** How many refunds of a payment beyond those that the database knows are looked for on the chain. */
export const LATER_NUMBERS = 16;

/** Returns the accounts whose movements may be payouts that a restored database has lost: the treasuries of all chains. */
export function listTreasuries({ chains }: Pick<PaymentDeps, "chains">): PayoutAccount[] {
  return [...chains.values()].map(({ chain, treasury }) => ({ chain, payer: treasury }));
}

/** Returns how much refunds that the database does not know have drawn on a balance, minor units. */
export type DrawnOf = (balance: BalanceKey) => bigint;

/**
 * Finds out on which balances of these merchants refunds have drawn that a restored database does not know. The chain shows that the
 * buyer has the money, and the database says that the merchant is still owed it. Such a refund is recognized by its nonce: the service
 * derives those of the payments whose payer received the movement, whenever they were settled, on whatever chain they were paid.
 *
 * What a refund has drawn that has begun again does not count: it is adopted, and only what it has sent beyond that is yet to be drawn.
 * A refund does not count either once an operator has resolved its exception, because the operator has decided who bears it. Call this
 * only when there are unclaimed payouts.
 */
export async function findForgottenDraws(
  deps: Pick<PaymentDeps, "db" | "chains" | "networks" | "log">,
  merchantIds: readonly string[],
): Promise<DrawnOf> {
  const made = await listUnresolvedPayouts(deps.db, listTreasuries(deps));
  // A withdrawal of the operator's capital stays unclaimed for ever, and must not make each payout dearer.
  if (made.length === 0) return () => 0n;
  const addresses = [...new Set(made.map(({ receiver }) => receiver))];
  const payers = await listCustomersAmong(deps.db, { merchantIds, addresses });
  if (payers.length === 0) return () => 0n;
  const byNonce = new Map(made.map((one) => [`${one.chain} ${one.nonce}`, one]));
  const drawn = new Map<string, bigint>();
  for (const payment of await listPaymentsOfCustomers(deps.db, { merchantIds, payers })) {
    const { merchant_id: merchantId, chain, highest } = payment;
    for (let number = 1; number <= highest + LATER_NUMBERS; number += 1) {
      const key = refundKey({ merchantId, paymentId: payment.id, number });
      const refund = byNonce.get(`${chain} ${deriveNonce(deps.networks.deployment, key)}`);
      if (!refund) continue;
      const name = nameBalance({ merchantId, asset: payment.owed_asset ?? payment.paid_asset });
      const undrawn = await readUndrawn(deps, { payment, number, sent: refund.amount });
      drawn.set(name, (drawn.get(name) ?? 0n) + toOwed(payment, undrawn));
    }
  }
  return (balance) => drawn.get(nameBalance(balance)) ?? 0n;
}

const nameBalance = ({ merchantId, asset }: BalanceKey) => `${merchantId} ${asset}`;

/** A refund that the chain shows. `sent` is in minor units of the asset that was paid. */
type SentRefund = { payment: RefundablePayment; number: number; sent: bigint };

/** Returns the part of a refund that is not drawn in the database, and logs a refund that it does not know at all. */
async function readUndrawn(
  { db, log }: Pick<PaymentDeps, "db" | "log">,
  { payment, number, sent }: SentRefund,
): Promise<bigint> {
  const row = (await listRefunds(db, payment.id)).find((one) => one.number === number);
  const isKnown = row?.state === "paying" || row?.state === "paid";
  if (isKnown) return sent > row.amount ? sent - row.amount : 0n;
  // It was requested again and has not begun. The settlements wait for it anyway.
  if (row?.state === "due") return sent;
  const facts = { merchant: payment.merchant_id, payment: payment.id, number, amount: String(sent) };
  log.error(
    { ...facts, asset: payment.paid_asset },
    "payouts wait: the chain shows a refund that the database lacks; request it again",
  );
  return sent;
}

/** Returns what a refund of this amount draws on the merchant's balance. The trigger `refund_place` computes the same. */
function toOwed({ paid_amount, fee, owed_amount }: RefundablePayment, amount: bigint): bigint {
  const net = (paid_amount ?? 0n) - fee;
  return owed_amount === null || net <= 0n ? amount : (owed_amount * amount + net - 1n) / net;
}
