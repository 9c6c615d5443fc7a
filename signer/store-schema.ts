/** The append-only tables of the signer's store. Each has triggers that reject updates and deletions. */
const tables: Readonly<Record<string, string>> = {
  // A movement into the treasury that the signer's own endpoints have shown to be final. One log counts once.
  // `merchant_total`: the sum of the merchant's deposits of the asset up to this row.
  deposit: `
    id integer primary key,
    chain text not null,
    tx_hash text not null,
    log_index integer not null,
    asset text not null,
    amount text not null,
    payer text not null,
    merchant_id text not null,
    payment_id text not null,
    block_number integer not null,
    merchant_total text not null,
    verified_at integer not null,
    unique (chain, tx_hash, log_index)`,
  // A deposit that was recorded when one endpoint had shown it, because its amount is below `agreementThreshold`. `treasury` received it.
  // `lone_total`: the sum of the asset's lone deposits up to this row. `by_signed_bytes`: 1 if the signed bytes of the transaction say
  // what it moves, so that an endpoint only has to list it.
  lone_deposit: `
    id integer primary key,
    deposit_id integer not null unique references deposit (id),
    treasury text not null,
    asset text not null,
    lone_total text not null,
    by_signed_bytes integer not null`,
  // Two endpoints have shown all lone deposits of the asset up to this one.
  deposit_agreement: `
    id integer primary key,
    asset text not null,
    lone_id integer not null references lone_deposit (id),
    at integer not null`,
  // How amounts of an asset count, as the networks file had it; the newest row of an asset counts. The file may lose the asset, and
  // its payouts must still count. `payout_kind`: how `treasury` pays the asset out; the newest row of both counts.
  asset: `
    id integer primary key,
    asset text not null,
    peg text not null,
    decimals integer not null,
    treasury text not null,
    payout_kind text not null,
    recorded_at integer not null`,
  // A payout that was authorized. A row is added before its signature is made, and one more when the same nonce is signed for
  // a higher amount. The chain accepts one transfer for each asset and nonce, so `counted` is what the row adds to the highest
  // amount before it. `treasury` would make the transfer: another one has unused nonces, and signs none of these. The
  // totals are sums of `counted` up to this row, so that a sliding window costs a few index look-ups.
  payout: `
    id integer primary key,
    nonce text not null,
    kind text not null,
    treasury text not null,
    asset text not null,
    amount text not null,
    counted text not null,
    receiver text not null,
    merchant_id text,
    payment_id text,
    merchant_total text,
    asset_total text not null,
    signed_at integer not null,
    check ((merchant_id is null) = (merchant_total is null))`,
  // A payout that was authorized while its merchant was new. `asset_total`: the sum of `counted` of the asset's rows up to this one.
  new_merchant_payout: `
    id integer primary key,
    payout_id integer not null unique references payout (id),
    asset text not null,
    counted text not null,
    asset_total text not null,
    signed_at integer not null`,
  // The clock had gone back when a payout was recorded: from the time of the payout before it (`before_at`) to its own. The rows of a
  // window that begins before `before_at` are not in the order of their times.
  clock_step: `
    id integer primary key,
    before_at integer not null,
    after_at integer not null`,
  // A transfer of the treasury's excess to the cold address, recorded before it is signed. The chain accepts one transfer for each
  // number. A number has a second row if the limits file names another address before the transfer is made.
  cold_transfer: `
    id integer primary key,
    treasury text not null,
    asset text not null,
    number integer not null,
    amount text not null,
    receiver text not null,
    signed_at integer not null`,
  // A treasury of a store that was lost. Signatures that are unknown now can move its money, so it signs no payout again. While one
  // is `begun` and not `ended`, the payouts that the chain shows are not recorded yet, and nothing is signed at all.
  retired_treasury: `
    id integer primary key,
    chain text not null,
    treasury text not null,
    state text not null check (state in ('begun', 'ended')),
    at integer not null,
    unique (chain, treasury, state)`,
  // Solana: a transaction that can make the payout of a marker, with the value of the durable nonce with which it can be
  // included. It is recorded before it is signed. `slot`: the endpoint had reached it when the nonce had this value.
  payout_transaction: `
    id integer primary key,
    chain text not null,
    marker text not null,
    nonce_account text not null,
    nonce text not null,
    slot integer not null,
    signed_at integer not null,
    unique (chain, marker, nonce_account, nonce)`,
  // Solana: a marker for which a closing transaction was signed. Its payout is never signed again. `slot`: a final slot that
  // includes the payout.
  closed_marker: `
    id integer primary key,
    chain text not null,
    marker text not null,
    slot integer not null,
    signed_at integer not null,
    unique (chain, marker)`,
  // The receiver of a merchant's settlements of an asset, as a worker first reported it. The signer's clock sets claimed_at.
  // `applies_at`: the end of the waiting period; null if it applied at once. A claim that waits applies with its event only.
  destination: `
    id integer primary key,
    merchant_id text not null,
    asset text not null,
    receiver text not null,
    claimed_at integer not null,
    applies_at integer`,
  // What ended the waiting of a destination. A statement is used once, so a copy of it decides nothing later. `applied`: the
  // period had ended while the signer ran and was not paused. `replaced`: workers reported another change, or that the
  // service has withdrawn or left this one.
  destination_event: `
    id integer primary key,
    destination_id integer not null references destination (id),
    kind text not null check (kind in ('approved', 'rejected', 'applied', 'replaced')),
    statement text unique,
    signer text,
    at integer not null,
    check ((kind in ('applied', 'replaced')) = (statement is null) and (statement is null) = (signer is null))`,
  // The receiver that the service pays a merchant's settlements of an asset to, each time that workers reported another one; the
  // newest row counts. A claim applies by the clock only if it is this receiver's.
  served_destination: `
    id integer primary key,
    merchant_id text not null,
    asset text not null,
    receiver text not null,
    at integer not null`,
  // The public key by which a merchant approves changes of its destinations, as a worker first reported it.
  approval_key: `
    id integer primary key,
    merchant_id text not null,
    public_key text not null,
    claimed_at integer not null,
    applies_at integer not null,
    unique (merchant_id, public_key)`,
  // `applied`: the waiting period of a key had ended while the signer ran and was not paused. `revoked`: for good, by a report
  // of a worker (without a statement) or by a signed statement.
  approval_key_event: `
    id integer primary key,
    approval_key_id integer not null references approval_key (id),
    kind text not null check (kind in ('applied', 'revoked')),
    statement text,
    signer text,
    at integer not null,
    unique (approval_key_id, kind),
    check ((statement is null) = (signer is null) and (kind = 'revoked' or statement is null))`,
  // The limits file, each time that its content was another one. `sha256`: of its bytes, null while it cannot be read.
  limits_file: `
    id integer primary key,
    sha256 text,
    state text not null check (state in ('valid', 'paused', 'unusable')),
    at integer not null`,
  // A time in which no signer ran. Claims that became due in it wait for a while after its end. A row of no length corrects the end of
  // the stop before it, if a clock that was ahead has recorded that end.
  stop: `
    id integer primary key,
    from_at integer not null,
    until_at integer not null`,
  // The audit log (signer/audit). `before` and `after` are JSON; the hash is that of runtime/audit-chain.ts.
  audit_entry: `
    id integer primary key,
    day text not null,
    sequence integer not null,
    at integer not null,
    actor_kind text not null check (actor_kind in ('operator', 'merchant', 'worker', 'signer')),
    actor_id text not null,
    actor_address text,
    action text not null,
    subject text not null,
    before text,
    after text,
    hash blob not null,
    unique (day, sequence)`,
  // The last entry of each day that has ended. A day with a head takes no more entries.
  audit_head: `
    id integer primary key,
    day text not null unique,
    sequence integer not null,
    hash text not null,
    at integer not null`,
  // A head that the sink has accepted.
  exported_head: `
    id integer primary key,
    day text not null unique,
    at integer not null`,
};

