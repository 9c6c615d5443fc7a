import { ChainError } from "../errors.ts";
import type { SolanaChain } from "./open-solana-chain.ts";

/** The result of a broadcast. `unknown` means that the transaction may have reached the cluster. */
export type BroadcastResult = { outcome: "accepted" } | { outcome: "unknown"; reason: string };

/** The endpoint neither simulates nor rebroadcasts: a transaction was checked before, and the worker rebroadcasts its bytes. */
const OPTIONS = { encoding: "base64", skipPreflight: true, maxRetries: 0 };

/**
 * Broadcasts signed bytes with one request, each transaction once, and returns the results in order. Does not throw for a
 * transient error, because only the chain shows later whether a transaction happened. Throws any other ChainError.
 */
export async function broadcastBytes(chain: SolanaChain, all: readonly Uint8Array[]): Promise<BroadcastResult[]> {
  const params = all.map((bytes) => [Buffer.from(bytes).toString("base64"), OPTIONS]);
  try {
    const outcomes = await chain.rpc.queryOnce(
      "sendTransaction",
      (_connection, _call, callMany) => callMany("sendTransaction", params),
      all.length,
    );
    return outcomes.map((one) => ("error" in one ? toUnknown(one.error) : { outcome: "accepted" }));
  } catch (error) {
    if (!(error instanceof ChainError) || !error.transient) throw error;
    return all.map(() => toUnknown(error));
  }
}

const toUnknown = (error: ChainError): BroadcastResult => ({ outcome: "unknown", reason: error.message });
