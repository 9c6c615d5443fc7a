import { parseTransaction } from "viem";
import { ChainError } from "../../chains/errors.ts";
import { toFeeMembers } from "../../chains/evm/fee-members.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import { keccak256 } from "../../chains/keccak256.ts";
import { advanceCursor, type Cursor } from "../../db/queries/chain-cursors.ts";
import { addressOfLane } from "../../db/queries/lanes.ts";
import { type EvmTransactionRow, insertTransaction } from "../../db/queries/transactions.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { WATCH_LEASE_MS } from "../watch-lease.ts";
import type { Fees } from "./gas-fees.ts";
import { priceReplacement } from "./price-transaction.ts";

/**
 * Replaces a transaction. Returns undefined when the signing service is unavailable or another watcher has the cursor, so
 * that transactions that are already signed, in this and other lanes, are still broadcast.
 */
export async function replaceTransaction(
  deps: TransferDeps,
  chain: EvmChain,
  row: EvmTransactionRow,
  at: { baseFee: bigint; cursor: Cursor },
): Promise<EvmTransactionRow | undefined> {
  return signReplacement(deps, chain, row, at).catch((err: unknown) => {
    if (!(err instanceof ChainError)) throw err;
    deps.log.error(
      { err, chain: chain.chain, lane: row.lane_id, nonce: row.nonce },
      "stuck transaction cannot be replaced",
    );
    return undefined;
  });
}

/**
 * Signs the same content with a higher fee and stores it. Returns undefined when the fee ceiling forbids it. Throws
 * ChainError `rpc_behind` when another watcher has taken the cursor: it may have made the original final, after which nothing
 * would mark the replacement as replaced.
 */
async function signReplacement(
  deps: TransferDeps,
  chain: EvmChain,
  row: EvmTransactionRow,
  { baseFee, cursor }: { baseFee: bigint; cursor: Cursor },
): Promise<EvmTransactionRow | undefined> {
  const signer = deps.keys.get(chain.chain)?.lanes.find(({ address }) => address === addressOfLane(row.lane_id));
  if (!signer) return undefined;
  const { to, data } = parseTransaction(`0x${row.bytes.toString("hex")}`);
  if (!to || !data) throw new Error(`transaction ${row.hash} has no receiver or no data`);
  const payload = { to, data, gas: row.gas_limit };
  const fees = await priceReplacement(chain, { before: feesOf(row), payload, baseFee });
  if (!fees) return undefined;

  const signed = await signer.signTransaction({
    chainId: chain.chainId,
    nonce: row.nonce,
    ...payload,
    ...toFeeMembers(chain.network.feeModel, fees),
  });
  const bytes = Buffer.from(signed.slice(2), "hex");
  const next: EvmTransactionRow = {
    ...row,
    replacement: row.replacement + 1,
    hash: keccak256(bytes),
    bytes,
    max_fee_per_gas: fees.maxFeePerGas,
    max_priority_fee_per_gas: fees.maxPriorityFeePerGas,
    signed_height: cursor.number,
    state: "signed",
    created_at: deps.now(),
    broadcast_at: null,
  };
  const stored = await deps.db.transaction().execute(async (db) => {
    // Keeps other watchers from taking the cursor until the replacement is stored.
    if (!(await advanceCursor(db, cursor, { ...cursor, leaseMs: WATCH_LEASE_MS }))) return false;
    await insertTransaction(db, next);
    return true;
  });
  if (!stored) throw new ChainError("rpc_behind", { detail: `another watcher has moved the cursor of ${chain.chain}` });
  deps.metrics.transactions.inc({ chain: chain.chain, state: "replacing" });
  return next;
}

/** Returns what a stored transaction offers. */
export function feesOf(row: EvmTransactionRow): Fees {
  return { maxFeePerGas: row.max_fee_per_gas, maxPriorityFeePerGas: row.max_priority_fee_per_gas };
}
