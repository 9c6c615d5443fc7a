export type HistoryAsset = {
  /** CAIP-2 */
  chain: string;
  token: string;
  /** The currency of the payments that are paid in it. It has six decimals. */
  currency: string;
  /** The part of all payments. */
  share: number;
};

/** `by time`: as payments/ids.ts makes them. `random`: 128 random bits, for comparison. */
export type IdForm = "by time" | "random";

type Plan = {
  ids: IdForm;
  payments: number;
  days: number;
  accounts: number;
  merchants: number;
  assets: readonly [HistoryAsset, ...HistoryAsset[]];
};

/** A statement with a title for the progress. */
type Statement = readonly [title: string, text: string];

/** The payments of one transaction of a lane. */
const PER_TRANSACTION = 8;

/**
 * Returns the statements that decide everything about each payment, as tables of the schema `history`. The statements that
 * fill the service's tables read these tables and decide nothing.
 */
export function planStatements(plan: Plan): Statement[] {
  return [
    ["functions", functionsFor(plan)],
    ["accounts and merchants", merchantsOf(plan)],
    ["payments", paymentsOf(plan)],
    ["transactions", transactions],
    ["settlements and refunds", payouts],
    ["ledger groups", groups],
  ];
}

/** `make_id` makes the id of a row from a text that names the row, in the form of payments/ids.ts. */
const functionsFor = ({ ids }: Plan) => `
  create schema history;
  create function history.make_id(prefix text, name text, at timestamptz) returns text language sql immutable
    return prefix || '_' || ${ids === "random" ? "" : "lpad(to_hex(floor(extract(epoch from at))::bigint), 8, '0') || "}right(md5(prefix || name), ${ids === "random" ? 32 : 24});
  create function history.make_hash(name text) returns text language sql immutable
    return '0x' || md5(name) || md5(name || '.');
  create function history.make_nonce(name text, at timestamptz) returns text language sql immutable
    return '0x' || ${ids === "random" ? "" : "lpad(to_hex(floor(extract(epoch from at))::bigint), 8, '0') || "}right(md5(name) || md5(name || '.'), ${ids === "random" ? 64 : 56});
  create function history.make_address(chain text, name text) returns text language sql immutable
    return case when chain like 'solana:%' then 'B' || translate(md5(name), '0', 'z') || 'xyz'
      else '0x' || md5(name) || left(md5(name || '.'), 8) end;
  create function history.settlement_id(merchant_id text, asset text, day date) returns text language sql immutable
    return history.make_id('stl', merchant_id || asset || day, day::timestamp at time zone 'UTC')`;

const quote = (text: string) => `'${text.replaceAll("'", "''")}'`;

function merchantsOf({ accounts, merchants, assets, days }: Plan): string {
  let below = 0;
  const rows = assets.map(({ chain, token, currency, share }, index) => {
    const from = below;
    below += share;
    const asset = chain.startsWith("solana:") ? `${chain}/token:${token}` : `${chain}/erc20:${token}`;
    const kind = chain.startsWith("solana:") ? "spl" : "eip3009";
    const until = index === assets.length - 1 ? 1.1 : below;
    return `(${from}, ${until}, ${[chain, asset, token, kind, `iso4217/${currency}`].map(quote).join(", ")})`;
  });
  return `
    create unlogged table history.asset as
    select *, history.make_address(chain, 'treasury') as treasury, history.make_id('lane', chain, now()) as lane_id
    from (values ${rows.join(", ")}) as a (low, high, chain, asset, token, kind, unit);
    create unlogged table history.merchant as
    select m, history.make_id('mrch', m::text, now()) as id, history.make_id('acct', a::text, now()) as account_id,
      history.make_id('whe', a::text, now()) as endpoint_id,
      a as account, now() - interval '${days + 1} days' + m * interval '1 second' as created_at
    from (select m, case when m % 5 = 4 and ${accounts} > 1 then 1 + (m / 5) % ${Math.max(accounts - 1, 1)} else 0 end as a
      from generate_series(0, ${merchants - 1}) m) as m`;
}

/**
 * Of 100 payments, 82 succeed, 13 expire, 3 are cancelled and 2 fail. Of the newest, one in 5,000 waits for its buyer and
 * one in 5,000 is in progress.
 */
function paymentsOf({ payments, days, merchants }: Plan): string {
  const open = Math.max(10, Math.round(payments / 5_000));
  const payers = Math.max(1, Math.round(payments / 3));
  return `
    select setseed(0.5);
    create unlogged table history.payment as
    with drawn as materialized (
      select n, now() - (${payments} - n + random()) * (interval '1 day' * ${days} / ${payments}) as at,
        case when n > ${payments - open} then 'requires_action' when n > ${payments - 2 * open} then 'processing'
          else (array['succeeded', 'expired', 'cancelled', 'failed'])[width_bucket(random(), array[0, 0.82, 0.95, 0.98])] end as state,
        floor(${merchants} * power(random(), 2))::int as m, random() as asset_draw,
        floor(100 * power(10, 3 * random()))::numeric as value,
        floor(${payers} * power(random(), 2))::int as payer_no, random() as extra
      from generate_series(1, ${payments}) n
    )
    select d.n, history.make_id('pay', d.n::text, d.at) as id, m.id as merchant_id, m.account_id, m.endpoint_id, d.at, d.state,
      a.chain, a.asset, a.token, a.kind, a.unit, a.treasury, a.lane_id, d.value, d.value * 10000 as amount,
      div(d.value * 10000, 100) as fee, d.payer_no, history.make_address(a.chain, 'payer' || d.payer_no) as payer, d.extra,
      history.make_id('opt', d.n::text, d.at) as option_id, history.make_id('att', d.n::text, d.at) as attempt_id,
      history.make_id('trf', d.n::text, d.at) as transfer_id, history.make_nonce(d.n::text, d.at) as authorization_nonce,
      case when d.state = 'requires_action' then now() + interval '5 minutes' else d.at + interval '5 minutes' end as expires_at,
      d.at + interval '30 seconds' as confirmed_at
    from drawn d join history.merchant m using (m) join history.asset a on d.asset_draw >= a.low and d.asset_draw < a.high
    order by d.n`;
}

