-- Written by `npm run db:schema`; the migrations are what counts.

create table account (
  id text not null,
  name text not null,
  api_version text not null default '2026-02-18'::text,
  wallets_cancel boolean not null default true,
  created_at timestamp with time zone not null,
  PRIMARY KEY (id)
);

create table account_cursor (
  chain text not null,
  account text not null,
  signature text,
  slot bigint,
  listed_at timestamp with time zone,
  listed_slot bigint,
  listing jsonb,
  read_at timestamp with time zone,
  read_slot bigint,
  named_slot bigint,
  owner text,
  lease_until timestamp with time zone,
  PRIMARY KEY (chain, account)
);

create table api_key (
  id text not null,
  account_id text not null,
  mode text not null,
  hash bytea not null,
  hint text not null,
  scopes text[] not null,
  created_at timestamp with time zone not null,
  revoked_at timestamp with time zone,
  CHECK ((mode = ANY (ARRAY['test'::text, 'live'::text]))),
  FOREIGN KEY (account_id) REFERENCES account(id),
  PRIMARY KEY (id),
  UNIQUE (hash)
);

create table app_id (
  id text not null,
  account_id text not null,
  mode text not null,
  created_at timestamp with time zone not null,
  revoked_at timestamp with time zone,
  CHECK ((mode = ANY (ARRAY['test'::text, 'live'::text]))),
  FOREIGN KEY (account_id) REFERENCES account(id),
  PRIMARY KEY (id)
);

create table attempt (
  id text not null,
  payment_id text not null,
  option_id text not null,
  chain text not null,
  merchant_id text not null,
  digest bytea not null,
  results jsonb not null,
  verification text not null default 'key'::text,
  state text not null,
  refusal text,
  created_at timestamp with time zone not null,
  due_at timestamp with time zone,
  due_try integer not null default 0,
  CHECK ((verification = ANY (ARRAY['key'::text, 'wallet'::text, 'push'::text]))),
  FOREIGN KEY (payment_id) REFERENCES payment(id),
  FOREIGN KEY (payment_id, option_id) REFERENCES payment_option(payment_id, id),
  PRIMARY KEY (id),
  UNIQUE (payment_id, digest)
);

create table burned_gas (
  transfer_id text not null,
  lane_id text not null,
  nonce bigint not null,
  chain text not null,
  payer text not null,
  code_hash text,
  gas numeric(78,0) not null,
  alone boolean not null,
  block_number bigint not null,
  at timestamp with time zone not null,
  CHECK ((gas >= (0)::numeric)),
  FOREIGN KEY (lane_id) REFERENCES lane(id),
  FOREIGN KEY (transfer_id) REFERENCES transfer(id),
  PRIMARY KEY (transfer_id, lane_id, nonce)
);

create table chain_block (
  chain text not null,
  number bigint not null,
  hash text not null,
  parent_hash text not null,
  base_fee numeric(78,0) not null,
  at timestamp with time zone not null,
  read_by text,
  PRIMARY KEY (chain, number)
);

create table chain_cursor (
  chain text not null,
  number bigint not null,
  hash text not null,
  final_number bigint not null,
  reached_head_at timestamp with time zone,
  chain_time timestamp with time zone,
  assets text[] not null default '{}'::text[],
  reconcile_at timestamp with time zone not null default now(),
  fence bigint not null default 0,
  owner text,
  lease_until timestamp with time zone,
  epoch text,
  epoch_height bigint,
  due_at timestamp with time zone,
  due_try integer not null default 0,
  PRIMARY KEY (chain)
);

create table collected_data (
  id text not null,
  payment_id text not null,
  account text not null,
  requester text not null,
  attempt_id text,
  key_id text not null,
  sealed bytea not null,
  created_at timestamp with time zone not null,
  delete_at timestamp with time zone not null,
  keep_until timestamp with time zone not null,
  CHECK ((keep_until >= delete_at)),
  FOREIGN KEY (attempt_id) REFERENCES attempt(id) ON DELETE CASCADE,
  FOREIGN KEY (payment_id) REFERENCES payment(id),
  PRIMARY KEY (id)
);

create table collection_policy (
  id text not null,
  merchant_id text not null,
  asset text,
  unit text,
  minimum numeric(78,0),
  created_at timestamp with time zone not null,
  CHECK (((unit IS NULL) = (minimum IS NULL))),
  FOREIGN KEY (merchant_id) REFERENCES merchant(id),
  PRIMARY KEY (id)
);

create table database_epoch (
  singleton boolean not null default true,
  id text not null,
  count bigint not null,
  counted_at timestamp with time zone not null,
  identity text not null,
  began_at timestamp with time zone,
  CHECK (singleton),
  PRIMARY KEY (singleton)
);

create table destination_change (
  id bigint generated always as identity not null,
  merchant_id text not null,
  destination_id text not null,
  asset text not null,
  before text,
  after text,
  at timestamp with time zone not null,
  PRIMARY KEY (id)
);

create table dust (
  id bigint generated always as identity not null,
  chain text not null,
  asset text not null,
  day date not null,
  amount numeric(78,0) not null,
  transfers integer not null,
  last_block bigint not null,
  group_id bigint,
  CHECK ((amount > (0)::numeric)),
  FOREIGN KEY (group_id) REFERENCES ledger_group(id),
  PRIMARY KEY (id),
  UNIQUE (chain, asset, day)
);

create table event (
  id bigint generated always as identity not null,
  machine text not null,
  subject text not null,
  from_state text not null,
  to_state text not null,
  detail jsonb,
  at timestamp with time zone not null,
  FOREIGN KEY (machine, from_state, to_state) REFERENCES transition(machine, from_state, to_state),
  PRIMARY KEY (id)
);

