import { openDb } from "../../db/open.ts";
import { checkLedger } from "../../payments/accounting/check-ledger.ts";
import { execute } from "../support/execute-sql.ts";

/** The rows of the database, with amounts as bigint and addresses in lower case. */
export type Rows = {
  payments: {
    id: string;
    mode: "live" | "test";
    state: string;
    txId: string | null;
    amount: bigint | null;
    optionId: string | null;
    settlementId: string | null;
    /** Unix seconds. */
    expiresAt: number;
  }[];
  options: {
    id: string;
    paymentId: string;
    kind: string;
    token: string;
    payer: string;
    receiver: string;
    amount: bigint;
    nonce: string;
  }[];
  attempts: { id: string; paymentId: string; state: string }[];
  transfers: {
    id: string;
    purpose: string;
    paymentId: string | null;
    settlementId: string | null;
    token: string;
    payer: string;
    receiver: string;
    amount: bigint;
    nonce: string;
    state: string;
  }[];
  transactions: {
    /** `eip155` or `solana`. */
    family: string;
    lane: string;
    nonce: number;
    replacement: number;
    hash: string;
    bytes: string;
    maxFee: bigint;
    /** The booked fee of a Solana transaction, lamports. */
    fee: bigint | null;
    state: string;
  }[];
  settlements: {
    id: string;
    mode: "live" | "test";
    state: string;
    amount: bigint;
    asset: string;
    /** CAIP-10. */
    destination: string | null;
  }[];
  entries: {
    groupId: number;
    kind: string;
    txHash: string | null;
    logIndex: number | null;
    account: string;
    asset: string;
    amount: bigint;
  }[];
  balances: { merchantId: string; asset: string; amount: bigint }[];
  /** The height up to which each chain is final and recorded. */
  cursors: { chain: string; finalNumber: number }[];
  /** Sums of small deposits that become exceptions at the end of their day. */
  dust: { asset: string; amount: bigint }[];
  /** Movements that could not be booked and need an operator. */
  failedBookings: { kind: string; subject: string; error: string }[];
  /** Rows of one mode that reference rows of the other. */
  mixed: { what: string; id: string }[];
};

const queries: Record<keyof Rows, string> = {
  payments: `select id, mode, state, tx_id "txId", paid_amount::text amount, option_id "optionId",
    settlement_id "settlementId", extract(epoch from expires_at)::int "expiresAt" from payment`,
  options: `select id, payment_id "paymentId", kind, token, payer, receiver, amount::text amount,
    authorization_nonce nonce from payment_option`,
  attempts: `select id, payment_id "paymentId", state from attempt`,
  transfers: `select id, purpose, payment_id "paymentId", settlement_id "settlementId", token, payer, receiver,
    amount::text amount, authorization_nonce nonce, state from transfer`,
  transactions: `select split_part(chain, ':', 1) family, split_part(lane_id, ':', -1) lane, nonce::int nonce, replacement::int replacement, hash,
    '0x' || encode(bytes, 'hex') bytes, max_fee_per_gas::text "maxFee", fee::text fee, state from transaction`,
  settlements: `select id, mode, state, amount::text amount, asset, destination from settlement`,
  entries: `select g.id::int "groupId", g.kind, g.tx_hash "txHash", g.log_index "logIndex", e.account, e.asset,
    e.amount::text amount from ledger_entry e join ledger_group g on g.id = e.group_id`,
  balances: `select merchant_id "merchantId", asset, amount::text amount from merchant_balance`,
  cursors: `select chain, final_number::int "finalNumber" from chain_cursor`,
  dust: `select asset, amount::text amount from dust where group_id is null`,
  failedBookings: `select kind, subject, error from failed_booking`,
  mixed: `select 'payment and merchant' what, p.id from payment p join merchant m on m.id = p.merchant_id where m.mode <> p.mode
    union all select 'payment and settlement', p.id from payment p join settlement s on s.id = p.settlement_id where s.mode <> p.mode
    union all select 'settlement and merchant', s.id from settlement s join merchant m on m.id = s.merchant_id where m.mode <> s.mode
    union all select 'transfer of a test payment', t.id from transfer t join payment p on p.id = t.payment_id where p.mode = 'test'
    union all select 'transfer of a test payout', t.id from transfer t join settlement s on s.id = t.settlement_id where s.mode = 'test'`,
};
const big = new Set(["amount", "maxFee", "fee"]);

/** Reads all rows that the invariants check, by plain SQL. */
export async function readRows(databaseUrl: string): Promise<Rows> {
  const read: Record<string, unknown[]> = {};
  for (const [name, query] of Object.entries(queries)) {
    const rows = await execute(databaseUrl, query);
    read[name] = rows.map((row) =>
      Object.fromEntries(Object.entries(row).map(([key, value]) => [key, toValue(key, value)])),
    );
  }
  return read as Rows;
}

function toValue(key: string, value: unknown): unknown {
  return big.has(key) && typeof value === "string" ? BigInt(value) : value;
}

/** Counts the effects of the faults: a run without effects proves nothing. */
export async function countEffects(databaseUrl: string): Promise<Record<string, number>> {
  const [row] = await execute(
    databaseUrl,
    `select (select count(*) from transaction where replacement > 0)::int as "transactions replaced",
      (select count(*) from observation where orphaned)::int as "observations orphaned",
      (select count(*) from event where machine = 'transfer' and from_state = 'assigned' and to_state = 'ready')::int as "transfers taken out",
      (select count(*) from transfer where retries > 0)::int as "transfers delayed",
      (select count(*) from transfer t join observation s on s.transfer_id = t.id and not s.orphaned
        where not exists (select from transaction x where x.hash = s.tx_hash))::int as "relayed by third parties",
      (select count(*) from event where machine = 'attempt' and to_state = 'refused')::int as "attempts refused",
      (select count(distinct (detail ->> 'reorg', at)) from event where detail ? 'reorg')::int as "reorgs that took transfers",
      (select count(*) from transaction where state = 'expired')::int as "transactions expired",
      (select count(*) from transaction where reverted and chain like 'solana:%')::int as "failed on Solana",
      (select count(*) from event where detail ? 'slotGone')::int as "slots gone with a transfer"`,
  );
  return row as Record<string, number>;
}

/** Counts the payments that are final. */
export async function countEnded(databaseUrl: string): Promise<number> {
  const [row] = await execute(
    databaseUrl,
    "select count(*)::int as ended from payment where state not in ('requires_action', 'processing')",
  );
  return Number(row?.["ended"]);
}

/** Lists what the service's own check of all rows reports, which is nothing after any sequence of faults. */
export async function listContradictions(databaseUrl: string): Promise<string[]> {
  const db = openDb(databaseUrl, { max: 1, applicationName: "faults" });
  try {
    const findings = await checkLedger(db, { since: undefined });
    return findings.map(({ kind, subject, found, expected }) => `${kind} ${subject}: ${found} instead of ${expected}`);
  } finally {
    await db.destroy();
  }
}
