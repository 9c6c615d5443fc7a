-- Solana: account histories that the watchers read, and accounts whose rent we pay.

-- How far the history of an account has been listed and read. `signature` is the newest one of the last complete listing;
-- `shown_by` is the endpoint that alone has shown it, where several are configured. `listing` is a listing in progress. Only one
-- endpoint has listed what came after `relist_slot`: it is listed again when two of them answer, from the newest transaction
-- backwards, at each endpoint next before the signature in `relist_before`. What was final at `relist_at` came before that slot.
create table account_cursor (
  chain text not null,
  account text not null,
  signature text,
  slot bigint,
  until_signature text,
  shown_by text,
  listed_at timestamptz,
  listed_slot bigint,
  listing jsonb,
  relist_slot bigint,
  relist_before jsonb,
  relist_at timestamptz,
  read_at timestamptz,
  read_slot bigint,
  urgent_read_slot bigint,
  owner text,
  lease_until timestamptz,
  primary key (chain, account)
);

-- Transactions that are listed and not read yet. The transaction that records the movements deletes the row.
create table history_entry (
  chain text not null,
  account text not null,
  signature text not null,
  slot bigint not null,
  -- When the listing before the one that found it began. Everything final at that time is known without this entry.
  listed_after timestamptz,
  -- Natural keys of payments and payouts of ours that its memo names. An entry that has some is urgent: it is read before others.
  nonces text[] not null,
  urgent boolean not null,
  attempts_made integer not null default 0,
  due_at timestamptz not null,
  last_error text,
  -- What one endpoint has shown, while another one has to show the same: the entry is not read from the first one again.
  reading jsonb,
  primary key (chain, account, signature),
  foreign key (chain, account) references account_cursor
);
create index history_entry_urgent on history_entry (chain) where urgent;
create index history_entry_next on history_entry (chain, account, urgent desc, slot, signature);
create index history_entry_unread on history_entry (chain, account, urgent desc, slot, signature) where reading is null;
create index history_entry_waiting on history_entry (chain, account, urgent desc, due_at) where reading is not null;

-- Accounts that our transactions created and whose rent we paid.
create table created_account (
  chain text not null,
  address text not null,
  tx_hash text not null,
  created_at timestamptz not null,
  primary key (chain, address)
);

-- Marker accounts: each makes the chain refuse a second payment of its payout, until the account is closed and its rent
-- is returned.
create table payout_marker (
  chain text not null,
  address text not null,
  tx_hash text not null,
  -- The slot of that transaction.
  slot bigint not null,
  lamports numeric(78, 0) not null check (lamports > 0),
  created_at timestamptz not null,
  closing_hash text,
  primary key (chain, address)
);
create index payout_marker_created_at on payout_marker (chain, created_at);
