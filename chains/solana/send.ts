import { ChainFault } from "../faults.ts";
import type { SolanaChain } from "./open.ts";

/** The result of a broadcast. `unknown` means that the transaction may have reached the cluster. */
export type Offer = { outcome: "accepted" } | { outcome: "unknown"; reason: string };

/**
 * Broadcasts signed bytes once. The endpoint neither simulates nor rebroadcasts them: the transaction was simulated before,
 * and the worker rebroadcasts the same bytes. Does not throw for a transient error, because only the chain shows later
 * whether the transaction happened. Throws any other ChainFault.
 */
export async function offerBytes(chain: SolanaChain, bytes: Uint8Array): Promise<Offer> {
  try {
    const params = [Buffer.from(bytes).toString("base64"), { encoding: "base64", skipPreflight: true, maxRetries: 0 }];
    await chain.rpc.askOnce("sendTransaction", (_connection, call) => call("sendTransaction", params));
    return { outcome: "accepted" };
  } catch (error) {
    if (!(error instanceof ChainFault) || !error.transient) throw error;
    return { outcome: "unknown", reason: error.message };
  }
}
