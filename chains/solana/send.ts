import { ChainFault } from "../faults.ts";
import type { SolanaChain } from "./open.ts";

/** What an offer of signed bytes came to: an endpoint took them, or nobody knows. */
export type Offer = { outcome: "accepted" } | { outcome: "unknown"; reason: string };

/**
 * Sends signed bytes once. The endpoint does not try them first, nor send them again: that they would go through was
 * seen before, and it is we who send the same bytes again. Never throws for an endpoint's trouble: after sending,
 * nothing but the chain knows.
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
