import { ChainError } from "../errors.ts";
import type { Call, CallOutcome } from "../json-rpc.ts";
import type { SolanaChain } from "./open-solana-chain.ts";
import { readCode, TRANSACTION_ERRORS } from "./solana-rpc.ts";

/** The endpoints that get a transaction: one after the other until one accepts it, or all. */
export type BroadcastTo = "first_to_accept" | "all";

/** The result of a broadcast. `unknown` means that the transaction may have reached the cluster. */
export type BroadcastResult = { outcome: "accepted" } | { outcome: "unknown"; reason: string };

/** The endpoint neither simulates nor rebroadcasts: a transaction was checked before, and the worker rebroadcasts its bytes. */
const OPTIONS = { encoding: "base64", skipPreflight: true, maxRetries: 0 };
/** Concurrent requests with one transaction each. */
const CONCURRENCY = 4;
/** The errors of an endpoint that say that the transaction itself or its encoding is bad. Another endpoint would say the same. */
const BAD_TRANSACTION: readonly unknown[] = [...TRANSACTION_ERRORS, -32_602];

/**
 * Broadcasts signed bytes with one request, and returns the results in order. Each transaction that the request does not
 * bring to the cluster is sent once more by itself, and then goes from endpoint to endpoint like any call. With `all`, each
 * transaction goes to every endpoint by itself. Does not throw for a transient error, because only the chain shows later whether a
 * transaction happened. Throws any other ChainError.
 */
export async function broadcastBytes(
  chain: SolanaChain,
  all: readonly Uint8Array[],
  to: BroadcastTo = "first_to_accept",
): Promise<BroadcastResult[]> {
  const params = all.map((bytes) => [Buffer.from(bytes).toString("base64"), OPTIONS]);
  const together = to === "first_to_accept" && params.length > 1 ? await sendTogether(chain, params) : [];
  const results: BroadcastResult[] = [];
  for (let from = 0; from < params.length; from += CONCURRENCY) {
    const some = params.slice(from, from + CONCURRENCY);
    results.push(...(await Promise.all(some.map((one, at) => settle(chain, one, { shown: together[from + at], to })))));
  }
  return results;
}

/** Returns the outcomes of a batch, and none when no endpoint has answered it. */
async function sendTogether(chain: SolanaChain, params: readonly unknown[][]): Promise<CallOutcome[]> {
  try {
    return await chain.rpc.queryTogether("sendTransaction", params);
  } catch (error) {
    if (!isTransient(error)) throw error;
    return [];
  }
}

/** Returns the result of a transaction. Sends it by itself unless the batch has shown its result. */
async function settle(
  chain: SolanaChain,
  params: readonly unknown[],
  { shown, to }: { shown: CallOutcome | undefined; to: BroadcastTo },
): Promise<BroadcastResult> {
  const send = (_connection: unknown, call: Call) => call("sendTransaction", params);
  if (to === "all" && (await chain.rpc.queryAvailable("sendTransaction", send)).length > 0)
    return { outcome: "accepted" };
  if (shown && "result" in shown) return { outcome: "accepted" };
  if (shown && BAD_TRANSACTION.includes(readCode(shown.error))) return toUnknown(shown.error);
  try {
    await chain.rpc.queryOnce("sendTransaction", send);
    return { outcome: "accepted" };
  } catch (error) {
    if (!isTransient(error)) throw error;
    return toUnknown(error);
  }
}

const isTransient = (error: unknown): error is ChainError => error instanceof ChainError && error.transient;
const toUnknown = (error: ChainError): BroadcastResult => ({ outcome: "unknown", reason: error.message });
