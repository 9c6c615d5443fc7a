import type { Chains } from "../chains/chain.ts";
import { isTransientChainError } from "../chains/errors.ts";
import { checkChain } from "../chains/open-chains.ts";
import type { Refused } from "./protocol.ts";
import { refuse } from "./refuse.ts";
import type { SignerDeps } from "./signer-deps.ts";

/** How long a chain that failed is not compared again, milliseconds. */
const RETRY_MS = 30_000;

/**
 * Returns the function that compares a chain with the networks file. Until a chain matches, the signer believes nothing that its
 * endpoints show and signs nothing for it: they may serve another chain. Concurrent calls share one comparison.
 */
export function createChainCheck({
  chains,
  log,
  now,
}: Pick<SignerDeps, "log" | "now"> & { chains: Chains }): SignerDeps["checkChain"] {
  const known = new Map<string, { result: Promise<Refused | undefined>; at: number; refused: boolean }>();

  async function compare(id: string): Promise<Refused | undefined> {
    try {
      await checkChain(chains, id);
      return undefined;
    } catch (err) {
      log.error(
        { err, chain: id },
        "chain does not match the networks file, or cannot be read: nothing is signed for it",
      );
      return isTransientChainError(err) ? refuse("chain_unavailable") : refuse("chain_mismatch");
    }
  }

  return (id) => {
    const last = known.get(id);
    if (last && !(last.refused && now().getTime() - last.at >= RETRY_MS)) return last.result;
    const result = compare(id);
    const entry = { result, at: now().getTime(), refused: false };
    known.set(id, entry);
    void result.then((refused) => {
      entry.refused = refused !== undefined;
    });
    return result;
  };
}
