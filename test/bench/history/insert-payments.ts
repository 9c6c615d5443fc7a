/** A statement that fills a table of the service. */
export type Insert = readonly [table: string, text: string];

/** Fills the tables of payments and of what buyers and lanes did for them. */
export const insertPaymentStatements: Insert[] = [
  [
    "payment",
    `insert into payment (id, account_id, merchant_id, mode, reference_id, description, metadata, unit, value, state,
       state_version, failure_code, cancelled_reason, option_id, asset, tx_id, paid_asset, paid_amount, fee, settlement_id,
       requester, created_at, updated_at, expires_at, due_at)
     select p.id, p.account_id, p.merchant_id, 'live', case when p.n % 10 > 0 then 'order-' || p.n end,
       case when p.n % 3 = 0 then 'Order ' || p.n || ', two articles' end,
       case when p.n % 5 = 0 then jsonb_build_object('customer', 'c' || p.payer_no, 'channel', 'shop') end,
       p.unit, p.value, p.state,
       case p.state when 'succeeded' then 2 when 'failed' then 2 when 'requires_action' then 0 else 1 end,
       case p.state when 'failed' then 'declined_user' end, case p.state when 'cancelled' then 'cancelled_by_merchant' end,
       case when p.state in ('succeeded', 'failed', 'processing') then p.option_id end,
       case when p.state in ('succeeded', 'failed', 'processing') then p.asset end,
       s.tx_hash, case when s.n is not null then p.asset end, s.amount, coalesce(s.fee, 0),
       case when s.n is not null then history.settlement_id(s.merchant_id, s.asset, ledger_day_of(s.succeeded_at)) end,
       'client ' || p.payer_no, p.at,
       case p.state when 'succeeded' then s.succeeded_at when 'expired' then p.expires_at when 'requires_action' then p.at
         else p.confirmed_at end,
       p.expires_at, case p.state when 'requires_action' then p.expires_at end
     from history.payment p left join history.succeeded s using (n) order by p.n`,
  ],
  [
    "ended_payment",
    `insert into ended_payment (account_id, mode, payment_id)
     select account_id, 'live', id from history.payment where state not in ('requires_action', 'processing') order by n`,
  ],
  [
    // Every payment that was confirmed has an option, and so have half of the others. A third has a second one.
    "payment_option",
    `insert into payment_option (id, payment_id, kind, account, chain, asset, token, payer, receiver, amount,
       authorization_nonce, valid_before, fee, fee_basis_points, created_at)
     select case second when 0 then p.option_id else history.make_id('opt', 'second' || p.n, p.at) end, p.id, p.kind,
       p.chain || ':' || p.payer, p.chain, case second when 0 then p.asset else p.asset || '0' end, p.token, p.payer,
       p.treasury, p.amount, p.authorization_nonce,
       case when p.kind <> 'spl' then extract(epoch from p.expires_at)::bigint end, p.fee, 100, p.at + interval '10 seconds'
     from history.payment p cross join generate_series(0, 1) second
     where (p.state in ('succeeded', 'failed', 'processing') or p.n % 2 = 0) and (second = 0 or p.n % 3 = 0) order by p.n`,
  ],
  [
    "attempt",
    `insert into attempt (id, payment_id, option_id, chain, merchant_id, digest, results, state, created_at)
     select attempt_id, id, option_id, chain, merchant_id, decode(md5(option_id), 'hex'),
       jsonb_build_array(jsonb_build_object('type', 'walletRpc', 'data', jsonb_build_array(repeat(md5(id), 4)))), 'verified',
       confirmed_at
     from history.payment where state in ('succeeded', 'failed', 'processing') order by n`,
  ],
  [
    "transfer",
    `insert into transfer (id, purpose, payment_id, settlement_id, refund_id, kind, chain, asset, token, payer, receiver,
       amount, authorization_nonce, valid_before, signature, state, lane_id, lane_nonce, created_at)
     select p.transfer_id, 'payment', p.id, null, null, case p.state when 'processing' then 'push' else p.kind end, p.chain,
       p.asset, p.token, p.payer, p.treasury, p.amount, p.authorization_nonce,
       case when p.kind <> 'spl' or p.state = 'processing' then extract(epoch from p.expires_at)::bigint end,
       decode(repeat(md5(p.id), 4), 'hex'),
       case p.state when 'succeeded' then 'confirmed' when 'failed' then 'ended' else 'awaited' end,
       case when s.n is not null then p.lane_id end, s.nonce, p.confirmed_at
     from history.payment p left join history.succeeded s using (n) where p.state in ('succeeded', 'failed', 'processing')
     union all
     select transfer_id, 'settlement', null, id, null, kind, chain, asset, token, treasury, destination, amount,
       history.make_hash('nonce' || id), case when kind <> 'spl' then 4000000000 end, decode(repeat(md5(id), 4), 'hex'),
       'confirmed', null, null, closed_at
     from history.settlement where paid
     union all
     select transfer_id, 'refund', null, null, id, kind, chain, asset, token, treasury, payer, amount,
       history.make_hash('nonce' || id), case when kind <> 'spl' then 4000000000 end, decode(repeat(md5(id), 4), 'hex'),
       'confirmed', null, null, at
     from history.refund`,
  ],
  [
    "lane",
    `insert into lane (id, chain, address, next_nonce)
     select distinct a.lane_id, a.chain, history.make_address(a.chain, 'lane'),
       (select coalesce(max(nonce) + 1, 0) from history.transaction t where t.lane_id = a.lane_id) from history.asset a`,
  ],
  [
    "transaction",
    `insert into transaction (lane_id, nonce, chain, hash, bytes, gas_limit, max_fee_per_gas, max_priority_fee_per_gas, state,
       created_at, broadcast_at, block_number, block_id, gas_used, gas_price, fee, reverted)
     select lane_id, nonce, chain, hash, decode(repeat(md5(hash), 150), 'hex'), gas_used * 2, 2000000, 1000000, 'final', at, at,
       block_number, history.make_hash(chain || block_number), gas_used, 1000000, gas_used * 1000000, false
     from history.transaction`,
  ],
  [
    "observation",
    `insert into observation (chain, block_id, tx_hash, log_index, block_number, token, payer, receiver, amount,
       authorization_nonce, transfer_id, booked, observed_at)
     select chain, history.make_hash(chain || block_number), tx_hash, log_index, block_number, token, payer, treasury, amount,
       authorization_nonce, transfer_id, true, succeeded_at from history.succeeded
     union all
     select chain, history.make_hash(chain || block_number), tx_hash, 99, block_number, token, payer, treasury, amount, null, null,
       true, succeeded_at from history.succeeded where n % 5000 = 17
     union all
     select chain, history.make_hash(chain || block_number), tx_hash, 0, block_number, token, treasury, destination, amount,
       history.make_hash('nonce' || id), transfer_id, true, closed_at from history.settlement where paid
     union all
     select chain, history.make_hash(chain || block_number), tx_hash, 0, block_number, token, treasury, payer, amount,
       history.make_hash('nonce' || id), transfer_id, true, at from history.refund`,
  ],
  [
    // Responses are kept for a day.
    "idempotency",
    `insert into idempotency (account_id, mode, merchant_id, operation, key, digest, status, response_body, created_at)
     select account_id, 'live', merchant_id, 'createPayment', 'order-' || n, decode(md5(id), 'hex'), 201,
       json_build_object('paymentId', id, 'status', 'requires_action')::text, at
     from history.payment where at > now() - interval '1 day'`,
  ],
];
