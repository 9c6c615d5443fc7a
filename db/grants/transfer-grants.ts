import type { SolanaTables } from "../tables/solana-tables.ts";
import type { TransferTables } from "../tables/transfer-tables.ts";
import { type GrantsOf, ofWorkers, read, readers, write, writeAndDelete } from "./privileges.ts";

/** The columns of a transfer and of a transaction that the operator console reads: no signatures and signed bytes. */
const shownTransfer = [
  "id",
  "purpose",
  "payment_id",
  "settlement_id",
  "refund_id",
  "kind",
  "chain",
  "asset",
  "token",
  "payer",
  "receiver",
  "amount",
  "authorization_nonce",
  "state",
  "lane_id",
  "lane_nonce",
  "hold_until",
  "retries",
  "last_error",
  "created_at",
  "due_at",
] as const;
const shownTransaction = [
  "lane_id",
  "nonce",
  "replacement",
  "chain",
  "hash",
  "gas_limit",
  "max_fee_per_gas",
  "max_priority_fee_per_gas",
  "state",
  "created_at",
  "block_number",
  "gas_used",
  "fee",
] as const;
/** The columns of a transfer and of a transaction that hold no signature and no signed bytes. */
const readableTransfer = [
  ...shownTransfer,
  "valid_before",
  "last_valid_height",
  "smart_wallet",
  "code_hash",
  "alone",
  "due_retries",
] as const;
const readableTransaction = [
  ...shownTransaction,
  "last_valid_height",
  "signed_height",
  "nonce_account",
  "nonce_value",
  "nonce_slot",
  "broadcast_at",
  "block_id",
  "gas_price",
  "reverted",
] as const;

export const transferGrants: GrantsOf<TransferTables & SolanaTables> = {
  transfer: {
    api: { select: readableTransfer },
    worker: write,
    board: { select: shownTransfer },
    reader: { select: readableTransfer },
    admin: { select: "all", update: ["due_at", "hold_until", "payer", "receiver", "signature"] },
  },
  burned_gas: { ...readers, worker: writeAndDelete },
  lane: { ...ofWorkers, board: read },
  transaction: {
    api: { select: readableTransaction },
    worker: write,
    board: { select: shownTransaction },
    admin: read,
    reader: { select: readableTransaction },
  },
  created_account: ofWorkers,
  payout_marker: { ...readers, worker: writeAndDelete },
  account_cursor: ofWorkers,
  history_entry: { ...readers, worker: writeAndDelete },
};
