import { type RawBuilder, sql } from "kysely";
import { type PaymentState, paymentStates } from "../states.ts";
import type { Mode } from "../tables.ts";

/** Selects the payments of a list. An undefined member does not narrow. */
export type PaymentFilter = {
  accountId: string;
  mode: Mode;
  /** The merchants that the caller's key is restricted to; null or unset: all of them. */
  onlyMerchants?: readonly string[] | null;
  merchantIds?: readonly string[] | undefined;
  from?: Date | undefined;
  before?: Date | undefined;
  states?: readonly PaymentState[] | undefined;
  chains?: readonly string[] | undefined;
  assets?: readonly string[] | undefined;
  /** A substring of the reference, without regard to case. */
  reference?: string | undefined;
  /** Values that the metadata has under these names. */
  metadata?: Readonly<Record<string, string>> | undefined;
};

/** Returns the merchants of a filter, each once, or undefined for all merchants of the account. */
export function merchantsOf({ onlyMerchants, merchantIds }: PaymentFilter): string[] | undefined {
  if (!onlyMerchants && !merchantIds) return undefined;
  const reached = new Set(onlyMerchants ?? merchantIds);
  return [...new Set(merchantIds ?? onlyMerchants)].filter((id) => reached.has(id));
}

/** Returns the states of a filter, each once. */
export const statesOf = ({ states }: PaymentFilter): PaymentState[] => [...new Set(states ?? paymentStates)];

/** SQL: the asset of a payment `p`, as the indexes of lists have it. Empty when no buyer has begun to pay. */
const assetOf = sql<string>`coalesce(p.asset, '')`;

const all = (conditions: readonly (RawBuilder<unknown> | undefined)[]) =>
  sql<boolean>`(${sql.join([sql`true`, ...conditions.filter((one) => one !== undefined)], sql` and `)})`;

/** SQL: a filter accepts this asset, which is empty when no buyer has begun to pay. */
export const acceptsAsset = (
  { chains, assets }: Pick<PaymentFilter, "chains" | "assets">,
  asset: RawBuilder<unknown>,
) => all([chains && sql`split_part(${asset}, '/', 1) = any(${chains})`, assets && sql`${asset} = any(${assets})`]);

/** SQL: a filter accepts the texts of a payment `p`. */
export const acceptsTexts = ({ reference, metadata }: PaymentFilter) =>
  all([
    reference === undefined ? undefined : sql`position(lower(${reference}) in lower(p.reference_id)) > 0`,
    metadata && sql`p.metadata @> ${JSON.stringify(metadata)}::jsonb`,
  ]);

/** SQL: a filter accepts the time of a payment `p`. */
export const acceptsTime = ({ from, before }: PaymentFilter) =>
  all([from && sql`p.created_at >= ${from}`, before && sql`p.created_at < ${before}`]);

/** SQL: a filter accepts the merchant of a payment `p`. */
export function acceptsMerchant(filter: PaymentFilter): RawBuilder<boolean> {
  const merchants = merchantsOf(filter);
  return merchants ? sql`p.merchant_id = any(${merchants})` : sql`true`;
}

/** SQL: a filter accepts a payment `p`. */
export function acceptsPayment(filter: PaymentFilter): RawBuilder<boolean> {
  return all([
    sql`p.account_id = ${filter.accountId} and p.mode = ${filter.mode}`,
    acceptsMerchant(filter),
    filter.states && sql`p.state = any(${statesOf(filter)})`,
    acceptsTime(filter),
    (filter.chains ?? filter.assets) && acceptsAsset(filter, assetOf),
    acceptsTexts(filter),
  ]);
}

/** Whose payments a list has: of accounts in a mode, or of merchants. `rows` is SQL with the columns `id` and `mode`. */
export type ListOwners = { by: "account" | "merchant"; rows: RawBuilder<unknown> };

/** Returns whose payments a filter selects. */
export function ownersOf(filter: PaymentFilter): ListOwners {
  const { accountId, mode } = filter;
  const merchants = merchantsOf(filter);
  if (!merchants) return { by: "account", rows: sql`select ${accountId}::text as id, ${mode}::text as mode` };
  const rows = sql`select id, mode from merchant where id = any(${merchants}) and account_id = ${accountId} and mode = ${mode}`;
  return { by: "merchant", rows };
}

/**
 * SQL: queries named `part` and `list`, to follow `with recursive`. `list` has a row for each part of an index that holds
 * payments of these owners and states: those of one state and asset, which the index orders by time. Postgres finds each
 * part by one step in the index.
 */
export function listParts(
  { by, rows }: ListOwners,
  states: readonly PaymentState[],
  filter: Pick<PaymentFilter, "chains" | "assets">,
): RawBuilder<unknown> {
  const firstAsset = (owner: string, condition: RawBuilder<unknown>) => sql`(
    select ${assetOf} as asset from payment p where ${isOwned(by, owner)} and ${condition} order by 1 limit 1)`;
  return sql`
    part (id, mode, state, asset) as (
      select m.id, m.mode, s.state, f.asset from (${rows}) m cross join unnest(${states}::text[]) s (state)
      cross join lateral ${firstAsset("m", sql`p.state = s.state`)} f
      union all
      select l.id, l.mode, l.state, n.asset from part l
      cross join lateral ${firstAsset("l", sql`p.state = l.state and ${assetOf} > l.asset`)} n
    ), list as (select * from part where ${acceptsAsset(filter, sql.ref("asset"))})`;
}

/** SQL: a payment `p` belongs to the row `l` of `list`. */
export const isInList = ({ by }: ListOwners) =>
  sql<boolean>`${isOwned(by, "l")} and p.state = l.state and ${assetOf} = l.asset`;

const isOwned = (by: ListOwners["by"], owner: string) =>
  by === "merchant"
    ? sql`p.merchant_id = ${sql.ref(`${owner}.id`)}`
    : sql`p.account_id = ${sql.ref(`${owner}.id`)} and p.mode = ${sql.ref(`${owner}.mode`)}`;
