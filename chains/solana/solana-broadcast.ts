import { ChainError } from "../errors.ts";
import type { SolanaChain } from "./open-solana-chain.ts";

/** The result of a broadcast. `unknown` means that the transaction may have reached the cluster. */
export type BroadcastResult = { outcome: "accepted" } | { outcome: "unknown"; reason: string };

/**
 * Broadcasts signed bytes once. The endpoint neither simulates nor rebroadcasts them: the transaction was simulated before,
 * and the worker rebroadcasts the same bytes. Does not throw for a transient error, because only the chain shows later
 * whether the transaction happened. Throws any other ChainError.
 */
export async function broadcastBytes(chain: SolanaChain, bytes: Uint8Array): Promise<BroadcastResult> {
  try {
    const params = [Buffer.from(bytes).toString("base64"), { encoding: "base64", skipPreflight: true, maxRetries: 0 }];
    await chain.rpc.queryOnce("sendTransaction", (_connection, call) => call("sendTransaction", params));
    return { outcome: "accepted" };
  } catch (error) {
    if (!(error instanceof ChainError) || !error.transient) throw error;
    return { outcome: "unknown", reason: error.message };
  }
}
