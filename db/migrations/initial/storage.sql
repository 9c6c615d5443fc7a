-- How Postgres stores and cleans the tables. docs/performance.md says what it brings.

-- A row that changes with every batch. An update that changes no indexed column writes no index entry, as long as its page
-- has room: half of each page is left empty. The pages are few.
alter table merchant_balance set (fillfactor = 50);
alter table lane set (fillfactor = 50);
alter table chain_cursor set (fillfactor = 50);
alter table account_cursor set (fillfactor = 50);
alter table webhook_endpoint set (fillfactor = 50);
alter table webhook_event_list set (fillfactor = 50);

-- The requester of options is stored in the payment's row, which is a moment old and whose page is otherwise full.
alter table payment set (fillfactor = 80);

-- Tables that grow with each payment. By default, autovacuum waits until a fifth of a table has changed: on a large table
-- for weeks, while the statistics do not know of a backlog, and index-only scans have to read the rows.
do $$
  declare
    grown text;
  begin
    foreach grown in array array[
      'payment', 'payment_option', 'attempt', 'transfer', 'transaction', 'observation', 'event',
      'webhook_event', 'webhook_delivery', 'webhook_attempt', 'ledger_group', 'ledger_entry', 'ledger_day',
      'idempotency', 'settlement'
    ] loop
      execute format(
        'alter table %I set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02,
          autovacuum_analyze_scale_factor = 0.01)', grown);
    end loop;
  end $$;
