import { setTimeout as pause } from "node:timers/promises";
import { type Hex, keccak256, type PrivateKeyAccount } from "viem";
import { addCleanup } from "../support/cleanups.ts";
import { type EvmEnvironment, finalityBlocks } from "./evm-environment.ts";
import { topFees } from "./gas-oracle-server.ts";

/** Sends buyers' own transactions, and rebroadcasts those that a reorg removes, as nodes do; the hash stays the same. */
export type Pushes = {
  /** Sends a transaction and returns its hash. `gap` skips so many nonces, so that it can never be mined. */
  send(buyer: PrivateKeyAccount, call: { to: Hex; data: Hex }, gap?: number): Promise<Hex>;
};

/** Rebroadcasts buyers' transactions until they are final or the run is over. */
export function rebroadcastPushes(environment: EvmEnvironment): Pushes {
  const { client } = environment;
  const raw = new Map<Hex, { bytes: Hex; minedAt?: bigint }>();
  const over = new AbortController();
  const keeping = (async () => {
    while (!over.signal.aborted) {
      for (const [hash, push] of raw) {
        const work = async () => {
          const receipt = await client.getTransactionReceipt({ hash }).catch(() => undefined);
          if (receipt === undefined) await client.sendRawTransaction({ serializedTransaction: push.bytes });
          else if ((await client.getBlockNumber()) - receipt.blockNumber > finalityBlocks) raw.delete(hash);
        };
        // The pool already holds it, or accepts it at the next attempt.
        await work().catch(() => undefined);
      }
      await pause(environment.blockMs, undefined, { signal: over.signal }).catch(() => undefined);
    }
  })();
  addCleanup(async () => {
    over.abort();
    await keeping;
  });
  return {
    async send(buyer, { to, data }, gap = 0) {
      const nonce = await client.getTransactionCount({ address: buyer.address, blockTag: "pending" });
      const chainId = await client.getChainId();
      const bytes = await buyer.signTransaction({ ...topFees, chainId, to, data, nonce: nonce + gap, type: "eip1559" });
      const hash = keccak256(bytes);
      raw.set(hash, { bytes });
      await client.sendRawTransaction({ serializedTransaction: bytes }).catch(() => undefined);
      return hash;
    },
  };
}
