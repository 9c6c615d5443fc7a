import {
  listMerchantIds,
  listOpenings,
  listStatementRows,
  type MerchantOwner,
  type StatementOpening,
  type StatementPeriod,
  type StatementRow,
} from "../../db/queries/statement-lines.ts";
import type { Db } from "../../db/tables.ts";
import { spellAccount } from "../spell-address.ts";
import { accounts } from "./ledger-accounts.ts";

/** What a buyer paid, and the operator's part of it, in minor units of `asset`. */
export type PaidAmount = { asset: string; amount: bigint; fee: bigint };

/**
 * One line of a statement: a change of a merchant's balance in an asset, or the balance before the first day or after the
 * last one. Amounts in minor units of the asset.
 */
export type StatementLine = {
  merchantId: string;
  asset: string;
  /** Null for a balance: the line before or after all changes. */
  at: Date | null;
  kind: StatementRow["kind"] | "opening" | "closing";
  paymentId: string | null;
  /** Null for a line of another kind. */
  refundId: string | null;
  referenceId: string | null;
  description: string | null;
  metadata: Record<string, string> | null;
  /** The buyer's amount and the operator's fee; of payments in this asset only. */
  gross: bigint | null;
  fee: bigint | null;
  /** The same of a payment in another asset, in minor units of that asset. `change` is what it was converted to, without the fee. */
  paid: PaidAmount | null;
  /** The change of the balance. Negative for settlements and refunds. */
  change: bigint | null;
  balance: bigint;
  /** The receiver of a settlement or refund (CAIP-10), in its chain's own spelling. */
  to: string | null;
  /** The transaction that proves it; null while a payout or refund is in transit. */
  txHash: string | null;
};

/**
 * The place of a line, and the balance there, so that a page late in a statement reads nothing before it. `entry` is 0 for the opening
 * balance and null for the closing one.
 */
export type StatementPlace = { merchantId: string; asset: string; entry: number | null; balance: bigint };

/** Whose statement (one merchant, or all of an account that a key reaches), and its UTC days, both inclusive. */
export type StatementQuery = { merchant: string | MerchantOwner; from: string; until: string };

/** Lines and merchants that are read at a time. */
const PART = 500;
const MERCHANTS = 100;

/**
 * Yields a statement line by line: by merchant, asset, and booking, each asset between its opening and its closing balance.
 * Reads it in parts, so that its length needs no memory. Begins after a place when one is given.
 */
export async function* readStatementLines(
  { db }: { db: Db },
  { merchant, from, until }: StatementQuery,
  after?: StatementPlace,
): AsyncGenerator<{ line: StatementLine; place: StatementPlace }> {
  let place = after;
  for await (const merchantIds of readMerchants(db, merchant, after?.merchantId)) {
    const ofAccount = new Map(merchantIds.map((id) => [accounts.payable(id), id]));
    const openings = await listOpenings(db, { accounts: [...ofAccount.keys()], from, until });
    const isThere = (one: StatementOpening) =>
      ofAccount.get(one.account) === place?.merchantId && one.asset === place?.asset;
    // Postgres alone decides the order, so the place is found and not compared.
    const first = place ? openings.findIndex(isThere) : 0;
    for (const opening of openings.slice(Math.max(first, 0))) {
      const merchantId = ofAccount.get(opening.account) ?? "";
      const start = place && isThere(opening) ? place : undefined;
      if (start?.entry !== null) yield* readAsset(db, { merchantId, opening, from, until, start });
    }
    place = undefined;
  }
}

/** Yields the merchants of a statement in parts, from a merchant on. */
async function* readMerchants(
  db: Db,
  merchant: string | MerchantOwner,
  from: string | undefined,
): AsyncGenerator<string[]> {
  if (typeof merchant === "string") return yield [merchant];
  if (from !== undefined) yield [from];
  for (let after = from ?? ""; ; ) {
    const ids = await listMerchantIds(db, { ...merchant, after, limit: MERCHANTS });
    yield ids;
    const last = ids.at(-1);
    if (ids.length < MERCHANTS || last === undefined) return;
    after = last;
  }
}

type AssetArgs = {
  merchantId: string;
  opening: StatementOpening;
  from: string;
  until: string;
  /** The place after which to begin; unset: with the opening balance. */
  start: StatementPlace | undefined;
};

async function* readAsset(db: Db, { merchantId, opening, from, until, start }: AssetArgs) {
  const { account, asset } = opening;
  const period: StatementPeriod = { account, asset, from, until };
  const of = { merchantId, asset };
  const edge = (kind: "opening" | "closing", balance: bigint): StatementLine => ({ ...of, ...noChange, kind, balance });
  // A balance owed to the merchant is a credit, so its sign is inverted.
  let balance = start ? start.balance : -opening.before;
  if (!start) yield { line: edge("opening", balance), place: { ...of, entry: 0, balance } };
  for (let entry = start?.entry ?? 0; ; ) {
    const rows = await listStatementRows(db, { ...period, after: entry, limit: PART });
    for (const row of rows) {
      balance += row.change;
      entry = row.entry;
      yield { line: { ...of, ...toChange(row), balance }, place: { ...of, entry, balance } };
    }
    if (rows.length < PART) break;
  }
  yield { line: edge("closing", balance), place: { ...of, entry: null, balance } };
}

const noChange = {
  at: null,
  paymentId: null,
  refundId: null,
  referenceId: null,
  description: null,
  metadata: null,
  gross: null,
  fee: null,
  paid: null,
  change: null,
  to: null,
  txHash: null,
};

function toChange(row: StatementRow): Omit<StatementLine, "merchantId" | "asset" | "balance"> {
  const { payment_id: paymentId, refund_id: refundId, reference_id: referenceId, tx_hash: txHash, ...others } = row;
  const { paid_asset: asset, paid_amount: amount, paid_fee: fee, to, entry: _, ...rest } = others;
  const paid = asset === null || amount === null || fee === null ? null : { asset, amount, fee };
  return { paymentId, refundId, referenceId, txHash, paid, to: to && spellAccount(to), ...rest };
}