create table failed_booking (
  id bigint generated always as identity not null,
  chain text not null,
  kind text not null,
  subject text not null,
  block_number bigint,
  movement jsonb,
  error text not null,
  retries integer not null default 0,
  first_at timestamp with time zone not null,
  last_at timestamp with time zone not null,
  retry_at timestamp with time zone not null,
  CHECK (((kind = 'movement'::text) = ((movement IS NOT NULL) AND (block_number IS NOT NULL)))),
  CHECK ((kind = ANY (ARRAY['movement'::text, 'unmatched'::text, 'dust'::text, 'transfer'::text, 'ended'::text, 'transaction'::text]))),
  PRIMARY KEY (id),
  UNIQUE (chain, kind, subject)
);

create table fee_policy (
  account_id text not null,
  merchant_id text,
  points integer not null,
  fixed_micros numeric(78,0) not null,
  updated_at timestamp with time zone not null,
  CHECK (((points >= 0) AND (points <= 10000))),
  CHECK ((fixed_micros >= (0)::numeric)),
  FOREIGN KEY (account_id) REFERENCES account(id),
  FOREIGN KEY (merchant_id) REFERENCES merchant(id),
  UNIQUE NULLS NOT DISTINCT (account_id, merchant_id)
);

create table frame_origin (
  account_id text not null,
  origin text not null,
  created_at timestamp with time zone not null,
  CHECK (((length(origin) <= 255) AND (origin ~ '^(https://[a-z0-9]([-a-z0-9.]*[a-z0-9])?|http://localhost)(:[0-9]{1,5})?$'::text))),
  FOREIGN KEY (account_id) REFERENCES account(id),
  PRIMARY KEY (account_id, origin)
);

create table history_entry (
  chain text not null,
  account text not null,
  signature text not null,
  slot bigint not null,
  listed_after timestamp with time zone,
  urgent boolean not null,
  tries integer not null default 0,
  due_at timestamp with time zone not null,
  last_error text,
  FOREIGN KEY (chain, account) REFERENCES account_cursor(chain, account),
  PRIMARY KEY (chain, account, signature)
);

create table idempotency (
  account_id text not null,
  mode text not null,
  operation text not null,
  key text not null,
  digest bytea not null,
  status integer,
  answer text,
  created_at timestamp with time zone not null,
  CHECK ((mode = ANY (ARRAY['test'::text, 'live'::text]))),
  FOREIGN KEY (account_id) REFERENCES account(id),
  PRIMARY KEY (account_id, mode, operation, key)
);

create table lane (
  id text not null,
  chain text not null,
  address text not null,
  next_nonce bigint not null,
  fence bigint not null default 0,
  owner text,
  lease_until timestamp with time zone,
  rung boolean not null default false,
  PRIMARY KEY (id),
  UNIQUE (chain, address)
);

create table ledger_day (
  account text not null,
  asset text not null,
  day date not null,
  slot smallint not null,
  amount numeric(78,0) not null,
  PRIMARY KEY (account, asset, day, slot) INCLUDE (amount)
);

create table ledger_entry (
  id bigint generated always as identity not null,
  group_id bigint not null,
  account text not null,
  asset text not null,
  amount numeric(78,0) not null,
  CHECK ((amount <> (0)::numeric)),
  FOREIGN KEY (group_id) REFERENCES ledger_group(id),
  PRIMARY KEY (id)
);

create table ledger_group (
  id bigint generated always as identity not null,
  kind text not null,
  subject text not null,
  chain text,
  block_number bigint,
  block_hash text,
  tx_hash text,
  log_index integer,
  note text,
  at timestamp with time zone not null,
  PRIMARY KEY (id),
  UNIQUE (kind, subject)
);

create table logo (
  id text not null,
  content_type text not null,
  bytes bytea not null,
  width integer not null,
  height integer not null,
  created_at timestamp with time zone not null,
  PRIMARY KEY (id)
);

create table made_account (
  chain text not null,
  address text not null,
  tx_hash text not null,
  made_at timestamp with time zone not null,
  PRIMARY KEY (chain, address)
);

create table merchant (
  id text not null,
  account_id text not null,
  mode text not null,
  name text not null,
  email text not null,
  status text not null default 'active'::text,
  logo_id text,
  payouts_held_at timestamp with time zone,
  created_at timestamp with time zone not null,
  deleted_at timestamp with time zone,
  CHECK ((mode = ANY (ARRAY['test'::text, 'live'::text]))),
  CHECK ((status = ANY (ARRAY['active'::text, 'inactive'::text, 'suspended'::text]))),
  FOREIGN KEY (account_id) REFERENCES account(id),
  FOREIGN KEY (logo_id) REFERENCES logo(id),
  PRIMARY KEY (id)
);

create table merchant_balance (
  merchant_id text not null,
  asset text not null,
  amount numeric(78,0) not null,
  next_settlement integer not null default 1,
  CHECK ((amount >= (0)::numeric)),
  FOREIGN KEY (merchant_id) REFERENCES merchant(id),
  PRIMARY KEY (merchant_id, asset)
);

create table operator_action (
  id bigint generated always as identity not null,
  who text not null,
  action text not null,
  queue text,
  job_id text,
  subject text,
  at timestamp with time zone not null,
  PRIMARY KEY (id)
);

