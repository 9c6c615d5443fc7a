import type { PaymentDeposit, SignedRefund } from "./rules.ts";
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

/** Returns the deposit at a place on the chain, whatever payment it belongs to; undefined if the store has none. */
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
  return readOnce(store, depositsOf({ merchantId, asset }), () => {
    const last = store
      .prepare("select merchant_total from deposit where merchant_id = ? and asset = ? order by id desc limit 1")
      .get(merchantId, asset);
    return toAmount(last?.["merchant_total"]);
  });
}

const depositsOf = ({ merchantId, asset }: { merchantId: string; asset: string }) => `deposits ${merchantId} ${asset}`;

/** Returns a sum, which is read once in a transaction. */
function readOnce(store: Store, key: string, read: () => bigint): bigint {
  const known = store.isTransaction ? store.sums.get(key) : undefined;
  if (known !== undefined) return known;
  const sum = read();
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
 * @param ofNewMerchant the window of all new merchants counts it
 */
export function insertPayout(
  store: Store,
  payout: AuthorizedPayout,
  at: Date,
  { isPast = false, ofNewMerchant = false } = {},
): void {
  const { nonce, kind, treasury, asset, amount, counted, receiver, merchantId, paymentId } = payout;
  const assetTotal = sumPayouts(store, { asset }) + (isPast ? 0n : counted);
  const merchantTotal = merchantId === null ? null : sumPayouts(store, { asset, merchantId }) + counted;
  const before = store.prepare("select signed_at from payout order by id desc limit 1").get()?.["signed_at"];
  if (typeof before === "number" && before > at.getTime())
    store.prepare("insert into clock_step (before_at, after_at) values (?, ?)").run(before, at.getTime());
  const { lastInsertRowid } = store
    .prepare(`insert into payout (nonce, kind, treasury, asset, amount, counted, receiver, merchant_id, payment_id, merchant_total,
      asset_total, signed_at) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
    .run(
      ...([nonce, kind, treasury, asset, String(amount), String(counted), receiver, merchantId, paymentId] as const),
      ...([merchantTotal === null ? null : String(merchantTotal), String(assetTotal), at.getTime()] as const),
    );
  if (ofNewMerchant) insertOfNewMerchant(store, { id: lastInsertRowid, asset, counted }, at);
  // A past payout changes the windows that were read.
  if (isPast) store.sums.clear();
  store.sums.set(payoutsOf({ asset }), assetTotal);
  if (merchantId !== null && merchantTotal !== null) store.sums.set(payoutsOf({ asset, merchantId }), merchantTotal);
}

function insertOfNewMerchant(
  store: Store,
  { id, asset, counted }: { id: number | bigint; asset: string; counted: bigint },
  at: Date,
): void {
  const total = sumPayouts(store, { asset, onlyNew: true }) + counted;
  store
    .prepare(
      "insert into new_merchant_payout (payout_id, asset, counted, asset_total, signed_at) values (?, ?, ?, ?, ?)",
    )
    .run(id, asset, String(counted), String(total), at.getTime());
  store.sums.set(payoutsOf({ asset, onlyNew: true }), total);
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

/** The payouts of an asset, or those of one merchant, or those of merchants that were new then. */
type Payer = { asset: string; merchantId?: string; onlyNew?: boolean };

/** Returns the sum of what was counted for payouts, minor units. */
function sumPayouts(store: Store, payer: Payer): bigint {
  return readOnce(store, payoutsOf(payer), () => {
    const { table, total, of, given } = scopeOf(payer);
    const last = store
      .prepare(`select ${total} as total from ${table} where ${of} order by id desc limit 1`)
      .get(...given);
    return toAmount(last?.["total"]);
  });
}

/** Returns the part of `sumPayouts` that was signed up to a time (inclusive), minor units. */
function sumPayoutsUntil(store: Store, payer: Payer, until: number): bigint {
  return readOnce(store, `${payoutsOf(payer)} ${until}`, () => {
    const { table, total, of, given } = scopeOf(payer);
    // While the clock goes forward, all rows before the first one after `until` are the ones up to it. So the total of that row tells
    // their sum, and a window costs the same however many payouts it has.
    if (wentBackSince(store, until)) {
      const later = store.prepare(`select counted from ${table} where ${of} and signed_at > ?`).all(...given, until);
      return later.reduce((sum, row) => sum - toAmount(row["counted"]), sumPayouts(store, payer));
    }
    const first = store
      .prepare(
        `select ${total} as total, counted from ${table} where ${of} and signed_at > ? order by signed_at, id limit 1`,
      )
      .get(...given, until);
    return first ? toAmount(first["total"]) - toAmount(first["counted"]) : sumPayouts(store, payer);
  });
}

/** Returns true if the clock went back from a time after `until`, so that the order of rows is not that of their times since then. */
function wentBackSince(store: Store, until: number): boolean {
  return store.prepare("select 1 from clock_step where before_at > ? limit 1").get(until) !== undefined;
}

const payoutsOf = (payer: Payer) => `${scopeOf(payer).table} ${payer.asset} ${payer.merchantId ?? ""}`;

/** Returns the table and the column of a payer's totals, and the condition of its rows. */
const scopeOf = ({ asset, merchantId, onlyNew = false }: Payer) =>
  merchantId === undefined
    ? { table: onlyNew ? "new_merchant_payout" : "payout", total: "asset_total", of: "asset = ?", given: [asset] }
    : { table: "payout", total: "merchant_total", of: "merchant_id = ? and asset = ?", given: [merchantId, asset] };

/** Returns the sum of what was counted for a merchant's payouts of an asset, minor units. */
export function sumMerchantPayouts(store: Store, of: { asset: string; merchantId: string }): bigint {
  return sumPayouts(store, of);
}

/**
 * Returns what was counted within a sliding window that ends now, minor units. What was signed while the clock was ahead counts until
 * the window has passed the time that the clock showed.
 */
export function sumWindow(store: Store, of: Payer, { at, windowMs }: { at: Date; windowMs: number }): bigint {
  return sumPayouts(store, of) - sumPayoutsUntil(store, of, at.getTime() - windowMs);
}

/** Returns the refunds of a payment in an asset that were signed. */
export function listRefunds(
  store: Store,
  of: { merchantId: string; paymentId: string; asset: string },
): SignedRefund[] {
  return store
    .prepare(
      "select nonce, receiver, amount, counted from payout where payment_id = ? and asset = ? and merchant_id = ?",
    )
    .all(of.paymentId, of.asset, of.merchantId)
    .map((row) => ({
      nonce: text(row["nonce"]),
      receiver: text(row["receiver"]),
      amount: toAmount(row["amount"]),
      counted: toAmount(row["counted"]),
    }));
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
