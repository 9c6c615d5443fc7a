import type { Deposit } from "./records.ts";
import type { Store } from "./store.ts";

// Reads and writes which deposits only one endpoint has shown so far. Two endpoints agree on an asset's lone deposits in their order, so
// the sum of the others is a difference of two totals.

/**
 * A deposit that only one endpoint has shown. `treasury` received it, `recordedAt` is in Unix milliseconds. `isBySignedBytes`: the
 * signed bytes of its transaction say what moves, and the endpoint has shown only that they were executed.
 */
export type LoneDeposit = Deposit & {
  id: number;
  treasury: string;
  recordedAt: number;
  isBySignedBytes: boolean;
};

/** Records deposits as shown by one endpoint. Leaves out those that are recorded so already. Call it inside a transaction. */
export function insertLone(
  store: Store,
  lone: readonly { deposit: Deposit; treasury: string; isBySignedBytes: boolean }[],
): void {
  const find = store.prepare("select id from deposit where chain = ? and tx_hash = ? and log_index = ?");
  const insert = store.prepare(
    `insert into lone_deposit (deposit_id, treasury, asset, lone_total, by_signed_bytes) values (?, ?, ?, ?, ?)
      on conflict do nothing`,
  );
  for (const [asset, some] of Map.groupBy(lone, ({ deposit }) => deposit.asset)) {
    let total = readTotal(store, asset);
    for (const { deposit, treasury, isBySignedBytes } of some) {
      const { chain, txHash, logIndex, amount } = deposit;
      const id = Number(find.get(chain, txHash, logIndex)?.["id"]);
      const { changes } = insert.run(id, treasury, asset, String(total + amount), isBySignedBytes ? 1 : 0);
      if (changes === 1) total += amount;
    }
  }
}

/** Returns the sum of an asset's deposits that only one endpoint has shown, minor units. It does not decay with time. */
export function sumLone(store: Store, asset: string): bigint {
  const agreed = store.prepare("select lone_total from lone_deposit where id = ?").get(findAgreed(store, asset));
  return readTotal(store, asset) - toAmount(agreed?.["lone_total"]);
}

/** Returns the assets that have such deposits. */
export function listLoneAssets(store: Store): string[] {
  return store
    .prepare("select distinct asset from lone_deposit")
    .all()
    .map((row) => String(row["asset"]))
    .filter((asset) => listLone(store, { asset, limit: 1 }).length > 0);
}

/** Returns an asset's oldest deposits that only one endpoint has shown. */
export function listLone(store: Store, { asset, limit }: { asset: string; limit: number }): LoneDeposit[] {
  return store
    .prepare(`select lone.id as lone_id, lone.treasury, lone.by_signed_bytes, deposit.*
      from lone_deposit lone join deposit on deposit.id = lone.deposit_id
      where lone.asset = ? and lone.id > ? order by lone.id limit ?`)
    .all(asset, findAgreed(store, asset), limit)
    .map((row) => ({
      id: Number(row["lone_id"]),
      chain: String(row["chain"]),
      txHash: String(row["tx_hash"]),
      logIndex: Number(row["log_index"]),
      asset,
      amount: toAmount(row["amount"]),
      payer: String(row["payer"]),
      merchantId: String(row["merchant_id"]),
      paymentId: String(row["payment_id"]),
      blockNumber: Number(row["block_number"]),
      treasury: String(row["treasury"]),
      recordedAt: Number(row["verified_at"]),
      isBySignedBytes: row["by_signed_bytes"] === 1,
    }));
}

/** Records that two endpoints have shown an asset's lone deposits up to this one. */
export function insertAgreement(store: Store, { asset, id }: { asset: string; id: number }, at: Date): void {
  store.prepare("insert into deposit_agreement (asset, lone_id, at) values (?, ?, ?)").run(asset, id, at.getTime());
}

/** Returns the last lone deposit of an asset up to which two endpoints agree; 0 if there is none. */
function findAgreed(store: Store, asset: string): number {
  const row = store
    .prepare("select lone_id from deposit_agreement where asset = ? order by id desc limit 1")
    .get(asset);
  return Number(row?.["lone_id"] ?? 0);
}

/** Returns the sum of all lone deposits of an asset, also of those that a second endpoint has shown since. */
function readTotal(store: Store, asset: string): bigint {
  const last = store.prepare("select lone_total from lone_deposit where asset = ? order by id desc limit 1").get(asset);
  return toAmount(last?.["lone_total"]);
}

const toAmount = (value: unknown): bigint => (typeof value === "string" ? BigInt(value) : 0n);
