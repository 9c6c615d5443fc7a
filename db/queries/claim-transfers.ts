import { type RawBuilder, type Selectable, sql } from "kysely";
import { type EvmKind, type EvmRow, readEvmRow } from "../chain-families.ts";
import { transferColumns } from "../columns.ts";
import type { Db, Tables } from "../tables.ts";

type Row = Selectable<Tables["transfer"]>;

/** Contract wallets whose transfers a lane must not send now: these payers, and payers with these code hashes. */
type ExcludedWallets = { payers: readonly string[]; codes: readonly string[] };

/** Selects the transfers that a lane may send next. */
type ClaimArgs = {
  chain: string;
  laneId: string;
  kinds: readonly EvmKind[];
  now: Date;
  limit: number;
  mostInclusions: number;
  /** Payers with plain keys whose transfers a lane must not send now. */
  barred?: readonly string[];
  /** No transfer of a payer who has one in flight, whether one has failed or not. */
  oneEach?: boolean;
  /** Only transfers of contract wallets that are not excluded; when unset, only those of other payers. */
  wallets?: ExcludedWallets | undefined;
};

/**
 * Returns the transfers that `claimReady` would reserve, without writing to them. For the only lane that takes transfers
 * like these: its lease is the reservation. Should another lane take one of them, then one of the two cannot assign it.
 */
export async function listClaimable(db: Db, args: ClaimArgs): Promise<EvmRow<Row>[]> {
  const { rows } = await sql<Row>`
    select ${columnsOfTransfer("t")} ${isClaimable(args)} order by ${claimOrder("t")} limit ${args.limit}`.execute(db);
  return rows.map(readEvmRow);
}

/** SQL: the columns of a transfer. */
const columnsOfTransfer = (table: string) => sql.join(transferColumns.map((column) => sql.ref(`${table}.${column}`)));

function isClaimable({ wallets, barred = [], oneEach = false, ...args }: ClaimArgs): RawBuilder<unknown> {
  const ofWallets = wallets
    ? sql`t.smart_wallet and t.payer <> all(${wallets.payers}) and coalesce(t.code_hash, '') <> all(${wallets.codes})`
    : sql`not t.smart_wallet and t.payer <> all(${barred})`;
  return sql`from transfer t
      where t.chain = ${args.chain} and t.state = 'ready' and t.kind = any(${args.kinds}) and (t.hold_until is null or t.hold_until <= ${args.now})
        and ${ofWallets}
        and (t.purpose <> 'payment' or t.payer <> all(array(${payersInFlight(args.chain, oneEach)})))
        and (t.purpose <> 'payment' or t.retries > 0 or not ${hasSeparated(args)})
        and not (t.alone and t.purpose = 'payment'
          and (select count(*) from burned_gas b where b.transfer_id = t.id) >= ${args.mostInclusions})
        and (t.lane_id = ${args.laneId} or ${isUnreserved("t")})`;
}

/**
 * SQL: payers who have a transfer in flight and, unless `all`, another one that has failed. Their transfers wait: the money that
 * a simulation finds may be what the transfer in flight takes.
 */
function payersInFlight(chain: string, all: boolean): RawBuilder<unknown> {
  const inFlight = sql`select o.payer from transfer o where o.chain = ${chain} and o.state = 'assigned'`;
  if (all) return inFlight;
  return sql`${inFlight} and o.payer in (
    select f.payer from transfer f where f.chain = ${chain} and f.state = 'ready' and f.retries > 0)`;
}

/**
 * SQL: the payer of `t` has a transfer that failed beside others, and whose wait is over. Their newer transfers wait until it is sent
 * or fails again: otherwise it would expire unsent while its payer goes on paying. Postgres hashes this subquery, but no array:
 * strangers' keys can have thousands of such transfers.
 */
function hasSeparated({ chain, now }: Pick<ClaimArgs, "chain" | "now">): RawBuilder<unknown> {
  return sql`exists (
    select from transfer s
    where s.chain = ${chain} and s.payer = t.payer and s.state = 'ready' and s.retries > 0 and s.alone and s.purpose = 'payment'
      and (s.hold_until is null or s.hold_until <= ${now}))`;
}

/**
 * SQL: the order in which transfers are sent, that of the index `transfer_ready`. Transfers that have failed come after all others:
 * a stranger can sign for thousands of accounts and empty these, a merchant's destination can be on the block list of a token, and
 * each failure takes a simulation and several statements. Refunds come after payments and payouts: a merchant can make several of
 * each payment, and would otherwise hold up the money of others with them.
 */
export function claimOrder(transfer: string): RawBuilder<unknown> {
  const column = (name: keyof Row) => sql.ref(`${transfer}.${name}`);
  return sql`(${column("retries")} > 0), (${column("purpose")} = 'refund'), ${column("created_at")}, ${column("id")}`;
}

function compareClaims(a: EvmRow<Row>, b: EvmRow<Row>): number {
  const failed = Number(a.retries > 0) - Number(b.retries > 0);
  const refund = Number(a.purpose === "refund") - Number(b.purpose === "refund");
  return failed || refund || a.created_at.getTime() - b.created_at.getTime() || (a.id < b.id ? -1 : 1);
}

/** SQL: no lane that a worker holds has reserved the transfer. The end of a lane's lease frees its transfers. */
export function isUnreserved(transfer: string): RawBuilder<boolean> {
  const laneId = sql.ref(`${transfer}.lane_id`);
  return sql`(${laneId} is null or not exists (select from lane l where l.id = ${laneId} and l.lease_until > clock_timestamp()))`;
}

/**
 * Reserves for a lane the transfers that it may send next, in the order of `claimOrder`. Skips transfers that wait for a retry, and
 * transfers that are reserved for another leased lane; the end of that lease frees them. Skips the transfers of barred payers, and
 * a buyer's transfer that was included `mostInclusions` times without moving money (transfers/evm/end-fruitless.ts ends both).
 */
export async function claimReady(db: Db, args: ClaimArgs): Promise<EvmRow<Row>[]> {
  const { rows } = await sql<Row>`
    update transfer set lane_id = ${args.laneId} where id in (
      select t.id ${isClaimable(args)} order by ${claimOrder("t")} limit ${args.limit} for update skip locked
    )
    returning ${columnsOfTransfer("transfer")}`.execute(db);
  return rows.map(readEvmRow).toSorted(compareClaims);
}