/** The one row that changes: when a signer ran last. It decides nothing but how long claims wait after a stop. */
const lastRun = `
  create table if not exists last_run (id integer primary key check (id = 1), at integer not null) strict;`;

const indexes = `
  create index if not exists asset_asset on asset (asset, id);
  create index if not exists deposit_merchant on deposit (merchant_id, asset, id);
  create index if not exists deposit_payment on deposit (payment_id, asset);
  create index if not exists deposit_merchant_time on deposit (merchant_id, verified_at);
  create index if not exists lone_deposit_asset on lone_deposit (asset, id);
  create index if not exists deposit_agreement_asset on deposit_agreement (asset, id);
  create index if not exists payout_nonce on payout (nonce, asset);
  create index if not exists payout_merchant on payout (merchant_id, asset, id);
  create index if not exists payout_merchant_time on payout (merchant_id, asset, signed_at);
  create index if not exists payout_asset on payout (asset, id);
  create index if not exists payout_asset_time on payout (asset, signed_at);
  create index if not exists payout_payment on payout (payment_id, asset) where payment_id is not null;
  create index if not exists payout_without_merchant on payout (id) where kind not in ('settlement', 'refund');
  create index if not exists payout_past on payout (merchant_id) where signed_at = 0;
  create index if not exists payout_withdrawal on payout (treasury) where kind = 'withdrawal';
  create index if not exists new_merchant_payout_asset on new_merchant_payout (asset, id);
  create index if not exists new_merchant_payout_asset_time on new_merchant_payout (asset, signed_at);
  create index if not exists clock_step_before on clock_step (before_at);
  create index if not exists cold_transfer_asset on cold_transfer (treasury, asset, id);
  create index if not exists destination_merchant on destination (merchant_id, asset, id);
  create index if not exists destination_waited on destination (id) where applies_at is not null;
  create index if not exists served_destination_merchant on served_destination (merchant_id, asset, id);
  create index if not exists destination_event_destination on destination_event (destination_id);
  create index if not exists audit_entry_action on audit_entry (action, id);`;

/** The statements that create the store. They change nothing in a store that exists. Times are in Unix milliseconds. */
export const storeSchema = [
  ...Object.entries(tables).map(
    ([name, columns]) => `
      create table if not exists ${name} (${columns}) strict;
      create trigger if not exists ${name}_no_update before update on ${name}
        begin select raise(abort, '${name} is append-only'); end;
      create trigger if not exists ${name}_no_delete before delete on ${name}
        begin select raise(abort, '${name} is append-only'); end;`,
  ),
  lastRun,
  indexes,
].join("\n");