create table payment (
  id text not null,
  account_id text not null,
  merchant_id text not null,
  mode text not null,
  reference_id text,
  unit text not null,
  value numeric(78,0) not null,
  state text not null,
  state_version integer not null default 0,
  failure_code text,
  cancelled_reason text,
  checkout jsonb,
  option_id text,
  tx_id text,
  paid_asset text,
  paid_amount numeric(78,0),
  fee numeric(78,0) not null default 0,
  direct boolean not null default false,
  owed_asset text,
  owed_amount numeric(78,0),
  settlement_id text,
  requester text,
  shared boolean not null default false,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  due_at timestamp with time zone,
  due_try integer not null default 0,
  CHECK (((cancelled_reason IS NULL) OR (state = 'cancelled'::text))),
  CHECK (((failure_code IS NULL) OR (state = 'failed'::text))),
  CHECK (((requester IS NOT NULL) OR (NOT shared))),
  CHECK (((state <> 'succeeded'::text) OR ((tx_id IS NOT NULL) AND (paid_asset IS NOT NULL) AND (paid_amount IS NOT NULL)))),
  CHECK ((mode = ANY (ARRAY['test'::text, 'live'::text]))),
  CHECK ((value > (0)::numeric)),
  FOREIGN KEY (account_id) REFERENCES account(id),
  FOREIGN KEY (id, option_id) REFERENCES payment_option(payment_id, id),
  FOREIGN KEY (merchant_id) REFERENCES merchant(id),
  FOREIGN KEY (settlement_id) REFERENCES settlement(id),
  PRIMARY KEY (id)
);

create table payment_option (
  id text not null,
  payment_id text not null,
  number integer not null default 1,
  kind text not null default 'eip3009'::text,
  account text not null,
  chain text not null,
  asset text not null,
  token text not null,
  payer text not null,
  receiver text not null,
  amount numeric(78,0) not null,
  authorization_nonce text not null,
  valid_before bigint not null,
  blockhash_until timestamp with time zone,
  allowance jsonb,
  needs_data boolean not null default false,
  fee numeric(78,0) not null default 0,
  fee_fixed numeric(78,0) not null default 0,
  fee_points integer not null default 0,
  direct boolean not null default false,
  rate text,
  quoted_until timestamp with time zone,
  owed_asset text,
  owed_amount numeric(78,0),
  created_at timestamp with time zone not null,
  CHECK (((fee >= (0)::numeric) AND ((fee = (0)::numeric) OR (fee < amount)))),
  CHECK (((fee_fixed >= (0)::numeric) AND (fee_fixed <= fee))),
  CHECK (((owed_asset IS NULL) = (owed_amount IS NULL))),
  CHECK (((rate IS NULL) = (quoted_until IS NULL))),
  CHECK ((amount > (0)::numeric)),
  CHECK ((kind = ANY (ARRAY['eip3009'::text, 'permit2'::text, 'push'::text, 'spl'::text]))),
  CHECK ((number > 0)),
  CHECK ((owed_amount > (0)::numeric)),
  FOREIGN KEY (payment_id) REFERENCES payment(id),
  PRIMARY KEY (id),
  UNIQUE (payment_id, id),
  UNIQUE (payment_id, payer, asset, number)
);

create table payout_marker (
  chain text not null,
  address text not null,
  tx_hash text not null,
  lamports numeric(78,0) not null,
  made_at timestamp with time zone not null,
  closing_hash text,
  CHECK ((lamports > (0)::numeric)),
  PRIMARY KEY (chain, address)
);

create table payout_queue (
  kind text not null,
  merchant_id text not null,
  asset text not null,
  chain text not null,
  due_at timestamp with time zone,
  due_try integer not null default 0,
  blocked_by text,
  blocked_at timestamp with time zone,
  version bigint not null default 0,
  CHECK (((blocked_by IS NULL) = (blocked_at IS NULL))),
  CHECK (((blocked_by IS NULL) OR (due_at IS NOT NULL))),
  CHECK ((kind = ANY (ARRAY['settlement'::text, 'refund'::text]))),
  PRIMARY KEY (kind, merchant_id, asset, chain)
);

create table reconciliation (
  chain text not null,
  account text not null,
  asset text not null,
  block_number bigint not null,
  booked numeric(78,0) not null,
  in_flight numeric(78,0) not null,
  held numeric(78,0) not null,
  at timestamp with time zone not null,
  PRIMARY KEY (chain, account, asset)
);

create table refund (
  id text not null,
  payment_id text,
  number integer not null,
  exception_id bigint,
  merchant_id text,
  asset text not null,
  amount numeric(78,0) not null,
  owed_asset text,
  owed_amount numeric(78,0),
  receiver text,
  state text not null,
  created_at timestamp with time zone not null,
  paid_at timestamp with time zone,
  due_at timestamp with time zone,
  due_try integer not null default 0,
  CHECK (((payment_id IS NULL) <> (exception_id IS NULL))),
  CHECK (((payment_id IS NULL) = (merchant_id IS NULL))),
  CHECK ((amount > (0)::numeric)),
  FOREIGN KEY (exception_id) REFERENCES ledger_group(id),
  FOREIGN KEY (merchant_id) REFERENCES merchant(id),
  FOREIGN KEY (payment_id) REFERENCES payment(id),
  PRIMARY KEY (id),
  UNIQUE (exception_id),
  UNIQUE (payment_id, number)
);

create table settlement (
  id text not null,
  merchant_id text not null,
  mode text not null,
  asset text not null,
  number integer not null,
  amount numeric(78,0) not null,
  destination text,
  state text not null,
  converted boolean not null default false,
  tx_hash text,
  created_at timestamp with time zone not null,
  closed_at timestamp with time zone,
  paid_at timestamp with time zone,
  due_at timestamp with time zone,
  due_try integer not null default 0,
  CHECK (((amount > (0)::numeric) OR ((amount = (0)::numeric) AND (state = 'netted'::text)))),
  CHECK ((mode = ANY (ARRAY['test'::text, 'live'::text]))),
  FOREIGN KEY (merchant_id) REFERENCES merchant(id),
  PRIMARY KEY (id),
  UNIQUE (merchant_id, asset, number)
);

