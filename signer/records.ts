import type { SQLOutputValue } from "node:sqlite";
import type { PaymentDeposit } from "./rules.ts";
import type { Store } from "./store.ts";

// Reads and writes the store's deposits and payouts. Amounts are texts there, because SQLite's integers have 64 bits.

/** A deposit that the chain has shown to be final. `chain` is CAIP-2, `payer` in the canonical form of the chain. */
export type Deposit = {
  chain: string;
  txHash: string;
  logIndex: number;
  asset: string;
  amount: bigint;
  payer: string;
  merchantId: string;
  paymentId: string;
  blockNumber: number;
};

/** Returns true if the store has a deposit at a place on the chain, whatever payment it belongs to. */
export function findDeposit(
  store: Store,
  { chain, txHash, logIndex }: Pick<Deposit, "chain" | "txHash" | "logIndex">,
): { merchantId: string; paymentId: string; asset: string } | undefined {
  const row = store
    .prepare("select merchant_id, payment_id, asset from deposit where chain = ? and tx_hash = ? and log_index = ?")
    .get(chain, txHash, logIndex);
  return row && { merchantId: text(row["merchant_id"]), paymentId: text(row["payment_id"]), asset: text(row["asset"]) };
}

/** Records deposits. A log that was recorded before stays as it is. Call it inside a transaction. */
export function insertDeposits(store: Store, deposits: readonly Deposit[], at: Date): void {
  const insert =
    store.prepare(`insert into deposit (chain, tx_hash, log_index, asset, amount, payer, merchant_id, payment_id,
    block_number, merchant_total, verified_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    on conflict (chain, tx_hash, log_index) do nothing`);
  for (const some of Map.groupBy(deposits, ({ merchantId, asset }) => `${merchantId} ${asset}`).values()) {
    let total = some[0] ? sumDeposits(store, some[0]) : 0n;
    for (const { chain, txHash, logIndex, asset, amount, payer, merchantId, paymentId, blockNumber } of some) {
      const paid = [asset, String(amount), payer, merchantId, paymentId, blockNumber, String(total + amount)] as const;
      if (insert.run(chain, txHash, logIndex, ...paid, at.getTime()).changes === 1) total += amount;
    }
    if (some[0]) store.sums.set(depositsOf(some[0]), total);
  }
}

/** Returns the places on chain of all deposits. */
export function listDepositPlaces(store: Store): Pick<Deposit, "chain" | "txHash" | "logIndex">[] {
  return store
    .prepare("select chain, tx_hash, log_index from deposit")
    .all()
    .map((row) => ({ chain: text(row["chain"]), txHash: text(row["tx_hash"]), logIndex: Number(row["log_index"]) }));
}

/** Returns the sum of a merchant's deposits of an asset, minor units. */
export function sumDeposits(store: Store, { merchantId, asset }: { merchantId: string; asset: string }): bigint {
  return readOnce(store, depositsOf({ merchantId, asset }), () =>
    store
      .prepare(
        "select merchant_total as total from deposit where merchant_id = ? and asset = ? order by id desc limit 1",
      )
      .get(merchantId, asset),
  );
}

const depositsOf = ({ merchantId, asset }: { merchantId: string; asset: string }) => `deposits ${merchantId} ${asset}`;

/** Returns a sum, which is read once in a transaction. */
function readOnce(store: Store, key: string, read: () => Record<string, SQLOutputValue> | undefined): bigint {
  const known = store.isTransaction ? store.sums.get(key) : undefined;
  if (known !== undefined) return known;
  const sum = toAmount(read()?.["total"]);
  store.sums.set(key, sum);
  return sum;
}

/** Returns the deposits of a payment in an asset. */
export function listPaymentDeposits(
  store: Store,
  of: { merchantId: string; paymentId: string; asset: string },
): PaymentDeposit[] {
  return store
    .prepare("select payer, amount from deposit where payment_id = ? and asset = ? and merchant_id = ?")
    .all(of.paymentId, of.asset, of.merchantId)
    .map((row) => ({ payer: text(row["payer"]), amount: toAmount(row["amount"]) }));
}

/** A payout that is authorized now. Refunds name their payment; returns and capital have no merchant. */
export type AuthorizedPayout = {
  nonce: string;
  kind: string;
  treasury: string;
  asset: string;
  amount: bigint;
  counted: bigint;
  receiver: string;
  merchantId: string | null;
  paymentId: string | null;
};

/**
 * Records a payout before its signature is made. Call it inside a transaction.
 * @param isPast for a payout of the chain's history: the windows of the asset's limits do not count it
 */
