import { encodeFunctionData, type Hex, numberToHex } from "viem";
import { tokenAbi } from "../chains/evm/abi.ts";
import type { EvmChain } from "../chains/evm/open.ts";
import { type Cursor, findBlock } from "../db/cursors.ts";
import { moveRows } from "../db/moves.ts";
import type { Db } from "../db/tables.ts";
import { listOutlived, type TransferRow } from "../db/transfers.ts";
import type { TransferDeps } from "./deps.ts";

/** Books transfers that can no longer come, in the transaction that ends them. Gives what is to be done after the commit. */
export type EndedBook = (db: Db, ended: readonly TransferRow[]) => Promise<() => void>;

/** Transfers looked at in one turn. */
const MOST = 50;

/**
 * Ends transfers whose money can no longer come: the final chain's own clock is past `validBefore`, and its state says
 * that the authorization is unused. Nothing less ends an accepted transfer; a used one is found by its logs.
 */
export async function endOutlived(
  deps: TransferDeps,
  chain: EvmChain,
  args: { cursor: Cursor; book: EndedBook },
): Promise<void> {
  const final = await findBlock(deps.db, { chain: chain.chain, number: args.cursor.finalNumber });
  if (!final) return;
  const outlived = await listOutlived(deps.db, { chain: chain.chain, chainTime: final.at, limit: MOST });
  for (const transfer of outlived) {
    if (await isUsed(chain, transfer, args.cursor.finalNumber)) continue;
    const afterCommit = await deps.db.transaction().execute(async (db) => {
      const { id, state } = transfer;
      const ids = await moveRows(db, "transfer", {
        ids: [id],
        from: state as "ready" | "carried",
        to: "ended",
        at: deps.now(),
        set: { due_at: null },
      });
      if (ids.length === 0) return undefined;
      return args.book(db, [transfer]);
    });
    deps.log.warn(
      { transfer: transfer.id, trouble: transfer.last_trouble },
      "a transfer's authorization has run out unused",
    );
    afterCommit?.();
  }
}

async function isUsed(chain: EvmChain, transfer: TransferRow, block: number): Promise<boolean> {
  const data = encodeFunctionData({
    abi: tokenAbi,
    functionName: "authorizationState",
    args: [transfer.payer as Hex, transfer.authorization_nonce as Hex],
  });
  const answer = await chain.rpc({
    method: "eth_call",
    params: [{ to: transfer.token as Hex, data }, numberToHex(block)],
  });
  return BigInt(answer) !== 0n;
}