create table settlement_deduction (
  refund_id text not null,
  settlement_id text not null,
  payment_id text not null,
  amount numeric(78,0) not null,
  CHECK ((amount > (0)::numeric)),
  FOREIGN KEY (payment_id) REFERENCES payment(id),
  FOREIGN KEY (refund_id) REFERENCES refund(id),
  FOREIGN KEY (settlement_id) REFERENCES settlement(id),
  PRIMARY KEY (refund_id, settlement_id, payment_id)
);

create table settlement_destination (
  id text not null,
  merchant_id text not null,
  asset text not null,
  destination text not null,
  gather_ms integer,
  gather_amount numeric(78,0),
  minimum numeric(78,0),
  takes_others boolean not null default false,
  direct boolean not null default false,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  CHECK (((gather_amount IS NULL) OR (gather_ms IS NOT NULL))),
  CHECK (((minimum IS NULL) OR (gather_ms IS NOT NULL))),
  CHECK ((gather_amount > (0)::numeric)),
  CHECK ((gather_ms > 0)),
  CHECK ((minimum > (0)::numeric)),
  FOREIGN KEY (merchant_id) REFERENCES merchant(id),
  PRIMARY KEY (id),
  UNIQUE (merchant_id, asset)
);

create table sighting (
  chain text not null,
  block_hash text not null,
  tx_hash text not null,
  log_index integer not null,
  block_number bigint not null,
  token text not null,
  payer text not null,
  receiver text not null,
  amount numeric(78,0) not null,
  authorization_nonce text,
  transfer_id text,
  orphaned boolean not null default false,
  booked boolean not null default false,
  dust_id bigint,
  seen_at timestamp with time zone not null,
  FOREIGN KEY (dust_id) REFERENCES dust(id),
  FOREIGN KEY (transfer_id) REFERENCES transfer(id),
  PRIMARY KEY (chain, block_hash, tx_hash, log_index)
);

create table transaction (
  lane_id text not null,
  nonce bigint not null,
  replacement integer not null default 0,
  chain text not null,
  hash text not null,
  bytes bytea not null,
  gas_limit numeric(78,0) not null,
  max_fee_per_gas numeric(78,0) not null,
  max_priority_fee_per_gas numeric(78,0) not null,
  last_valid_height bigint,
  nonce_account text,
  nonce_value text,
  nonce_slot bigint,
  state text not null,
  created_at timestamp with time zone not null,
  offered_at timestamp with time zone,
  block_number bigint,
  block_hash text,
  gas_used numeric(78,0),
  gas_price numeric(78,0),
  fee numeric(78,0),
  reverted boolean,
  CHECK ((fee >= (0)::numeric)),
  FOREIGN KEY (lane_id) REFERENCES lane(id),
  PRIMARY KEY (lane_id, nonce, replacement),
  UNIQUE (chain, hash)
);

create table transfer (
  id text not null,
  purpose text not null,
  payment_id text,
  settlement_id text,
  refund_id text,
  kind text not null default 'eip3009'::text,
  chain text not null,
  asset text not null,
  token text not null,
  payer text not null,
  receiver text not null,
  amount numeric(78,0) not null,
  authorization_nonce text not null,
  valid_before bigint not null,
  signature bytea,
  permit bytea,
  smart_wallet boolean not null default false,
  code_hash text,
  state text not null,
  lane_id text,
  lane_nonce bigint,
  alone boolean not null default false,
  hold_until timestamp with time zone,
  troubles integer not null default 0,
  last_trouble text,
  created_at timestamp with time zone not null,
  due_at timestamp with time zone,
  due_try integer not null default 0,
  CHECK (((purpose = 'payment'::text) = (payment_id IS NOT NULL))),
  CHECK (((purpose = 'refund'::text) = (refund_id IS NOT NULL))),
  CHECK (((purpose = 'settlement'::text) = (settlement_id IS NOT NULL))),
  CHECK ((amount > (0)::numeric)),
  CHECK ((kind = ANY (ARRAY['eip3009'::text, 'permit2'::text, 'disburse'::text, 'push'::text, 'spl'::text]))),
  CHECK ((purpose = ANY (ARRAY['payment'::text, 'settlement'::text, 'refund'::text]))),
  FOREIGN KEY (lane_id) REFERENCES lane(id),
  FOREIGN KEY (payment_id) REFERENCES payment(id),
  FOREIGN KEY (refund_id) REFERENCES refund(id),
  FOREIGN KEY (settlement_id) REFERENCES settlement(id),
  PRIMARY KEY (id),
  UNIQUE (chain, token, payer, authorization_nonce)
);

create table transition (
  machine text not null,
  from_state text not null,
  to_state text not null,
  PRIMARY KEY (machine, from_state, to_state)
);

create table unread_asset (
  chain text not null,
  asset text not null,
  number bigint not null,
  until bigint,
  since timestamp with time zone not null,
  FOREIGN KEY (chain) REFERENCES chain_cursor(chain),
  PRIMARY KEY (chain, asset)
);

create table webhook_delivery (
  id text not null,
  endpoint_id text not null,
  payment_id text not null,
  type text not null,
  state_version integer not null,
  at timestamp with time zone not null,
  state text not null default 'pending'::text,
  tries integer not null default 0,
  last_outcome text,
  delivered_at timestamp with time zone,
  due_at timestamp with time zone,
  CHECK (((state = 'pending'::text) = (due_at IS NOT NULL))),
  CHECK ((state = ANY (ARRAY['pending'::text, 'delivered'::text, 'given_up'::text]))),
  FOREIGN KEY (endpoint_id) REFERENCES webhook_endpoint(id),
  FOREIGN KEY (payment_id) REFERENCES payment(id),
  PRIMARY KEY (id),
  UNIQUE (payment_id, endpoint_id, type)
);

