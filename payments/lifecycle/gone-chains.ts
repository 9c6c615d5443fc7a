import type { AttemptWithContext } from "../../db/queries/attempts.ts";
import { listGoneChains } from "../../db/queries/chain-cursors.ts";
import type { PaymentDeps } from "../payment-deps.ts";

/** Time after which nothing waits any longer for a chain or an asset that has left the networks file, milliseconds. */
const GONE_MS = 24 * 3_600_000;

/** Returns the time since which a chain or an asset must have been out of the networks file for nothing to wait for it. Pure. */
export const toGoneSince = (at: Date): Date => new Date(at.getTime() - GONE_MS);

/**
 * Returns the attempts that this worker can decide: those on its own chains, and those on a chain that no worker has had for a day,
 * which are refused. During a deployment only some workers have a new chain. An attempt that another worker can verify stays as it
 * is, and the sweep enqueues it again.
 */
export async function omitAttemptsOfOthers(
  deps: Pick<PaymentDeps, "db" | "chains" | "now">,
  attempts: readonly AttemptWithContext[],
): Promise<readonly AttemptWithContext[]> {
  const unknown = new Set(attempts.map(({ option }) => option.chain).filter((chain) => !deps.chains.has(chain)));
  if (unknown.size === 0) return attempts;
  const gone = new Set(await listGoneChains(deps.db, { chains: [...unknown], since: toGoneSince(deps.now()) }));
  return attempts.filter(({ option }) => deps.chains.has(option.chain) || gone.has(option.chain));
}
