import { chunk } from "../../runtime/chunk.ts";
import { ChainError } from "../errors.ts";
import { askFirstBlock, type FirstBlock } from "./first-block.ts";
import type { SolanaChain } from "./open-solana-chain.ts";
import { askStatuses, SIGNATURES_PER_CALL } from "./signature-statuses.ts";

/**
 * The first slot, or the first block height, in which a transaction can have been included. One endpoint may have reported it, and `signedAt`
 * is when we signed the transaction.
 */
export type Earliest = ({ slot: number } | { height: number }) & { signedAt?: Date };

/** How far a cluster's time may differ from ours, milliseconds: it is an estimate of its validators. */
const MAX_CLOCK_DRIFT_MS = 3_600_000;

/**
 * Returns the signatures of the transactions that no endpoint has ever seen, searching the whole history. At least two endpoints
 * must say so that have reached slot `since`, and whose history goes back to where the transaction can have been included. An endpoint
 * that has deleted these blocks does not know a transaction that was included. `unproven` has the signatures that no endpoint
 * knows, and that too few of them go back to. Throws ChainError `rpc_unreachable` or `rpc_behind` if fewer than two endpoints
 * answer or have reached `since`.
 */
export async function listNeverSeen(
  chain: SolanaChain,
  transactions: readonly { hash: string; earliest: Earliest }[],
  { since }: { since: number },
): Promise<{ never: Set<string>; unproven: string[] }> {
  const never = new Set<string>();
  const unproven: string[] = [];
  for (const some of chunk(transactions, SIGNATURES_PER_CALL)) {
    const signatures = some.map(({ hash }) => hash);
    const answers = await chain.rpc.queryAll("getSignatureStatuses", async (_connection, call) => {
      const { slot, statuses } = await askStatuses(call, signatures, true);
      const isMissing = statuses.includes(undefined);
      // Asked after the statuses: a block that is deleted in between counts as deleted.
      const first = isMissing ? await askFirstBlock(call).catch(() => undefined) : undefined;
      return { slot, statuses, first };
    });
    const unseen = some.filter((_one, index) => answers.every(({ statuses }) => statuses[index] === undefined));
    // A lagging endpoint may not have seen the transaction yet, so its answer does not count.
    const current = answers.filter(({ slot }) => slot >= since);
    if (unseen.length > 0 && current.length < 2)
      throw new ChainError("rpc_behind", { detail: `${chain.chain}: two endpoints must reach slot ${since}` });
    for (const { hash, earliest } of unseen)
      if (current.filter(({ first }) => first && goesBackTo(first, earliest)).length >= 2) never.add(hash);
      else unproven.push(hash);
  }
  return { never, unproven };
}

/**
 * Returns true if an endpoint's history goes back to where a transaction can have been included. One endpoint may have reported that slot
 * or height, so the time of the first block decides if it is far from the signing.
 */
function goesBackTo(first: FirstBlock, { signedAt, ...earliest }: Earliest): boolean {
  const aheadMs = first.at === undefined || !signedAt ? 0 : signedAt.getTime() - first.at;
  if (Math.abs(aheadMs) >= MAX_CLOCK_DRIFT_MS) return aheadMs > 0;
  if ("slot" in earliest) return first.slot <= earliest.slot;
  return first.height !== undefined && first.height <= earliest.height;
}