create table webhook_endpoint (
  id text not null,
  account_id text not null,
  mode text not null,
  url text not null,
  key_id text not null,
  secret bytea not null,
  previous_key_id text,
  previous_secret bytea,
  previous_until timestamp with time zone,
  owner text,
  busy_until timestamp with time zone,
  due_try integer not null default 0,
  created_at timestamp with time zone not null,
  deleted_at timestamp with time zone,
  CHECK ((mode = ANY (ARRAY['test'::text, 'live'::text]))),
  FOREIGN KEY (account_id) REFERENCES account(id),
  PRIMARY KEY (id)
);

create table webhook_fanout (
  settlement_id text not null,
  endpoint_id text not null,
  at timestamp with time zone not null,
  after_payment text not null default ''::text,
  FOREIGN KEY (endpoint_id) REFERENCES webhook_endpoint(id),
  FOREIGN KEY (settlement_id) REFERENCES settlement(id),
  PRIMARY KEY (settlement_id, endpoint_id)
);

CREATE INDEX attempt_due ON public.attempt USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX attempt_due_place ON public.attempt USING btree (chain, merchant_id, due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX attempt_refused ON public.attempt USING btree (created_at) WHERE (state = 'refused'::text);
CREATE INDEX burned_gas_recent ON public.burned_gas USING btree (chain, at);
CREATE INDEX collected_data_delete ON public.collected_data USING btree (delete_at);
CREATE INDEX collected_data_payment ON public.collected_data USING btree (payment_id);
CREATE INDEX collection_policy_merchant ON public.collection_policy USING btree (merchant_id);
CREATE INDEX destination_change_merchant ON public.destination_change USING btree (merchant_id, id);
CREATE INDEX dust_open ON public.dust USING btree (chain, day) WHERE (group_id IS NULL);
CREATE INDEX event_subject ON public.event USING btree (subject, id);
CREATE INDEX history_entry_next ON public.history_entry USING btree (chain, account, urgent DESC, slot, signature);
CREATE INDEX idempotency_created ON public.idempotency USING btree (created_at);
CREATE INDEX ledger_entry_account ON public.ledger_entry USING btree (account, asset);
CREATE INDEX ledger_entry_group ON public.ledger_entry USING btree (group_id);
CREATE INDEX ledger_entry_lost ON public.ledger_entry USING btree (asset) WHERE ((account = 'exceptions'::text) AND (amount > (0)::numeric));
CREATE INDEX ledger_group_block ON public.ledger_group USING btree (chain, block_number) WHERE (block_number IS NOT NULL);
CREATE INDEX ledger_group_exception ON public.ledger_group USING btree (id) WHERE (kind = ANY (ARRAY['stray'::text, 'exception'::text, 'overpaid'::text, 'dust'::text]));
CREATE INDEX ledger_group_subject ON public.ledger_group USING btree (subject);
CREATE INDEX merchant_balance_asset ON public.merchant_balance USING btree (asset) INCLUDE (amount);
CREATE INDEX merchant_listed ON public.merchant USING btree (account_id, mode, created_at DESC, id DESC) WHERE (deleted_at IS NULL);
CREATE INDEX payment_account ON public.payment USING btree (account_id, mode, created_at DESC, id DESC);
CREATE INDEX payment_due ON public.payment USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX payment_due_merchant ON public.payment USING btree (merchant_id, due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX payment_merchant ON public.payment USING btree (merchant_id, created_at DESC, id DESC);
CREATE INDEX payment_option_authorization ON public.payment_option USING btree (authorization_nonce);
CREATE INDEX payment_option_payer ON public.payment_option USING btree (payer, created_at);
CREATE INDEX payment_option_renewal ON public.payment_option USING btree (created_at) WHERE (number > 1);
CREATE INDEX payment_settlement ON public.payment USING btree (settlement_id, id) WHERE (settlement_id IS NOT NULL);
CREATE INDEX payout_marker_made_at ON public.payout_marker USING btree (chain, made_at);
CREATE INDEX payout_queue_blocked ON public.payout_queue USING btree (blocked_at) WHERE (blocked_by IS NOT NULL);
CREATE INDEX payout_queue_due ON public.payout_queue USING btree (kind, chain, due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX refund_queue ON public.refund USING btree (COALESCE(merchant_id, ''::text), COALESCE(owed_asset, asset), split_part(asset, '/'::text, 1), due_try, due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX refund_waiting ON public.refund USING btree (merchant_id) WHERE (state = 'due'::text);
CREATE INDEX settlement_converted ON public.settlement USING btree (asset) WHERE (converted AND (state = ANY (ARRAY['due'::text, 'gathering'::text])));
CREATE INDEX settlement_deduction_payment ON public.settlement_deduction USING btree (payment_id);
CREATE INDEX settlement_paying ON public.settlement USING btree (created_at) WHERE (state = 'paying'::text);
CREATE INDEX settlement_queue ON public.settlement USING btree (merchant_id, asset, due_try, due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX settlement_unbegun ON public.settlement USING btree (merchant_id, asset, number) WHERE (state = ANY (ARRAY['due'::text, 'gathering'::text]));
CREATE INDEX settlement_waiting ON public.settlement USING btree (merchant_id, asset, COALESCE(closed_at, created_at)) WHERE (state = 'due'::text);
CREATE INDEX sighting_authorization ON public.sighting USING btree (authorization_nonce) WHERE (authorization_nonce IS NOT NULL);
CREATE INDEX sighting_block ON public.sighting USING btree (chain, block_number);
CREATE INDEX sighting_dust ON public.sighting USING btree (dust_id) WHERE (dust_id IS NOT NULL);
CREATE INDEX sighting_stray ON public.sighting USING btree (chain, block_number) WHERE ((transfer_id IS NULL) AND (NOT orphaned) AND (NOT booked));
CREATE INDEX sighting_unclaimed ON public.sighting USING btree (chain, payer) WHERE ((transfer_id IS NULL) AND (authorization_nonce IS NOT NULL) AND (NOT orphaned));
CREATE INDEX transaction_block ON public.transaction USING btree (chain, block_number) WHERE (block_number IS NOT NULL);
CREATE INDEX transaction_unfinished ON public.transaction USING btree (chain, lane_id, nonce) WHERE (state <> ALL (ARRAY['final'::text, 'replaced'::text]));
CREATE INDEX transfer_authorization ON public.transfer USING btree (authorization_nonce);
CREATE INDEX transfer_due ON public.transfer USING btree (chain, due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX transfer_promised ON public.transfer USING btree (chain, payer) WHERE (state = ANY (ARRAY['ready'::text, 'carried'::text]));
CREATE INDEX transfer_ready ON public.transfer USING btree (chain, created_at) WHERE (state = 'ready'::text);
CREATE INDEX transfer_slot ON public.transfer USING btree (lane_id, lane_nonce) WHERE (lane_id IS NOT NULL);
CREATE INDEX transfer_unfinished ON public.transfer USING btree (chain, state) WHERE (state <> ALL (ARRAY['confirmed'::text, 'ended'::text]));
CREATE INDEX webhook_delivery_due ON public.webhook_delivery USING btree (endpoint_id, due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX webhook_delivery_given_up ON public.webhook_delivery USING btree (endpoint_id, at) WHERE (state = 'given_up'::text);
CREATE INDEX webhook_delivery_listed ON public.webhook_delivery USING btree (endpoint_id, at);
CREATE INDEX webhook_delivery_pending ON public.webhook_delivery USING btree (at) WHERE (state = 'pending'::text);
CREATE INDEX webhook_fanout_endpoint ON public.webhook_fanout USING btree (endpoint_id, at, settlement_id);
CREATE UNIQUE INDEX attempt_one_verified ON public.attempt USING btree (payment_id) WHERE (state = 'verified'::text);
CREATE UNIQUE INDEX collected_data_attempt ON public.collected_data USING btree (attempt_id, requester) WHERE (attempt_id IS NOT NULL);
CREATE UNIQUE INDEX collected_data_posted ON public.collected_data USING btree (payment_id, account, requester) WHERE (attempt_id IS NULL);
CREATE UNIQUE INDEX settlement_gathering ON public.settlement USING btree (merchant_id, asset) WHERE (state = 'gathering'::text);
CREATE UNIQUE INDEX sighting_one_claim ON public.sighting USING btree (transfer_id) WHERE ((transfer_id IS NOT NULL) AND (NOT orphaned));
CREATE UNIQUE INDEX transaction_nonce_account ON public.transaction USING btree (chain, nonce_account) WHERE ((nonce_account IS NOT NULL) AND (state = ANY (ARRAY['signed'::text, 'offered'::text, 'accepted'::text, 'included'::text])));
CREATE UNIQUE INDEX transfer_payment ON public.transfer USING btree (payment_id) WHERE (purpose = 'payment'::text);
CREATE UNIQUE INDEX transfer_refund ON public.transfer USING btree (refund_id) WHERE (purpose = 'refund'::text);
CREATE UNIQUE INDEX transfer_settlement ON public.transfer USING btree (settlement_id) WHERE (purpose = 'settlement'::text);
CREATE UNIQUE INDEX webhook_endpoint_one ON public.webhook_endpoint USING btree (account_id, mode) WHERE (deleted_at IS NULL);

CREATE OR REPLACE FUNCTION public.add_to_ledger_day()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
  begin
    insert into ledger_day as d (account, asset, day, slot, amount)
    select e.account, e.asset, ledger_day_of(g.at),
      case when e.account ~ '^(payable|lane):' then 0 else pg_backend_pid() % 16 end, sum(e.amount)
    from booked e join ledger_group g on g.id = e.group_id
    group by e.account, e.asset, ledger_day_of(g.at)
    order by 1, 2, 3
    on conflict (account, asset, day, slot) do update set amount = d.amount + excluded.amount;
    return null;
  end $function$
;

CREATE OR REPLACE FUNCTION public.add_webhook_fanout()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
  begin
    insert into webhook_fanout (settlement_id, endpoint_id, at)
    select new.id, e.id, new.paid_at from merchant m
    join webhook_endpoint e on e.account_id = m.account_id and e.mode = new.mode and e.deleted_at is null
    where m.id = new.merchant_id;
    return null;
  end $function$
;

CREATE OR REPLACE FUNCTION public.database_identity(epoch_table oid)
 RETURNS text
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog'
AS $function$
  declare
    system text := '-';
    timeline text := '-';
  begin
    begin
      system := (select system_identifier::text from pg_control_system());
    exception when insufficient_privilege or undefined_function or feature_not_supported then null;
    end;
    begin
      timeline := left(pg_walfile_name(pg_current_wal_lsn()), 8);
    exception when insufficient_privilege or undefined_function or feature_not_supported then null;
    end;
    return concat_ws('/', system, timeline, epoch_table);
  end $function$
;

CREATE OR REPLACE FUNCTION public.keep_quote()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
  begin
    if to_jsonb(new) - 'blockhash_until' is distinct from to_jsonb(old) - 'blockhash_until' then
      raise exception 'a quote never changes: %', old.id;
    end if;
    return new;
  end $function$
;

CREATE OR REPLACE FUNCTION public.ledger_day_of(at timestamp with time zone)
 RETURNS date
 LANGUAGE sql
 IMMUTABLE
RETURN ((at AT TIME ZONE 'UTC'::text))::date
;

CREATE OR REPLACE FUNCTION public.ledger_group_sums_to_zero()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
  begin
    if exists (select from ledger_entry where group_id = new.group_id group by asset having sum(amount) <> 0) then
      raise exception 'ledger group % does not sum to zero', new.group_id;
    end if;
    return null;
  end $function$
;

CREATE OR REPLACE FUNCTION public.owe_webhook()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
  begin
    insert into webhook_delivery (id, endpoint_id, payment_id, type, state_version, at, due_at)
    select 'evt_' || replace(gen_random_uuid()::text, '-', ''), e.id, new.id,
      'payment.' || case new.state when 'requires_action' then 'created' else new.state end,
      new.state_version, new.updated_at, new.updated_at
    from webhook_endpoint e
    where e.account_id = new.account_id and e.mode = new.mode and e.deleted_at is null;
    return null;
  end $function$
;

CREATE OR REPLACE FUNCTION public.place_attempt()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
  begin
    select o.chain, p.merchant_id into new.chain, new.merchant_id
    from payment_option o, payment p where o.id = new.option_id and p.id = new.payment_id;
    return new;
  end $function$
;

CREATE OR REPLACE FUNCTION public.queue_new_settlements()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
  begin
    perform queue_payout('settlement', s.merchant_id, s.asset, split_part(s.asset, '/', 1), s.due_at)
    from (
      select merchant_id, asset, min(due_at) as due_at from added where due_at is not null group by merchant_id, asset
      order by merchant_id collate "C", asset collate "C"
    ) s;
    return null;
  end $function$
;

CREATE OR REPLACE FUNCTION public.queue_payout(of_kind text, of_merchant text, of_asset text, of_chain text, at timestamp with time zone)
 RETURNS void
 LANGUAGE sql
AS $function$
    insert into payout_queue as q (kind, merchant_id, asset, chain, due_at)
    values (of_kind, of_merchant, of_asset, of_chain, at)
    on conflict (kind, merchant_id, asset, chain) do update set version = q.version + 1,
      due_at = case when q.blocked_by is null or q.blocked_by in ('balance_short', 'stock_short')
        then least(q.due_at, excluded.due_at) else q.due_at end
  $function$
;

CREATE OR REPLACE FUNCTION public.queue_refund()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
  begin
    perform queue_payout('refund', coalesce(new.merchant_id, ''), coalesce(new.owed_asset, new.asset),
      split_part(new.asset, '/', 1), new.due_at);
    return null;
  end $function$
;

CREATE OR REPLACE FUNCTION public.queue_settlement()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
  begin
    perform queue_payout('settlement', new.merchant_id, new.asset, split_part(new.asset, '/', 1), new.due_at);
    return null;
  end $function$
;

CREATE OR REPLACE FUNCTION public.record_birth()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
  begin
    insert into event (machine, subject, from_state, to_state, at)
    values (tg_table_name, new.id, 'new', new.state, new.created_at);
    return null;
  end $function$
;

CREATE OR REPLACE FUNCTION public.record_destination()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
  begin
    if tg_op = 'DELETE' then
      insert into destination_change (merchant_id, destination_id, asset, before, at)
      values (old.merchant_id, old.id, old.asset, old.destination, clock_timestamp());
    elsif tg_op = 'INSERT' then
      insert into destination_change (merchant_id, destination_id, asset, after, at)
      values (new.merchant_id, new.id, new.asset, new.destination, new.created_at);
    elsif old.destination <> new.destination then
      insert into destination_change (merchant_id, destination_id, asset, before, after, at)
      values (new.merchant_id, new.id, new.asset, old.destination, new.destination, new.updated_at);
    end if;
    return null;
  end $function$
;

CREATE OR REPLACE FUNCTION public.record_transaction()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
  begin
    if tg_op = 'INSERT' then
      insert into event (machine, subject, from_state, to_state, at)
      values ('transaction', new.hash, 'new', new.state, new.created_at);
    elsif old.state <> new.state then
      insert into event (machine, subject, from_state, to_state, at)
      values ('transaction', new.hash, old.state, new.state, clock_timestamp());
    end if;
    return null;
  end $function$
;

CREATE OR REPLACE FUNCTION public.refuse_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
  begin
    raise exception '% is append only', tg_table_name;
  end $function$
;

CREATE OR REPLACE FUNCTION public.wake_balance()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
  begin
    perform wake_payouts('refund', new.merchant_id, new.asset);
    return null;
  end $function$
;

CREATE OR REPLACE FUNCTION public.wake_behind_refund()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
  begin
    perform wake_payouts('settlement', new.merchant_id, coalesce(new.owed_asset, new.asset));
    return null;
  end $function$
;

CREATE OR REPLACE FUNCTION public.wake_destinations()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
  begin
    perform wake_payouts('settlement', d.merchant_id, d.asset)
    from (select merchant_id, asset from changed order by merchant_id collate "C", asset collate "C") d;
    return null;
  end $function$
;

CREATE OR REPLACE FUNCTION public.wake_merchant()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
  begin
    perform wake_payouts('settlement', new.id, null);
    return null;
  end $function$
;

CREATE OR REPLACE FUNCTION public.wake_minimum()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
  begin
    if exists (select from settlement_destination d
      where d.merchant_id = new.merchant_id and d.asset = new.asset and d.minimum <= new.amount) then
      perform wake_payouts('settlement', new.merchant_id, new.asset);
    end if;
    return null;
  end $function$
;

CREATE OR REPLACE FUNCTION public.wake_payouts(of_kind text, of_merchant text, of_asset text)
 RETURNS void
 LANGUAGE sql
AS $function$
    update payout_queue set version = version + 1, due_try = 0, due_at = least(due_at, blocked_at),
      blocked_by = null, blocked_at = null
    where (kind, merchant_id, asset, chain) in (
      select kind, merchant_id, asset, chain from payout_queue
      where kind = of_kind and merchant_id = of_merchant and (of_asset is null or asset = of_asset)
      order by asset collate "C", chain collate "C" for update)
  $function$
;

CREATE CONSTRAINT TRIGGER ledger_entry_balanced AFTER INSERT ON public.ledger_entry DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION ledger_group_sums_to_zero();
CREATE CONSTRAINT TRIGGER refund_wakes AFTER UPDATE OF state ON public.refund DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (((old.state = 'due'::text) AND (new.state <> 'due'::text) AND (new.merchant_id IS NOT NULL))) EXECUTE FUNCTION wake_behind_refund();
CREATE TRIGGER attempt_birth AFTER INSERT ON public.attempt FOR EACH ROW EXECUTE FUNCTION record_birth();
CREATE TRIGGER attempt_place BEFORE INSERT ON public.attempt FOR EACH ROW EXECUTE FUNCTION place_attempt();
CREATE TRIGGER destination_change_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.destination_change FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER event_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.event FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER ledger_day_by_entries BEFORE INSERT OR DELETE OR UPDATE OR TRUNCATE ON public.ledger_day FOR EACH STATEMENT WHEN ((pg_trigger_depth() = 0)) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER ledger_entry_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.ledger_entry FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER ledger_entry_day AFTER INSERT ON public.ledger_entry REFERENCING NEW TABLE AS booked FOR EACH STATEMENT EXECUTE FUNCTION add_to_ledger_day();
CREATE TRIGGER ledger_group_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.ledger_group FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER merchant_balance_wakes AFTER UPDATE OF amount ON public.merchant_balance FOR EACH ROW WHEN ((new.amount > old.amount)) EXECUTE FUNCTION wake_balance();
CREATE TRIGGER merchant_deleted_wakes AFTER UPDATE OF deleted_at ON public.merchant FOR EACH ROW WHEN ((old.deleted_at IS DISTINCT FROM new.deleted_at)) EXECUTE FUNCTION wake_merchant();
CREATE TRIGGER merchant_wakes AFTER UPDATE OF payouts_held_at ON public.merchant FOR EACH ROW WHEN ((old.payouts_held_at IS DISTINCT FROM new.payouts_held_at)) EXECUTE FUNCTION wake_merchant();
CREATE TRIGGER payment_birth AFTER INSERT ON public.payment FOR EACH ROW EXECUTE FUNCTION record_birth();
CREATE TRIGGER payment_born_webhook AFTER INSERT ON public.payment FOR EACH ROW EXECUTE FUNCTION owe_webhook();
CREATE TRIGGER payment_moved_webhook AFTER UPDATE OF state ON public.payment FOR EACH ROW WHEN ((old.state IS DISTINCT FROM new.state)) EXECUTE FUNCTION owe_webhook();
CREATE TRIGGER payment_option_quote BEFORE UPDATE ON public.payment_option FOR EACH ROW EXECUTE FUNCTION keep_quote();
CREATE TRIGGER refund_birth AFTER INSERT ON public.refund FOR EACH ROW EXECUTE FUNCTION record_birth();
CREATE TRIGGER refund_due_again AFTER UPDATE OF due_at ON public.refund FOR EACH ROW WHEN (((new.due_at IS NOT NULL) AND (new.due_at IS DISTINCT FROM old.due_at))) EXECUTE FUNCTION queue_refund();
CREATE TRIGGER refund_queued AFTER INSERT ON public.refund FOR EACH ROW WHEN ((new.due_at IS NOT NULL)) EXECUTE FUNCTION queue_refund();
CREATE TRIGGER settlement_birth AFTER INSERT ON public.settlement FOR EACH ROW EXECUTE FUNCTION record_birth();
CREATE TRIGGER settlement_destination_added AFTER INSERT ON public.settlement_destination REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION wake_destinations();
CREATE TRIGGER settlement_destination_change AFTER INSERT OR DELETE OR UPDATE ON public.settlement_destination FOR EACH ROW EXECUTE FUNCTION record_destination();
CREATE TRIGGER settlement_destination_changed AFTER UPDATE ON public.settlement_destination REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION wake_destinations();
CREATE TRIGGER settlement_due_again AFTER UPDATE OF due_at ON public.settlement FOR EACH ROW WHEN (((new.due_at IS NOT NULL) AND (new.due_at IS DISTINCT FROM old.due_at))) EXECUTE FUNCTION queue_settlement();
CREATE TRIGGER settlement_minimum_wakes AFTER UPDATE OF amount ON public.settlement FOR EACH ROW WHEN (((new.state = 'gathering'::text) AND (new.amount > old.amount))) EXECUTE FUNCTION wake_minimum();
CREATE TRIGGER settlement_paid_webhook AFTER UPDATE OF state ON public.settlement FOR EACH ROW WHEN (((old.state <> 'paid'::text) AND (new.state = 'paid'::text))) EXECUTE FUNCTION add_webhook_fanout();
CREATE TRIGGER settlement_queued AFTER INSERT ON public.settlement REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION queue_new_settlements();
CREATE TRIGGER transaction_move AFTER INSERT OR UPDATE OF state ON public.transaction FOR EACH ROW EXECUTE FUNCTION record_transaction();
CREATE TRIGGER transfer_birth AFTER INSERT ON public.transfer FOR EACH ROW EXECUTE FUNCTION record_birth();
