import { BaseError } from "viem";
import { ChainError } from "../../chains/errors.ts";
import { isUnavailable, type Rpc } from "../../chains/evm/evm-rpc.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import type { Cursor } from "../../db/queries/chain-cursors.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import { maxBehindMs } from "./second-reading.ts";

/** How long an endpoint that was passed over is not waited for, milliseconds. */
const PASSED_OVER_MS = 5 * 60_000;

/** The cursor's block after which an endpoint does not show everything, since when, and until when it is not waited for. Unix ms. */
type Shortfall = { blockId: string; since: number; notWaitedForUntil: number };

const shortfalls = new WeakMap<Rpc, Shortfall>();

/**
 * Reads the blocks after a cursor from one endpoint. An endpoint may show a block and never the receipt of one of its transactions,
 * because its index of transactions has a gap or is being built. It is waited for as long as one that is behind. After that this
 * throws ChainError `logs_refused`, so that the next endpoint reads the blocks. Throws the error of `read` otherwise.
 */
export async function readUnlessIncomplete<T>(
  deps: Pick<TransferDeps, "now">,
  { network, endpoints }: Pick<EvmChain, "network" | "endpoints">,
  { rpc, cursor }: { rpc: Rpc; cursor: Cursor },
  read: () => Promise<T>,
): Promise<T> {
  const now = deps.now().getTime();
  const known = shortfalls.get(rpc);
  const isPassedOver = known !== undefined && now < known.notWaitedForUntil;
  try {
    const value = await read();
    // A block without a transaction of ours shows nothing about the endpoint's receipts.
    if (!isPassedOver) shortfalls.delete(rpc);
    return value;
  } catch (cause) {
    if (endpoints.length < 2 || !isShortfall(cause)) throw cause;
    const since = known?.blockId === cursor.blockId ? known.since : now;
    const isOver = isPassedOver || now - since >= maxBehindMs(network);
    const notWaitedForUntil = isOver && !isPassedOver ? now + PASSED_OVER_MS : (known?.notWaitedForUntil ?? 0);
    shortfalls.set(rpc, { blockId: cursor.blockId, since, notWaitedForUntil });
    if (!isOver) throw cause;
    throw new ChainError("logs_refused", { cause, detail: cause.message });
  }
}

/** Returns true for the error of an endpoint that answers and does not show what its blocks contain. */
function isShortfall(error: unknown): error is Error {
  if (error instanceof ChainError) return error.code === "rpc_behind" || error.code === "rpc_answer";
  return error instanceof BaseError && !isUnavailable(error);
}
