import type { Receipt } from "../chains/evm/evm-broadcast.ts";
import type { EvmTransactionRow } from "../db/queries/transactions.ts";
import type { TransferRow } from "../db/queries/transfers.ts";

/** A transaction of ours that is in a block. */
type Landed = {
  row: Pick<EvmTransactionRow, "lane_id" | "nonce" | "gas_limit">;
  receipt: Pick<Receipt, "gasUsed" | "blockNumber">;
};

/**
 * The part of its transaction's gas limit that a contract wallet may take when the money moves: enough for usual wallets, and for their
 * deployment. What it takes beyond that counts as burned, because its code decides how much that is. The limit has twice the gas
 * of the data of a rollup (`price-transaction.ts`), so half of it has what that costs, however dear it is.
 */
const WALLET_SHARE = 2n;

/**
 * Returns the gas that each transfer without a log has burned, and the gas that contract wallets took beyond their share. The members
 * of one transaction share its gas.
 */
export function listBurned(
  landed: readonly Landed[],
  found: { proved: readonly TransferRow[]; missing: readonly TransferRow[]; at: Date },
) {
  return landed.flatMap(({ row, receipt }) => {
    const isIn = (member: TransferRow) => member.lane_id === row.lane_id && member.lane_nonce === row.nonce;
    const missing = found.missing.filter(isIn);
    const proved = found.proved.filter(isIn);
    const members = missing.length + proved.length;
    const toRow = ({ id, chain, payer, code_hash, purpose }: TransferRow, gas: bigint, moved: boolean) => ({
      transfer_id: id,
      lane_id: row.lane_id,
      nonce: row.nonce,
      chain,
      payer,
      code_hash,
      purpose,
      gas,
      alone: members === 1,
      moved,
      block_number: receipt.blockNumber,
      at: found.at,
    });
    const excess = receipt.gasUsed - row.gas_limit / WALLET_SHARE;
    const greedy = excess > 0n ? proved.filter((member) => member.smart_wallet) : [];
    return [
      ...missing.map((member) => toRow(member, receipt.gasUsed / BigInt(members), false)),
      ...greedy.map((member) => toRow(member, excess, true)),
    ];
  });
}
