-- Written by `npm run db:schema`; the migrations are what counts.

create table account (
  id text not null,
  name text not null,
  created_at timestamp with time zone not null,
  PRIMARY KEY (id)
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
  digest bytea not null,
  results jsonb not null,
  state text not null,
  refusal text,
  created_at timestamp with time zone not null,
  due_at timestamp with time zone,
  due_try integer not null default 0,
  FOREIGN KEY (option_id) REFERENCES payment_option(id),
  FOREIGN KEY (payment_id) REFERENCES payment(id),
  PRIMARY KEY (id),
  UNIQUE (payment_id, digest)
);

create table chain_block (
  chain text not null,
  number bigint not null,
  hash text not null,
  parent_hash text not null,
  base_fee numeric(78,0) not null,
  at timestamp with time zone not null,
  PRIMARY KEY (chain, number)
);

create table chain_cursor (
  chain text not null,
  number bigint not null,
  hash text not null,
  final_number bigint not null,
  reached_head_at timestamp with time zone,
  fence bigint not null default 0,
  owner text,
  lease_until timestamp with time zone,
  due_at timestamp with time zone,
  due_try integer not null default 0,
  PRIMARY KEY (chain)
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
  at timestamp with time zone not null,
  PRIMARY KEY (id),
  UNIQUE (kind, subject)
);

create table merchant (
  id text not null,
  account_id text not null,
  mode text not null,
  name text not null,
  email text not null,
  status text not null default 'active'::text,
  icon_url text,
  created_at timestamp with time zone not null,
  deleted_at timestamp with time zone,
  CHECK ((mode = ANY (ARRAY['test'::text, 'live'::text]))),
  CHECK ((status = ANY (ARRAY['active'::text, 'inactive'::text, 'suspended'::text]))),
  FOREIGN KEY (account_id) REFERENCES account(id),
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
  checkout jsonb,
  tx_id text,
  paid_asset text,
  paid_amount numeric(78,0),
  settlement_id text,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  due_at timestamp with time zone,
  due_try integer not null default 0,
  CHECK (((failure_code IS NULL) OR (state = 'failed'::text))),
  CHECK (((state <> 'succeeded'::text) OR ((tx_id IS NOT NULL) AND (paid_asset IS NOT NULL) AND (paid_amount IS NOT NULL)))),
  CHECK ((mode = ANY (ARRAY['test'::text, 'live'::text]))),
  CHECK ((value > (0)::numeric)),
  FOREIGN KEY (account_id) REFERENCES account(id),
  FOREIGN KEY (merchant_id) REFERENCES merchant(id),
  FOREIGN KEY (settlement_id) REFERENCES settlement(id),
  PRIMARY KEY (id)
);

create table payment_option (
  id text not null,
  payment_id text not null,
  account text not null,
  chain text not null,
  asset text not null,
  token text not null,
  payer text not null,
  receiver text not null,
  amount numeric(78,0) not null,
  authorization_nonce text not null,
  valid_before bigint not null,
  expires_at timestamp with time zone,
  created_at timestamp with time zone not null,
  CHECK ((amount > (0)::numeric)),
  FOREIGN KEY (payment_id) REFERENCES payment(id),
  PRIMARY KEY (id),
  UNIQUE (payment_id, payer, asset)
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
  created_at timestamp with time zone not null,
  paid_at timestamp with time zone,
  due_at timestamp with time zone,
  due_try integer not null default 0,
  CHECK ((amount > (0)::numeric)),
  CHECK ((mode = ANY (ARRAY['test'::text, 'live'::text]))),
  FOREIGN KEY (merchant_id) REFERENCES merchant(id),
  PRIMARY KEY (id),
  UNIQUE (merchant_id, asset, number)
);

create table settlement_destination (
  id text not null,
  merchant_id text not null,
  asset text not null,
  destination text not null,
  created_at timestamp with time zone not null,
  updated_at timestamp with time zone not null,
  FOREIGN KEY (merchant_id) REFERENCES merchant(id),
  PRIMARY KEY (id),
  UNIQUE (merchant_id, asset)
);

create table sighting (
  chain text not null,
  block_hash text not null,
  log_index integer not null,
  block_number bigint not null,
  tx_hash text not null,
  token text not null,
  payer text not null,
  receiver text not null,
  amount numeric(78,0) not null,
  authorization_nonce text,
  transfer_id text,
  orphaned boolean not null default false,
  seen_at timestamp with time zone not null,
  FOREIGN KEY (transfer_id) REFERENCES transfer(id),
  PRIMARY KEY (chain, block_hash, log_index)
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
  state text not null,
  created_at timestamp with time zone not null,
  offered_at timestamp with time zone,
  block_number bigint,
  block_hash text,
  gas_used numeric(78,0),
  gas_price numeric(78,0),
  reverted boolean,
  FOREIGN KEY (lane_id) REFERENCES lane(id),
  PRIMARY KEY (lane_id, nonce, replacement),
  UNIQUE (chain, hash)
);

