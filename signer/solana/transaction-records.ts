import type { Store } from "../store.ts";

// Reads and writes the store's records of transactions that the treasury signed on Solana.

/** A transaction that was signed for a payout, and the value of the durable nonce with which it can be included. */
export type SignedTransaction = { id: number; nonceAccount: string; nonce: string; slot: number; signedAt: number };

/**
 * Returns true if this payout was authorized, with exactly this treasury, amount and receiver. Withdrawals are not among them:
 * no worker decides which of two approvals of one reference is used.
 */
export function isAuthorized(
  store: Store,
  of: { nonce: string; treasury: string; asset: string; amount: bigint; receiver: string },
): boolean {
  const found = store
    .prepare(
      `select 1 from payout where nonce = ? and treasury = ? and asset = ? and amount = ? and receiver = ?
        and kind <> 'withdrawal' limit 1`,
    )
    .get(of.nonce, of.treasury, of.asset, String(of.amount), of.receiver);
  return found !== undefined;
}

/** Returns the nonces of the withdrawals of a treasury. */
export function listWithdrawals(store: Store, { treasury }: { treasury: string }): string[] {
  return store
    .prepare("select distinct nonce from payout where kind = 'withdrawal' and treasury = ?")
    .all(treasury)
    .map((row) => String(row["nonce"]));
}

/** Records that a transaction is signed which can make the payout of a marker. Call it inside a transaction. */
export function insertTransaction(
  store: Store,
  of: { chain: string; marker: string; nonceAccount: string; nonce: string; slot: number },
  at: Date,
): void {
  store
    .prepare(`insert into payout_transaction (chain, marker, nonce_account, nonce, slot, signed_at) values (?, ?, ?, ?, ?, ?)
      on conflict do nothing`)
    .run(of.chain, of.marker, of.nonceAccount, of.nonce, of.slot, at.getTime());
}

/** Returns the transactions that were signed for the payout of a marker. */
export function listTransactions(
  store: Store,
  { chain, marker }: { chain: string; marker: string },
): SignedTransaction[] {
  return store
    .prepare(
      "select id, nonce_account, nonce, slot, signed_at from payout_transaction where chain = ? and marker = ? order by id",
    )
    .all(chain, marker)
    .map((row) => ({
      id: Number(row["id"]),
      nonceAccount: String(row["nonce_account"]),
      nonce: String(row["nonce"]),
      slot: Number(row["slot"]),
      signedAt: Number(row["signed_at"]),
    }));
}

/** Returns true if a transaction was signed that can be included with this value of a durable nonce. */
export function isNonceRecorded(
  store: Store,
  { chain, nonceAccount, nonce }: { chain: string; nonceAccount: string; nonce: string },
): boolean {
  const found = store
    .prepare("select 1 from payout_transaction where chain = ? and nonce_account = ? and nonce = ? limit 1")
    .get(chain, nonceAccount, nonce);
  return found !== undefined;
}

/**
 * Records that a transaction is signed which closes a marker. Its payout is never signed again.
 * @param of.slot the final slot in which the payout was made, or a later one
 */
export function insertClosing(store: Store, of: { chain: string; marker: string; slot: number }, at: Date): void {
  store
    .prepare("insert into closed_marker (chain, marker, slot, signed_at) values (?, ?, ?, ?) on conflict do nothing")
    .run(of.chain, of.marker, of.slot, at.getTime());
}

/** Returns the slot of a closing if a transaction was signed that closes the marker. */
export function findClosing(
  store: Store,
  { chain, marker }: { chain: string; marker: string },
): { slot: number } | undefined {
  const row = store.prepare("select slot from closed_marker where chain = ? and marker = ?").get(chain, marker);
  return row && { slot: Number(row["slot"]) };
}
