import { encodeFunctionData, type Hex, hexToBigInt, parseAbi } from "viem";
import { tokenAbi } from "../chains/evm/abi.ts";
import { pairLogs, readUses, type SeenTransfer } from "../chains/evm/blocks.ts";
import { simulateCalls } from "../chains/evm/multicall.ts";
import type { EvmChain } from "../chains/evm/open.ts";
import { readReceipt } from "../chains/evm/send.ts";
import { ChainFault } from "../chains/faults.ts";
import { type Cursor, findBlock } from "../db/cursors.ts";
import { moveRows } from "../db/moves.ts";
import type { Db } from "../db/tables.ts";
import { listOutlived, type TransferRow } from "../db/transfers.ts";
import type { TransferDeps } from "./deps.ts";
import { isProof, recordBlocks } from "./record.ts";

/** Books transfers that can no longer come, in the transaction that ends them. Gives what is to be done after the commit. */
export type EndedBook = (db: Db, ended: readonly TransferRow[]) => Promise<() => void>;

/** Transfers looked at in one turn. */
const MOST = 50;
/** Blocks searched in one call; what most endpoints allow. */
const SEARCHED = 5_000;

/**
 * Ends transfers whose money can no longer come: the final chain's own clock is past `validBefore`, and the
 * authorization is unused, or was used for something else or cancelled. Nothing less ends an accepted transfer. One
 * that was made after all, and whose log no reading has shown, is found here and recorded.
 */
export async function endOutlived(
  deps: TransferDeps,
  chain: EvmChain,
  args: { cursor: Cursor; book: EndedBook },
): Promise<void> {
  const { finalNumber } = args.cursor;
  const final = await findBlock(deps.db, { chain: chain.chain, number: finalNumber });
  if (!final) return;
  const outlived = await listOutlived(deps.db, { chain: chain.chain, chainTime: final.at, limit: MOST });
  if (outlived.length === 0) return;
  const used = await readUsed(chain, outlived, finalNumber);
  for (const transfer of outlived) {
    const made = used.has(transfer.id)
      ? await findMade(chain, transfer, { number: finalNumber, at: final.at })
      : undefined;
    if (made) await recordFound(deps, chain, made);
    else await end(deps, transfer, args.book);
  }
}

/**
 * Which of the authorizations the token has marked as used or cancelled, by a block no earlier than the final one:
 * every later block is past `validBefore` as well. Asked at the newest block, because endpoints forget old states.
 */
async function readUsed(chain: EvmChain, transfers: readonly TransferRow[], finalNumber: number): Promise<Set<string>> {
  const states = transfers.map((transfer) => ({
    target: transfer.token as Hex,
    data: encodeFunctionData({
      abi: tokenAbi,
      functionName: "authorizationState",
      args: [transfer.payer as Hex, transfer.authorization_nonce as Hex],
    }),
  }));
  const height = {
    target: chain.multicall,
    data: encodeFunctionData({ abi: heightAbi, functionName: "getBlockNumber" }),
  };
  const [at, ...answers] = await simulateCalls(chain.rpc, { multicall: chain.multicall }, [height, ...states]);
  if (!at?.ok || hexToBigInt(at.data) < BigInt(finalNumber))
    throw new ChainFault("rpc_behind", { detail: `block ${finalNumber}` });
  const used = transfers.filter((_transfer, index) => {
    const answer = answers[index];
    if (!answer?.ok) throw new ChainFault("rpc_answer", { detail: "authorizationState" });
    return hexToBigInt(answer.data) !== 0n;
  });
  return new Set(used.map((transfer) => transfer.id));
}

const heightAbi = parseAbi(["function getBlockNumber() view returns (uint256)"]);

/** The movement that used a transfer's authorization, if it was the transfer's own. Searches backwards to its creation. */
async function findMade(
  chain: EvmChain,
  transfer: TransferRow,
  final: { number: number; at: Date },
): Promise<SeenTransfer | undefined> {
  const age = final.at.getTime() - transfer.created_at.getTime();
  // Blocks may come faster than usual; twice as many are searched.
  const oldest = Math.max(0, final.number - Math.ceil((2 * age) / chain.network.blockMs) - SEARCHED);
  const key = {
    token: transfer.token as Hex,
    payer: transfer.payer as Hex,
    nonce: transfer.authorization_nonce as Hex,
  };
  for (let to = final.number; to >= oldest; to -= SEARCHED) {
    for (const hash of await readUses(chain.rpc, { from: Math.max(oldest, to - SEARCHED + 1), to }, key)) {
      const receipt = await readReceipt(chain.rpc, hash);
      if (!receipt) throw new ChainFault("rpc_behind", { detail: `receipt of ${hash}` });
      const made = pairLogs(receipt.logs).find((log) => isProof(log, transfer));
      if (made) return made;
    }
  }
  return undefined;
}

async function recordFound(deps: TransferDeps, chain: EvmChain, made: SeenTransfer): Promise<void> {
  deps.log.warn({ chain: chain.chain, tx: made.txHash }, "a transfer had been made and no reading had shown it");
  const reading = { blocks: [], seen: [made], landed: [] };
  const count = await deps.db.transaction().execute((db) => recordBlocks(db, deps, chain, reading));
  count();
}

async function end(deps: TransferDeps, transfer: TransferRow, book: EndedBook): Promise<void> {
  const afterCommit = await deps.db.transaction().execute(async (db) => {
    const from = transfer.state as "ready" | "carried";
    const move = { ids: [transfer.id], from, to: "ended" as const, at: deps.now(), set: { due_at: null } };
    return (await moveRows(db, "transfer", move)).length === 0 ? undefined : await book(db, [transfer]);
  });
  if (!afterCommit) return;
  const { id, chain, purpose, state, last_trouble: trouble } = transfer;
  deps.log.warn({ transfer: id, trouble }, "a transfer's authorization has run out without it");
  deps.metrics.transferMoves.inc({ chain, purpose, from: state, to: "ended" });
  afterCommit();
}
