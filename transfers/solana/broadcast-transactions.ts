import { setTimeout as delay } from "node:timers/promises";
import type { SolanaChain } from "../../chains/solana/open-solana-chain.ts";
import { type BroadcastResult, broadcastBytes, copyBroadcasts } from "../../chains/solana/solana-broadcast.ts";
import { firstSignature } from "../../chains/solana/wire-format.ts";
import { recordBroadcasts } from "../../db/queries/solana-transactions.ts";
import type { TransferDeps } from "../transfer-deps.ts";
import type { Signing } from "./store-transactions.ts";

/** Transactions of one request. Nodes accept bodies of 50 kB by default, and these have at most 28 kB. */
const BATCH = 16;
/** Concurrent requests. */
const CONCURRENCY = 4;
/** How long a pass waits until endpoints have their copies, milliseconds. One that takes longer gets no further ones meanwhile. */
const COPY_WAIT_MS = 1_000;

type Stored = { hash: string; bytes: Uint8Array };

/**
 * Broadcasts transactions that were just stored. Stores only those that no endpoint accepted: most of the others are in the
 * next slot, and the watcher broadcasts again, and then stores, what no endpoint knows two seconds later.
 */
export async function broadcastStored(
  deps: TransferDeps,
  chain: SolanaChain,
  stored: readonly Signing[],
): Promise<void> {
  const signed = stored.map(({ bytes }) => ({ hash: firstSignature(bytes), bytes }));
  const { others, failures } = await broadcastAll(deps, chain, signed);
  await recordBroadcasts(deps.db, { chain: chain.chain, hashes: others, state: "broadcast", at: deps.now() });
  if (failures.length > 0) throw failures[0];
}

/**
 * Broadcasts stored bytes again. Stores which of them an endpoint accepted. The others may still have reached the cluster. They also go
 * to every other endpoint, beside the pass: the one that accepted them may have passed them to no node.
 */
export async function rebroadcast(deps: TransferDeps, chain: SolanaChain, stored: readonly Stored[]): Promise<void> {
  const { accepted, others, failures } = await broadcastAll(deps, chain, stored);
  const hashes = [...accepted.keys()];
  const at = deps.now();
  await recordBroadcasts(deps.db, { chain: chain.chain, hashes, state: "accepted", at });
  await recordBroadcasts(deps.db, { chain: chain.chain, hashes: others, state: "broadcast", at });
  const copies = stored.map(({ hash, bytes }) => ({ bytes, by: accepted.get(hash) }));
  if (copies.length > 0 && chain.network.rpc.length > 1)
    await Promise.race([copyBroadcasts(chain, copies), delay(COPY_WAIT_MS, undefined, { ref: false })]);
  if (failures.length > 0) throw failures[0];
}

/** Returns the endpoints that accepted transactions, by hash, the hashes of the others, and errors that are not transient. */
async function broadcastAll(
  deps: TransferDeps,
  chain: SolanaChain,
  stored: readonly Stored[],
): Promise<{ accepted: Map<string, string>; others: string[]; failures: unknown[] }> {
  const accepted = new Map<string, string>();
  const others: string[] = [];
  const failures: unknown[] = [];
  const queue = [...stored];
  const go = async (): Promise<void> => {
    for (let some = queue.splice(0, BATCH); some.length > 0; some = queue.splice(0, BATCH)) {
      const bytes = some.map((one) => one.bytes);
      // After any error, the bytes may still have reached the cluster.
      const results = await broadcastBytes(chain, bytes).catch((error: unknown): BroadcastResult[] => {
        failures.push(error);
        return some.map(() => ({ outcome: "unknown", reason: "the endpoint's response is invalid" }));
      });
      for (const [index, { hash }] of some.entries()) {
        const result: BroadcastResult = results[index] ?? {
          outcome: "unknown",
          reason: "the endpoint returned no result",
        };
        deps.metrics.transactions.inc({ chain: chain.chain, state: result.outcome });
        if (result.outcome === "accepted") accepted.set(hash, result.by);
        else others.push(hash);
        if (result.outcome !== "accepted")
          deps.log.warn({ chain: chain.chain, tx: hash, reason: result.reason }, "broadcast was not accepted");
      }
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, go));
  return { accepted, others, failures };
}