create table transfer (
  id text not null,
  purpose text not null,
  payment_id text,
  settlement_id text,
  chain text not null,
  asset text not null,
  token text not null,
  payer text not null,
  receiver text not null,
  amount numeric(78,0) not null,
  authorization_nonce text not null,
  valid_before bigint not null,
  signature bytea not null,
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
  CHECK (((purpose = 'settlement'::text) = (settlement_id IS NOT NULL))),
  CHECK ((amount > (0)::numeric)),
  CHECK ((purpose = ANY (ARRAY['payment'::text, 'settlement'::text, 'refund'::text]))),
  FOREIGN KEY (lane_id) REFERENCES lane(id),
  FOREIGN KEY (payment_id) REFERENCES payment(id),
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

CREATE INDEX attempt_due ON public.attempt USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX event_subject ON public.event USING btree (subject, id);
CREATE INDEX ledger_entry_account ON public.ledger_entry USING btree (account, asset);
CREATE INDEX ledger_entry_group ON public.ledger_entry USING btree (group_id);
CREATE INDEX ledger_group_subject ON public.ledger_group USING btree (subject);
CREATE INDEX merchant_account ON public.merchant USING btree (account_id, mode, created_at);
CREATE INDEX payment_due ON public.payment USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX payment_merchant ON public.payment USING btree (merchant_id, created_at DESC, id);
CREATE INDEX payment_settlement ON public.payment USING btree (settlement_id) WHERE (settlement_id IS NOT NULL);
CREATE INDEX settlement_due ON public.settlement USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX sighting_authorization ON public.sighting USING btree (authorization_nonce) WHERE (authorization_nonce IS NOT NULL);
CREATE INDEX sighting_block ON public.sighting USING btree (chain, block_number);
CREATE INDEX transaction_block ON public.transaction USING btree (chain, block_number) WHERE (block_number IS NOT NULL);
CREATE INDEX transaction_unfinished ON public.transaction USING btree (chain, lane_id, nonce) WHERE (state <> ALL (ARRAY['final'::text, 'replaced'::text]));
CREATE INDEX transfer_authorization ON public.transfer USING btree (authorization_nonce);
CREATE INDEX transfer_due ON public.transfer USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX transfer_ready ON public.transfer USING btree (chain, created_at) WHERE (state = 'ready'::text);
CREATE INDEX transfer_slot ON public.transfer USING btree (lane_id, lane_nonce) WHERE (lane_id IS NOT NULL);
CREATE INDEX transfer_unfinished ON public.transfer USING btree (chain, state) WHERE (state <> ALL (ARRAY['confirmed'::text, 'ended'::text]));
CREATE UNIQUE INDEX attempt_one_verified ON public.attempt USING btree (payment_id) WHERE (state = 'verified'::text);
CREATE UNIQUE INDEX sighting_one_claim ON public.sighting USING btree (transfer_id) WHERE ((transfer_id IS NOT NULL) AND (NOT orphaned));
CREATE UNIQUE INDEX transfer_payment ON public.transfer USING btree (payment_id) WHERE (purpose = 'payment'::text);
CREATE UNIQUE INDEX transfer_settlement ON public.transfer USING btree (settlement_id) WHERE (purpose = 'settlement'::text);

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

CREATE CONSTRAINT TRIGGER ledger_entry_balanced AFTER INSERT ON public.ledger_entry DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION ledger_group_sums_to_zero();
CREATE TRIGGER attempt_birth AFTER INSERT ON public.attempt FOR EACH ROW EXECUTE FUNCTION record_birth();
CREATE TRIGGER event_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.event FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER ledger_entry_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.ledger_entry FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER ledger_group_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.ledger_group FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER payment_birth AFTER INSERT ON public.payment FOR EACH ROW EXECUTE FUNCTION record_birth();
CREATE TRIGGER settlement_birth AFTER INSERT ON public.settlement FOR EACH ROW EXECUTE FUNCTION record_birth();
CREATE TRIGGER transaction_move AFTER INSERT OR UPDATE OF state ON public.transaction FOR EACH ROW EXECUTE FUNCTION record_transaction();
CREATE TRIGGER transfer_birth AFTER INSERT ON public.transfer FOR EACH ROW EXECUTE FUNCTION record_birth();
