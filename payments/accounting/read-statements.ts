import { hasMerchant } from "../../db/queries/merchants.ts";
import { listMerchantBalances, type MerchantOwner } from "../../db/queries/statement-lines.ts";
import type { Db } from "../../db/tables.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import { toMoney } from "../lifecycle/read-payment.ts";
import type { Page } from "../pagination.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { type PaidAmount, readStatementLines, type StatementLine, type StatementPlace } from "./statement-lines.ts";

type Deps = Pick<PaymentDeps, "db" | "chains" | "assetUnits">;

/** How an asset is shown. `decimals` is null for an asset that no worker has reported. */
type AssetView = { asset: string; symbol: string; decimals: number | null };

/**
 * What a merchant is owed in an asset and has not been paid yet, minor units: `inTransit` in payouts that have begun and are not
 * final, and `amount` beside them.
 */
export type BalanceView = AssetView & { merchantId: string; amount: bigint; inTransit: bigint };

/** A line with how its assets are shown. */
export type StatementLineView = StatementLine & AssetView & { paid: (PaidAmount & AssetView) | null };

/** Whose statement or balances: those of one merchant, or of all that the caller's key reaches. */
export type StatementScope = MerchantOwner & { merchantId?: string | undefined };

/**
 * Returns what merchants are owed and have not been paid yet, by merchant and asset. Refuses with `merchant_not_found`, also
 * for a merchant of another account, and with `params_validation` an invalid cursor.
 */
export async function readBalances(
  deps: Deps,
  args: StatementScope & { cursor?: string | undefined; limit: number },
): Promise<Result<Page<BalanceView>>> {
  const refusal = await refuseUnknown(deps, args);
  if (refusal) return refusal;
  const { cursor, limit, ...scope } = args;
  const [merchant = "", asset = ""] = readPlace(cursor) ?? [];
  if (cursor !== undefined && !merchant) return badCursor();
  const rows = await listMerchantBalances(deps.db, { ...scope, after: [merchant, asset], limit: limit + 1 });
  const items = await Promise.all(
    rows.slice(0, limit).map(async (row) => {
      const { merchant_id: merchantId, amount, in_transit: inTransit } = row;
      return { merchantId, ...(await describeAsset(deps, row.asset)), amount, inTransit };
    }),
  );
  const last = rows.length > limit ? items.at(-1) : undefined;
  return done({ items, nextCursor: last ? toCursor([last.merchantId, last.asset]) : null });
}

/** Returns one page of a statement, in the order of `readStatementLines`. Refuses like `readBalances`. */
export async function readStatementPage(
  deps: Deps,
  args: StatementScope & { from: string; until: string; cursor?: string | undefined; limit: number },
): Promise<Result<Page<StatementLineView>>> {
  const refusal = await refuseUnknown(deps, args);
  if (refusal) return refusal;
  const { cursor, limit, from, until } = args;
  const [merchantId, asset, entry, balance, ...period] = readPlace(cursor) ?? [];
  const isPlace = merchantId !== undefined && asset !== undefined && entry !== undefined && balance !== undefined;
  // The balance is that of the period.
  if (cursor !== undefined && (!isPlace || period.join() !== [from, until].join())) return badCursor();
  const after = isPlace
    ? { merchantId, asset, entry: entry === "" ? null : Number(entry), balance: BigInt(balance) }
    : undefined;
  const reaches = !after || (await refuseUnknown(deps, { ...args, merchantId: after.merchantId })) === undefined;
  if (!reaches || (after && args.merchantId !== undefined && after.merchantId !== args.merchantId)) return badCursor();
  const items: StatementLineView[] = [];
  let last: StatementPlace | undefined;
  for await (const { line, place } of readStatementLines(deps, { merchant: toMerchant(args), from, until }, after)) {
    if (items.length === limit && last)
      return done({ items, nextCursor: toCursor([...placeTexts(last), from, until]) });
    items.push(await toLineView(deps, line));
    last = place;
  }
  return done({ items, nextCursor: null });
}

type StandIn = { db: Db; onUse(error: unknown): void };

/**
 * Yields every line of a statement, in the order of `readStatementLines`. Refuses like `readBalances`.
 * @param args.standIn the database that continues the statement when `deps.db`, a replica of it, fails; `onUse` gets the
 *   error then
 */
export async function openStatement(
  deps: Deps,
  { standIn, ...args }: StatementScope & { from: string; until: string; standIn?: StandIn },
): Promise<Result<AsyncGenerator<StatementLineView>>> {
  const refusal = await refuseUnknown(deps, args);
  if (refusal) return refusal;
  const query = { merchant: toMerchant(args), from: args.from, until: args.until };
  return done(
    (async function* () {
      let place: StatementPlace | undefined;
      async function* readFrom(db: Db) {
        for await (const read of readStatementLines({ db }, query, place)) {
          place = read.place;
          yield await toLineView(deps, read.line);
        }
      }
      try {
        yield* readFrom(deps.db);
      } catch (error) {
        if (standIn === undefined || standIn.db === deps.db) throw error;
        standIn.onUse(error);
        yield* readFrom(standIn.db);
      }
    })(),
  );
}

const toMerchant = ({ merchantId, ...owner }: StatementScope) => merchantId ?? owner;

async function refuseUnknown({ db }: Deps, { merchantId, ...owner }: StatementScope) {
  if (merchantId === undefined) return undefined;
  const { accountId, mode, onlyMerchants = null } = owner;
  const isOwn = await hasMerchant(db, { accountId, mode, onlyMerchants, merchantId, evenDeleted: true });
  return isOwn ? undefined : refuse("merchant_not_found", "no such merchant");
}

async function toLineView(deps: Deps, line: StatementLine): Promise<StatementLineView> {
  const paid = line.paid && { ...line.paid, ...(await describeAsset(deps, line.paid.asset)) };
  return { ...line, ...(await describeAsset(deps, line.asset)), paid };
}

async function describeAsset(deps: Deps, asset: string): Promise<AssetView> {
  const { display } = await toMoney(deps, `caip19/${asset}`, 0n);
  const isKnown = display.assetSymbol !== asset;
  return { asset, symbol: display.assetSymbol, decimals: isKnown ? display.decimals : null };
}

/** A caller who changes the balance in a cursor misleads only themselves. */
const placeTexts = ({ merchantId, asset, entry, balance }: StatementPlace) => [
  merchantId,
  asset,
  entry?.toString() ?? "",
  balance.toString(),
];
const toCursor = (place: readonly string[]) => Buffer.from(place.join("\n")).toString("base64url");

/** Returns the parts of a cursor; undefined for one that cannot be of these lists. */
function readPlace(cursor: string | undefined): string[] | undefined {
  const text = Buffer.from(cursor ?? "", "base64url").toString();
  return /^mrch_[0-9a-f]{32}\n[!-~]{1,256}(\n\d{0,15}\n-?\d{1,78}\n[-\d]{10}\n[-\d]{10})?$/.test(text)
    ? text.split("\n")
    : undefined;
}

const badCursor = () => refuse("params_validation", "cursor: expected the nextCursor of the page before");
