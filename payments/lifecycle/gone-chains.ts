import type { AttemptWithContext } from "../../db/queries/attempts.ts";
import { listWatchTimes } from "../../db/queries/chain-cursors.ts";
import type { PaymentDeps } from "../payment-deps.ts";

/** Time after which nothing waits any longer for a chain or an asset that has left the networks file, milliseconds. */
const GONE_MS = 24 * 3_600_000;

/** Returns the time since which a chain or an asset must have been out of the networks file for nothing to wait for it. Pure. */
export const toGoneSince = (at: Date): Date => new Date(at.getTime() - GONE_MS);

/** Returns true for a chain that workers have had, and that none has had for a day. A chain that is new to all workers is not gone. */
export async function isGone({ db, now }: Pick<PaymentDeps, "db" | "now">, chain: string): Promise<boolean> {
  const times = await listWatchTimes(db, [chain]);
  return (times.get(chain)?.getTime() ?? Infinity) < toGoneSince(now()).getTime();
}

/**
 * Returns the attempts that this worker can decide: those on its own chains, and those on a chain that no worker has had for a day,
 * which are refused. During a deployment only some workers have a new chain. An attempt that another worker can verify stays as it
 * is, and the sweep enqueues it again. On a chain that no worker has ever had, an attempt of test mode waits for a day.
 */
export async function omitAttemptsOfOthers(
  deps: Pick<PaymentDeps, "db" | "chains" | "now">,
  attempts: readonly AttemptWithContext[],
): Promise<readonly AttemptWithContext[]> {
  const unknown = new Set(attempts.map(({ option }) => option.chain).filter((chain) => !deps.chains.has(chain)));
  if (unknown.size === 0) return attempts;
  const times = await listWatchTimes(deps.db, [...unknown]);
  const since = toGoneSince(deps.now());
  return attempts.filter(
    ({ attempt, option }) => deps.chains.has(option.chain) || (times.get(option.chain) ?? attempt.created_at) < since,
  );
}
