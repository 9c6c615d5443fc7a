import { BaseError } from "viem";
import { ChainError } from "../../chains/errors.ts";
import { isUnavailable, type Rpc } from "../../chains/evm/evm-rpc.ts";
import type { EvmChain } from "../../chains/evm/open-evm-chain.ts";
import type { Cursor } from "../../db/queries/chain-cursors.ts";
import { maxBehindMs } from "../endpoint-waits.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import type { Reading } from "./read-blocks.ts";

/** The cursor's block after which an endpoint does not show everything, since when (Unix ms), and whether it is waited for. */
type Shortfall = { blockId: string; since: number; isPassedOver: boolean };

const shortfalls = new WeakMap<Rpc, Shortfall>();

/**
 * Reads the blocks after a cursor from one endpoint. An endpoint may show a block and never the receipt of one of its transactions,
 * because its index of transactions has a gap or is being built, or may answer with what cannot be read. It is waited for as long as
 * one that is behind. After that this throws ChainError `logs_refused`, so that the next endpoint reads the blocks, until the endpoint
 * has shown a block with transactions that concern us. Throws the error of `read` otherwise.
 */
export async function readUnlessIncomplete(
  deps: Pick<TransferDeps, "now">,
  { network, endpoints }: Pick<EvmChain, "network" | "endpoints">,
  { rpc, cursor }: { rpc: Rpc; cursor: Cursor },
  read: () => Promise<Reading | undefined>,
): Promise<Reading | undefined> {
  const now = deps.now().getTime();
  const known = shortfalls.get(rpc);
  try {
    const reading = await read();
    // Other blocks show nothing about the endpoint's receipts.
    const hasContent = reading !== undefined && (reading.landed.length > 0 || reading.seen.length > 0);
    if (hasContent || !known?.isPassedOver) shortfalls.delete(rpc);
    return reading;
  } catch (cause) {
    if (endpoints.length < 2 || !isShortfall(cause)) throw cause;
    const since = known?.blockId === cursor.blockId ? known.since : now;
    const isPassedOver = known?.isPassedOver === true || now - since >= maxBehindMs(network.blockMs);
    shortfalls.set(rpc, { blockId: cursor.blockId, since, isPassedOver });
    if (!isPassedOver) throw cause;
    throw new ChainError("logs_refused", { cause, detail: cause.message });
  }
}

/** Returns true for the error of an endpoint that answers and does not show what its blocks contain in a form that can be read. */
function isShortfall(error: unknown): error is Error {
  if (error instanceof ChainError) return error.code === "rpc_behind" || error.code === "rpc_answer";
  return error instanceof BaseError && !isUnavailable(error);
}