/** Gives each succeeded payment its place on the chain: the payments of a transaction follow each other. */
const transactions = `
  create unlogged table history.succeeded as
  with numbered as (
    select *, (row_number() over (partition by chain order by n) - 1) / ${PER_TRANSACTION} as nonce,
      (row_number() over (partition by chain order by n) - 1) % ${PER_TRANSACTION} as log_index
    from history.payment where state = 'succeeded'
  )
  select *, history.make_hash(chain || ' transaction ' || nonce) as tx_hash,
    max(confirmed_at) over chains + interval '5 seconds' as succeeded_at,
    floor(extract(epoch from max(confirmed_at) over chains) / 2)::bigint as block_number
  from numbered window chains as (partition by chain, nonce) order by n;
  create unlogged table history.transaction as
  select chain, lane_id, nonce, min(tx_hash) as hash, min(block_number) as block_number, min(succeeded_at) as at,
    21000 + 45000 * count(*) as gas_used
  from history.succeeded group by chain, lane_id, nonce;
  analyze history.succeeded`;

/**
 * A settlement holds a day's payments of a merchant and asset. Those of today accumulate, all others are paid. One
 * succeeded payment in a hundred is refunded by half before its settlement is paid.
 */
const payouts = `
  create unlogged table history.refund as
  select n, history.make_id('rfnd', n::text, succeeded_at) as id, history.make_id('trf', 'refund' || n, succeeded_at) as transfer_id,
    id as payment_id, account_id, endpoint_id, merchant_id, chain, asset, token, kind, treasury, payer, div(amount, 2) as amount,
    succeeded_at + interval '1 minute' as at, history.make_hash('refund' || n) as tx_hash, block_number + 60 as block_number,
    history.settlement_id(merchant_id, asset, ledger_day_of(succeeded_at)) as settlement_id
  from history.succeeded where extra < 0.01;
  create unlogged table history.settlement as
  select history.settlement_id(s.merchant_id, s.asset, s.day) as id,
    history.make_id('trf', s.merchant_id || s.asset || s.day, min(s.succeeded_at)) as transfer_id, s.merchant_id, s.chain,
    s.asset, s.token, s.kind, s.treasury,
    row_number() over (partition by s.merchant_id, s.asset order by s.day)::int as number,
    sum(s.amount - s.fee - coalesce(r.amount, 0)) as amount, min(s.succeeded_at) as created_at,
    (s.day + 1)::timestamptz as closed_at, s.day < ledger_day_of(now()) as paid,
    history.make_hash('settlement' || s.merchant_id || s.asset || s.day) as tx_hash,
    floor(extract(epoch from (s.day + 1)::timestamptz) / 2)::bigint as block_number,
    history.make_address(s.chain, 'destination' || s.merchant_id) as destination
  from (select *, ledger_day_of(succeeded_at) as day from history.succeeded) s left join history.refund r using (n)
  group by s.merchant_id, s.chain, s.asset, s.token, s.kind, s.treasury, s.day`;

/**
 * Every ledger group with its entries, in the order of their times. One movement in 5,000 payments is unmatched, and the
 * operator has resolved all but the newest of these.
 */
const groups = `
  create unlogged table history.ledger_group as
  with given (kind, subject, chain, block_number, tx_hash, log_index, at, asset, accounts, amounts) as (
    select 'payment', transfer_id, chain, block_number, tx_hash, log_index, succeeded_at, asset,
      array['treasury', 'payable:' || merchant_id, 'fees'], array[amount, fee - amount, -fee] from history.succeeded
    union all
    select 'gas', chain || '/' || hash, chain, block_number, hash, null, at,
      chain || case when chain like 'solana:%' then '/slip44:501' else '/slip44:60' end,
      array['gas_spent', 'lane:' || lane_id], array[gas_used * 1000000, gas_used * -1000000] from history.transaction
    union all
    select 'refund_begun', id, null, null, null, null, at, asset, array['payable:' || merchant_id, 'in_transit'],
      array[amount, -amount] from history.refund
    union all
    select 'refund_paid', transfer_id, chain, block_number, tx_hash, 0, at + interval '1 minute', asset,
      array['in_transit', 'treasury'], array[amount, -amount] from history.refund
    union all
    select 'settlement_begun', id, null, null, null, null, closed_at, asset, array['payable:' || merchant_id, 'in_transit'],
      array[amount, -amount] from history.settlement where paid
    union all
    select 'settlement_paid', transfer_id, chain, block_number, tx_hash, 0, closed_at + interval '1 minute', asset,
      array['in_transit', 'treasury'], array[amount, -amount] from history.settlement where paid
    union all
    select 'unmatched', chain || '/' || tx_hash || '/99', chain, block_number, tx_hash, 99, succeeded_at, asset,
      array['treasury', 'exceptions'], array[amount, -amount] from history.succeeded where n % 5000 = 17
  )
  select row_number() over (order by at, kind, subject) as id, *,
    case when kind = 'unmatched' then at < now() - interval '7 days' end as resolved
  from given`;
