import { ChainError } from "../errors.ts";
import type { Call, CallOutcome } from "../json-rpc.ts";
import type { SolanaChain } from "./open-solana-chain.ts";
import { readCode, type Together, TRANSACTION_ERRORS } from "./solana-rpc.ts";

/** The result of a broadcast, and the endpoint that accepted it. `unknown` means that the transaction may have reached the cluster. */
export type BroadcastResult = { outcome: "accepted"; by: string } | { outcome: "unknown"; reason: string };

/** The endpoint neither simulates nor rebroadcasts: a transaction was checked before, and the worker rebroadcasts its bytes. */
const OPTIONS = { encoding: "base64", skipPreflight: true, maxRetries: 0 };
/** Concurrent requests with one transaction each. */
const CONCURRENCY = 4;
/** The errors of an endpoint that say that the transaction itself or its encoding is bad. Another endpoint would say the same. */
const BAD_TRANSACTION: readonly unknown[] = [...TRANSACTION_ERRORS, -32_602];

/**
 * Broadcasts signed bytes with one request, and returns the results in order. Each transaction that the request does not
 * bring to the cluster is sent once more by itself, and then goes from endpoint to endpoint like any call. Does not throw for a
 * transient error, because only the chain shows later whether a transaction happened. Throws any other ChainError.
 */
export async function broadcastBytes(chain: SolanaChain, all: readonly Uint8Array[]): Promise<BroadcastResult[]> {
  const params = all.map(toParams);
  const { by, outcomes } = params.length > 1 ? await sendTogether(chain, params) : NONE;
  const results: BroadcastResult[] = [];
  for (let from = 0; from < params.length; from += CONCURRENCY) {
    const some = params.slice(from, from + CONCURRENCY);
    results.push(...(await Promise.all(some.map((one, at) => settle(chain, one, { by, shown: outcomes[from + at] })))));
  }
  return results;
}

/**
 * Sends signed bytes to every endpoint other than the one (`by`) that has accepted them, as far as budgets can spare calls. Never
 * throws.
 */
export async function copyBroadcasts(
  chain: SolanaChain,
  all: readonly { bytes: Uint8Array; by: string | undefined }[],
): Promise<void> {
  // Each time, an endpoint with a small budget gets others first.
  const first = Math.floor(Math.random() * all.length);
  const calls = [...all.slice(first), ...all.slice(0, first)].map(({ bytes, by }) => ({ params: toParams(bytes), by }));
  await chain.rpc.repeatElsewhere("sendTransaction", calls);
}

const toParams = (bytes: Uint8Array): unknown[] => [Buffer.from(bytes).toString("base64"), OPTIONS];
const NONE: Together = { by: "", outcomes: [] };

/** Returns the outcomes of a batch, and none when no endpoint has answered it. */
async function sendTogether(chain: SolanaChain, params: readonly unknown[][]): Promise<Together> {
  try {
    return await chain.rpc.queryTogether("sendTransaction", params);
  } catch (error) {
    if (!isTransient(error)) throw error;
    return NONE;
  }
}

/** Returns the result of a transaction. Sends it by itself unless the batch has shown its result. */
async function settle(
  chain: SolanaChain,
  params: readonly unknown[],
  { by, shown }: { by: string; shown: CallOutcome | undefined },
): Promise<BroadcastResult> {
  if (shown && "result" in shown) return { outcome: "accepted", by };
  if (shown && BAD_TRANSACTION.includes(readCode(shown.error))) return toUnknown(shown.error);
  const send = async (_connection: unknown, call: Call, to: string): Promise<BroadcastResult> => {
    await call("sendTransaction", params);
    return { outcome: "accepted", by: to };
  };
  try {
    return await chain.rpc.queryOnce("sendTransaction", send);
  } catch (error) {
    if (!isTransient(error)) throw error;
    return toUnknown(error);
  }
}

const isTransient = (error: unknown): error is ChainError => error instanceof ChainError && error.transient;
const toUnknown = (error: ChainError): BroadcastResult => ({ outcome: "unknown", reason: error.message });
