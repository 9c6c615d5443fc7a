import type { Insert } from "./insert-payments.ts";

/** Fills the tables of events and webhooks. Each account has one endpoint, which accepts every delivery at once. */
export const insertEventStatements: Insert[] = [
  [
    "event",
    `insert into event (machine, subject, from_state, to_state, at)
     select e.machine, case e.machine when 'payment' then p.id when 'attempt' then p.attempt_id else p.transfer_id end,
       e.from_state, e.to_state, p.at + e.seconds * interval '1 second'
     from history.payment p join (values
       (0, 'payment', 'new', 'requires_action', null), (30, 'attempt', 'new', 'waiting', 'confirmed'),
       (31, 'attempt', 'waiting', 'verified', 'confirmed'), (31, 'payment', 'requires_action', 'processing', 'confirmed'),
       (31, 'transfer', 'new', 'ready', 'confirmed'), (32, 'transfer', 'ready', 'assigned', 'moved'),
       (34, 'transfer', 'assigned', 'included', 'moved'), (35, 'transfer', 'included', 'confirmed', 'moved'),
       (35, 'payment', 'processing', 'succeeded', 'moved'), (35, 'payment', 'processing', 'failed', 'failed'),
       (300, 'payment', 'requires_action', 'expired', 'expired'),
       (60, 'payment', 'requires_action', 'cancelled', 'cancelled')
     ) as e (seconds, machine, from_state, to_state, stage) on e.stage is null or e.stage = case
       when e.stage = 'confirmed' and p.state in ('succeeded', 'failed', 'processing') then 'confirmed'
       when e.stage = 'moved' and p.state = 'succeeded' then 'moved' else p.state end
     order by p.n, e.seconds;
     insert into event (machine, subject, from_state, to_state, at)
     select 'transaction', t.hash, e.from_state, e.to_state, t.at
     from history.transaction t cross join (values ('new', 'signed'), ('signed', 'accepted'), ('accepted', 'included'),
       ('included', 'final')) as e (from_state, to_state);
     insert into event (machine, subject, from_state, to_state, at)
     select 'settlement', s.id, e.from_state, e.to_state, case when e.late then s.closed_at else s.created_at end
     from history.settlement s join (values (false, 'new', 'accumulating'), (true, 'accumulating', 'due'),
       (true, 'due', 'paying'), (true, 'paying', 'paid')) as e (late, from_state, to_state) on s.paid or not e.late;
     insert into event (machine, subject, from_state, to_state, at)
     select 'refund', r.id, e.from_state, e.to_state, r.at from history.refund r
     cross join (values ('new', 'due'), ('due', 'paying'), ('paying', 'paid')) as e (from_state, to_state)`,
  ],
  [
    "webhook_endpoint",
    `insert into webhook_endpoint (id, account_id, mode, url, by_operator, key_id, secret, created_at)
     select distinct endpoint_id, account_id, 'live', 'https://shop.example.test/hooks', true,
       'none', '\\x00'::bytea, now() - interval '2 years' from history.merchant`,
  ],
  ["webhook_event", webhookEvents("webhook_event")],
  ["webhook_event_list", webhookEvents("webhook_event_list")],
  ["webhook_delivery", webhookEvents("webhook_delivery")],
  ["webhook_attempt", webhookEvents("webhook_attempt")],
];

function webhookEvents(table: "webhook_event" | "webhook_event_list" | "webhook_delivery" | "webhook_attempt"): string {
  return `
    with happened as (
      select p.account_id, p.endpoint_id, p.merchant_id, p.id as payment_id, null as refund_id, 'payment.' || e.type as type, e.version,
        p.at + e.seconds * interval '1 second' as at
      from history.payment p join (values
        (0, 'created', 0, null), (31, 'processing', 1, 'confirmed'), (35, 'succeeded', 2, 'succeeded'),
        (35, 'failed', 2, 'failed'), (300, 'expired', 1, 'expired'), (60, 'cancelled', 1, 'cancelled'),
        (86400, 'settled', 2, 'settled')
      ) as e (seconds, type, version, stage) on e.stage is null or e.stage = p.state
        or e.stage = 'confirmed' and p.state in ('succeeded', 'failed', 'processing')
        or e.stage = 'settled' and p.state = 'succeeded' and p.at < date_trunc('day', now()) - interval '1 hour'
      union all
      select account_id, endpoint_id, merchant_id, null, r.id, 'refund.' || e.type, e.version, r.at
      from history.refund r cross join (values ('created', 0), ('succeeded', 2)) as e (type, version)
    ), named as (
      select *, history.make_id('evt', coalesce(payment_id, refund_id) || type, at) as id from happened
    )
    ${
      {
        webhook_event: `
          insert into webhook_event (id, account_id, mode, merchant_id, type, payment_id, refund_id, state_version, at, position)
          select id, account_id, 'live', merchant_id, type, payment_id, refund_id, version, at,
            row_number() over (partition by account_id order by at, id) from named order by at, id`,
        webhook_event_list: `
          insert into webhook_event_list (account_id, mode, last_position)
          select account_id, 'live', count(*) from named group by account_id`,
        webhook_delivery: `
          insert into webhook_delivery (event_id, endpoint_id, priority, at, state, attempts_made, last_outcome, delivered_at)
          select id, endpoint_id, case type when 'payment.settled' then 2 else 1 end, at, 'delivered', 1, '200', at
          from named order by at`,
        webhook_attempt: `
          insert into webhook_attempt (event_id, endpoint_id, at, duration_ms, outcome, response_type, response_body)
          select id, endpoint_id, at, 40, '200', 'application/json', '{"received":true}'
          from named where at > now() - interval '30 days' order by at`,
      }[table]
    }`;
}