export function insertPayout(store: Store, payout: AuthorizedPayout, at: Date, { isPast = false } = {}): void {
  const { nonce, kind, treasury, asset, amount, counted, receiver, merchantId, paymentId } = payout;
  const assetTotal = sumPayouts(store, { asset }) + (isPast ? 0n : counted);
  const merchantTotal = merchantId === null ? null : sumPayouts(store, { asset, merchantId }) + counted;
  store
    .prepare(`insert into payout (nonce, kind, treasury, asset, amount, counted, receiver, merchant_id, payment_id, merchant_total,
      asset_total, signed_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
    .run(
      ...([nonce, kind, treasury, asset, String(amount), String(counted), receiver, merchantId, paymentId] as const),
      ...([merchantTotal === null ? null : String(merchantTotal), String(assetTotal), at.getTime()] as const),
    );
  // A past payout changes the windows that were read.
  if (isPast) store.sums.clear();
  store.sums.set(payoutsOf({ asset }), assetTotal);
  if (merchantId !== null && merchantTotal !== null) store.sums.set(payoutsOf({ asset, merchantId }), merchantTotal);
}

/** Returns the highest amount that was authorized for a nonce; 0 if none was. */
export function findAuthorized(store: Store, { nonce, asset }: { nonce: string; asset: string }): bigint {
  const rows = store.prepare("select counted from payout where nonce = ? and asset = ?").all(nonce, asset);
  return rows.reduce((sum, row) => sum + toAmount(row["counted"]), 0n);
}

/** Returns true if a return may have been authorized. A rebuild cannot tell what some payouts of the chain's history were for. */
export function mayHaveReturns(store: Store): boolean {
  const found = store.prepare("select 1 from payout where kind not in ('settlement', 'refund') limit 1").get();
  return found !== undefined;
}

/** Returns true if exactly this payout was authorized: a nonce can have several receivers and amounts, of which the chain makes one. */
export function wasAuthorized(
  store: Store,
  of: Pick<AuthorizedPayout, "nonce" | "treasury" | "asset" | "amount" | "receiver">,
): boolean {
  const found = store
    .prepare(
      "select 1 from payout where nonce = ? and treasury = ? and asset = ? and amount = ? and receiver = ? limit 1",
    )
    .get(of.nonce, of.treasury, of.asset, String(of.amount), of.receiver);
  return found !== undefined;
}

/** Returns the assets in which payouts of a nonce were authorized for a treasury. */
export function listAuthorizedAssets(store: Store, of: { nonce: string; treasury: string }): string[] {
  return store
    .prepare("select distinct asset from payout where nonce = ? and treasury = ?")
    .all(of.nonce, of.treasury)
    .map((row) => text(row["asset"]));
}

/** Returns true if a payout was authorized for another treasury, which has the same nonces. */
export function isOfOtherTreasury(
  store: Store,
  { nonce, asset, treasury }: { nonce: string; asset: string; treasury: string },
): boolean {
  const found = store
    .prepare("select 1 from payout where nonce = ? and asset = ? and treasury <> ? limit 1")
    .get(nonce, asset, treasury);
  return found !== undefined;
}

/** Returns true if a payout was recorded for this treasury. */
export function isOfTreasury(
  store: Store,
  { nonce, asset, treasury }: { nonce: string; asset: string; treasury: string },
): boolean {
  const found = store
    .prepare("select 1 from payout where nonce = ? and asset = ? and treasury = ? limit 1")
    .get(nonce, asset, treasury);
  return found !== undefined;
}

/** The payouts of an asset, or those of one merchant. */
type Payer = { asset: string; merchantId?: string };

/** Returns the sum of what was counted for payouts up to a time (inclusive), or of all, minor units. */
function sumPayouts(store: Store, payer: Payer, until?: Date): bigint {
  return readOnce(store, payoutsOf(payer, until), () => findTotal(store, payer, until));
}

const payoutsOf = ({ asset, merchantId = "" }: Payer, until?: Date) =>
  `payouts ${asset} ${merchantId} ${until?.getTime() ?? ""}`;

function findTotal(store: Store, { asset, merchantId }: Payer, until: Date | undefined) {
  const [column, where] = merchantId === undefined ? ["asset_total", ""] : ["merchant_total", "and merchant_id = ?"];
  const time = until === undefined ? "" : "and signed_at <= ?";
  const given = [...(merchantId === undefined ? [] : [merchantId]), ...(until === undefined ? [] : [until.getTime()])];
  return store
    .prepare(`select ${column} as total from payout where asset = ? ${where} ${time}
      order by ${until === undefined ? "" : "signed_at desc,"} id desc limit 1`)
    .get(asset, ...given);
}

/** Returns the sum of what was counted for a merchant's payouts of an asset, minor units. */
export function sumMerchantPayouts(store: Store, of: { asset: string; merchantId: string }): bigint {
  return sumPayouts(store, of);
}

/** Returns what was counted within a sliding window that ends now, minor units. */
export function sumWindow(store: Store, of: Payer, { at, windowMs }: { at: Date; windowMs: number }): bigint {
  return sumPayouts(store, of) - sumPayouts(store, of, new Date(at.getTime() - windowMs));
}

/** Returns what was counted for refunds of a payment in an asset, minor units. */
export function sumRefunds(store: Store, of: { merchantId: string; paymentId: string; asset: string }): bigint {
  return store
    .prepare("select counted from payout where payment_id = ? and asset = ? and merchant_id = ?")
    .all(of.paymentId, of.asset, of.merchantId)
    .reduce((sum, row) => sum + toAmount(row["counted"]), 0n);
}

/** Returns the payments that have a deposit, each with its merchant. */
export function listClaimedPayments(store: Store): { merchantId: string; paymentId: string }[] {
  return store
    .prepare("select distinct merchant_id, payment_id from deposit order by merchant_id, payment_id")
    .all()
    .map((row) => ({ merchantId: text(row["merchant_id"]), paymentId: text(row["payment_id"]) }));
}

/** Returns how many rows the store has, for its operator. */
export function countRecords(store: Store): { deposits: number; payouts: number } {
  const row = store
    .prepare("select (select count(*) from deposit) as deposits, (select count(*) from payout) as payouts")
    .get();
  return { deposits: Number(row?.["deposits"]), payouts: Number(row?.["payouts"]) };
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");
const toAmount = (value: unknown): bigint => (typeof value === "string" ? BigInt(value) : 0n);
