import { setTimeout as pause } from "node:timers/promises";
import { z } from "zod";
import { rpc } from "./anvil.ts";

/** How often the pool is read, milliseconds. Transactions count as stuck when two readings in a row find them so. */
const READ_MS = 250;

const Status = z.object({ queued: z.string() });
const Content = z.object({
  queued: z.record(z.string(), z.record(z.string(), z.object({ hash: z.string() }))),
});

/**
 * Releases transactions that Anvil keeps in its queue although the first of them has the account's next nonce
 * (docs/testing.md#anvil), until the returned function is called: removes the sender's transactions from the pool and sends the
 * same bytes again. Anvil refuses them as known as long as they are in the queue.
 */
export function guardPool(url: string): () => void {
  const stopped = new AbortController();
  let before = new Set<string>();
  const read = async () => {
    const stuck = await listStuck(url);
    for (const { from, hashes } of stuck) if (before.has(`${from} ${hashes[0]}`)) await resend(url, from, hashes);
    before = new Set(stuck.map(({ from, hashes }) => `${from} ${hashes[0]}`));
  };
  const run = async () => {
    for (;;) {
      await pause(READ_MS, undefined, { ref: false, signal: stopped.signal });
      // An Anvil that does not answer is asked again.
      await read().catch(() => undefined);
    }
  };
  // The pause throws when the guard ends.
  run().catch(() => undefined);
  return () => stopped.abort();
}

/** Returns the senders whose first queued transaction could be executed, with their queued transactions by nonce. */
async function listStuck(url: string): Promise<{ from: string; hashes: string[] }[]> {
  const { queued } = Status.parse(await rpc(url, "txpool_status"));
  if (Number(queued) === 0) return [];
  const senders = Object.entries(Content.parse(await rpc(url, "txpool_content")).queued);
  const found = await Promise.all(
    senders.map(async ([from, byNonce]) => {
      const nonces = Object.keys(byNonce)
        .map(Number)
        .sort((a, b) => a - b);
      const next = Number(await rpc(url, "eth_getTransactionCount", [from, "latest"]));
      return nonces[0] === next ? [{ from, hashes: nonces.flatMap((nonce) => byNonce[nonce]?.hash ?? []) }] : [];
    }),
  );
  return found.flat();
}

async function resend(url: string, from: string, hashes: readonly string[]): Promise<void> {
  const bytes = await Promise.all(hashes.map((hash) => rpc(url, "eth_getRawTransactionByHash", [hash])));
  await rpc(url, "anvil_removePoolTransactions", [from]);
  // In the order of their nonces, so that each finds the one before it.
  for (const one of bytes) await rpc(url, "eth_sendRawTransaction", [one]);
}
