import type { Hex } from "viem";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import { keccak256 } from "../../chains/keccak256.ts";
import { commitIfOk } from "../../db/in-transaction.ts";
import { type LaneLease, useNonce } from "../../db/queries/lanes.ts";
import { insertTransaction, type TransactionKey } from "../../db/queries/transactions.ts";
import { assignTransfers, type EvmTransferRow } from "../../db/queries/transfers.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import type { Fees } from "./gas-fees.ts";
import { LEASE_MS } from "./lane-capacity.ts";

/**
 * A signed transaction: its key, its bytes, its gas limit, its fees (wei per gas), the newest block that was read, and the
 * transfers in it.
 */
type SignedBatch = {
  key: TransactionKey;
  bytes: Hex;
  gas: bigint;
  fees: Fees;
  height: number | null;
  rows: readonly EvmTransferRow[];
};

/**
 * Uses the nonce, stores the bytes and assigns the transfers in one database transaction. Returns false when this worker no
 * longer holds the lane or one of the transfers, or when one of them has changed.
 */
export async function storeSigned(
  deps: TransferDeps,
  chain: EvmChain,
  lease: LaneLease,
  { key, bytes: signed, gas, fees, height, rows }: SignedBatch,
): Promise<boolean> {
  const now = deps.now();
  const bytes = Buffer.from(signed.slice(2), "hex");
  const stored = await commitIfOk(deps.db, async (db) => {
    const ours = await useNonce(db, lease, { nonce: key.nonce, leaseMs: LEASE_MS });
    if (!ours) return { ok: false };
    await insertTransaction(db, {
      ...key,
      chain: chain.chain,
      hash: keccak256(bytes),
      bytes,
      gas_limit: gas,
      max_fee_per_gas: fees.maxFeePerGas,
      max_priority_fee_per_gas: fees.maxPriorityFeePerGas,
      signed_height: height,
      state: "signed",
      created_at: now,
      broadcast_at: null,
      block_number: null,
      block_id: null,
      gas_used: null,
      gas_price: null,
      fee: null,
      reverted: null,
    });
    const assigned = await assignTransfers(db, { calls: rows, laneId: key.lane_id, nonce: key.nonce, at: now });
    return { ok: assigned.length === rows.length };
  });
  if (!stored.ok) return false;
  for (const { purpose } of rows)
    deps.metrics.transferTransitions.inc({ chain: chain.chain, purpose, from: "ready", to: "assigned" });
  return true;
}
