import type { SolanaChain } from "./open-solana-chain.ts";
import { readCode } from "./solana-rpc.ts";

/**
 * The errors of an endpoint that has no block in a slot: deleted, not available, skipped or missing since the endpoint went on from a
 * snapshot, and skipped or missing in its long-term storage.
 */
const NO_BLOCK: readonly unknown[] = [-32_001, -32_004, -32_007, -32_009];

/**
 * Returns the names of the endpoints that say that they have no block in a slot, although their final slot is past it. They know no
 * transaction of the slot, whether it was included or not. Until a slot is final, every endpoint says so. Never throws.
 */
export async function listLackingSlot(chain: SolanaChain, slot: number): Promise<Set<string>> {
  const options = { transactionDetails: "none", rewards: false, maxSupportedTransactionVersion: 0 };
  const answers = await chain.rpc.queryAvailable("getBlock", async (connection, call) => {
    if ((await connection.getSlot("finalized")) <= slot) return false;
    return call("getBlock", [slot, options]).then(
      (block) => block === null,
      (error: unknown) => {
        if (NO_BLOCK.includes(readCode(error))) return true;
        throw error;
      },
    );
  });
  return new Set(answers.filter(({ answer }) => answer).map(({ by }) => by));
}
