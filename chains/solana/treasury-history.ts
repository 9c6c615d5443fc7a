import { ChainError } from "../errors.ts";
import type { TokenMovement } from "../token-movement.ts";
import { readFinalMovements } from "./final-movements.ts";
import type { SolanaChain } from "./open-solana-chain.ts";
import { listSignatures } from "./transaction-history.ts";

/** Transactions whose movements are returned together. */
const PART = 100;

/**
 * Reads the movements of the treasury's token accounts in final slots, in parts, the newest first. Throws ChainError.
 */
export async function* readTreasuryHistory(
  chain: SolanaChain,
  { from, to }: { from: number; to: number },
): AsyncGenerator<readonly TokenMovement[], void> {
  for (const { treasuryAccount: account, token } of chain.tokens.values())
    for (let before: string | undefined; ; ) {
      const page = await listSignatures(chain, { account, before, atSlot: to });
      // Also those that are listed as failed: an endpoint could hide a payout by that, and each shows how it has ended.
      const made = page.filter(({ slot }) => slot >= from && slot <= to).map(({ signature }) => signature);
      for (let at = 0; at < made.length; at += PART) {
        const found = await readFinalMovements(chain, made.slice(at, at + PART));
        yield [...found].flatMap(([hash, one]) => {
          // Records that are rebuilt from this history must not miss a transaction that the endpoints no longer have.
          if (one.state !== "final") throw new ChainError("rpc_behind", { detail: `transaction ${hash}` });
          return one.movements.filter((movement) => movement.token === token);
        });
      }
      const last = page.at(-1);
      if (!last || last.slot < from) break;
      before = last.signature;
    }
}
