import { randomBytes } from "node:crypto";
import { ensureLane } from "../../db/queries/lanes.ts";
import { insertPayment } from "../../db/queries/payments.ts";
import { linkSettlements } from "../../db/queries/settlement-links.ts";
import { insertSettlements } from "../../db/queries/settlements.ts";
import { insertTransfers } from "../../db/queries/transfers.ts";
import type { PaymentState } from "../../db/states.ts";
import type { Db, Mode, Pool } from "../../db/tables.ts";
import { newId } from "../../payments/ids.ts";

/** Functions that insert the rows a test needs but does not check. Each returns the ids of its rows. */

export const someAsset = `eip155:31337/erc20:0x${"a1".repeat(20)}`;
export const someChain = "eip155:31337";

const hex = (bytes: number): `0x${string}` => `0x${randomBytes(bytes).toString("hex")}`;

/** Inserts an account with one merchant. */
export async function insertMerchant(db: Db, mode: Mode = "live"): Promise<{ accountId: string; merchantId: string }> {
  const accountId = newId("acct", new Date());
  const merchantId = newId("mrch", new Date());
  const created_at = new Date();
  await db.insertInto("account").values({ id: accountId, name: "Shop", created_at }).execute();
  await db
    .insertInto("merchant")
    .values({
      id: merchantId,
      account_id: accountId,
      mode,
      name: "Shop",
      email: "shop@example.test",
      icon_url: null,
      logo_id: null,
      created_at,
      deleted_at: null,
    })
    .execute();
  return { accountId, merchantId };
}

/** Inserts a payment in any state that needs no further columns. */
export async function insertPaymentRow(
  db: Db,
  merchant: { accountId: string; merchantId: string },
  more: { state?: PaymentState; expiresAt?: Date; dueAt?: Date | null; mode?: Mode } = {},
): Promise<string> {
  const id = newId("pay", new Date());
  const expiresAt = more.expiresAt ?? new Date(Date.now() + 300_000);
  const row = {
    id,
    account_id: merchant.accountId,
    merchant_id: merchant.merchantId,
    mode: more.mode ?? ("live" as const),
    reference_id: null,
    description: null,
    metadata: null,
    unit: "iso4217/USD",
    value: 100n,
    state: "requires_action" as const,
    failure_code: null,
    checkout: null,
    tx_id: null,
    paid_asset: null,
    paid_amount: null,
    settlement_id: null,
    created_at: new Date(),
    updated_at: new Date(),
    expires_at: expiresAt,
    due_at: more.dueAt === undefined ? expiresAt : more.dueAt,
  };
  await insertPayment(db, row);
  const { state = "requires_action" } = more;
  const path = state === "requires_action" ? [] : state === "failed" ? (["processing", state] as const) : [state];
  for (const next of path) await db.updateTable("payment").set({ state: next }).where("id", "=", id).execute();
  return id;
}

/** Inserts payments, each of which has one event. */
export async function insertPaymentRows(
  db: Pool,
  merchant: { accountId: string; merchantId: string },
  { count, mode }: { count: number; mode: Mode },
): Promise<void> {
  await db.transaction().execute(async (own) => {
    for (let inserted = 0; inserted < count; inserted += 1) await insertPaymentRow(own, merchant, { mode });
  });
}

export type TransferFacts = {
  asset: string;
  token: string;
  payer: string;
  receiver: string;
  amount: bigint;
  authorization_nonce: string;
  valid_before: number;
  signature: Buffer;
  alone: boolean;
  due_at: Date | null;
};

/** Inserts a ready transfer and its processing payment. */
export async function insertTransferRow(
  db: Db,
  merchant: { accountId: string; merchantId: string },
  facts: Partial<TransferFacts> = {},
  at = new Date(),
): Promise<{ id: string; paymentId: string }> {
  const id = newId("trf", new Date());
  const paymentId = await insertPaymentRow(db, merchant, { state: "processing", dueAt: null });
  const row = {
    id,
    purpose: "payment" as const,
    payment_id: paymentId,
    settlement_id: null,
    chain: (facts.asset ?? someAsset).split("/")[0] as string,
    asset: someAsset,
    token: hex(20),
    payer: hex(20),
    receiver: hex(20),
    amount: 1n,
    authorization_nonce: hex(32),
    valid_before: 4_000_000_000,
    signature: randomBytes(65),
    lane_id: null,
    lane_nonce: null,
    hold_until: null,
    last_error: null,
    due_at: null,
    ...facts,
  };
  await insertTransfers(db, [row], at);
  return { id, paymentId };
}

/** Inserts a lane that no worker holds. */
export async function insertLaneRow(db: Db, chain = someChain): Promise<{ id: string; address: string }> {
  const address = hex(20);
  const id = `${chain}:${address}`;
  await ensureLane(db, { id, chain, address, nextNonce: 0 });
  return { id, address };
}

/** Inserts a due settlement and its payment. */
export async function insertSettlementRow(
  db: Db,
  merchant: { accountId: string; merchantId: string },
  more: { number?: number; amount?: bigint; asset?: string; dueAt?: Date } = {},
): Promise<string> {
  const id = newId("stl", new Date());
  const paymentId = await insertPaymentRow(db, merchant, { dueAt: null });
  const settlement = {
    id,
    merchantId: merchant.merchantId,
    mode: "live" as const,
    asset: more.asset ?? someAsset,
    number: more.number ?? 1,
    amount: more.amount ?? 1n,
    dueAt: more.dueAt ?? new Date(),
  };
  await insertSettlements(db, [settlement], new Date());
  await linkSettlements(db, [{ paymentId, settlementId: id }]);
  return id;
}

/** Returns a payment's settlement. Throws if it has none. */
export function findSettlementOf(db: Db, paymentId: string) {
  return db
    .selectFrom("settlement as s")
    .innerJoin("payment as p", "p.settlement_id", "s.id")
    .selectAll("s")
    .where("p.id", "=", paymentId)
    .executeTakeFirstOrThrow();
}

/** Inserts an option of a payment. */
export async function insertOptionRow(
  db: Db,
  paymentId: string,
  kind: "eip3009" | "push",
  facts: Partial<TransferFacts> & { chain?: string } = {},
): Promise<void> {
  await db
    .insertInto("payment_option")
    .values({
      id: `opt_${paymentId}`,
      payment_id: paymentId,
      kind,
      account: "eip155:31337:0x1",
      chain: "eip155:31337",
      asset: "a",
      token: "0x7",
      payer: "0x8",
      receiver: "0x9",
      amount: 1n,
      authorization_nonce: "n",
      valid_before: 1,
      created_at: new Date(),
      ...facts,
    })
    .execute();
}
