import type { Chains } from "../chains/chain.ts";
import { ChainError } from "../chains/errors.ts";
import {
  listUnfinishedKinds,
  listWaitingKinds,
  type UnfinishedKind,
  type WaitingKind,
} from "../db/queries/transfer-counts.ts";
import type { TransferDeps } from "./transfer-deps.ts";

/**
 * Checks that the networks file still has the assets of unfinished transfers, and the kinds of those of payments. Without its asset, a
 * transfer on the chain is not seen and a payout cannot be sent. A payment whose kind differs from that of the asset is not recognized;
 * a confirm that waits becomes such a payment. Throws ChainError `unknown_asset`, which must stop the process.
 */
export async function checkUnfinished({ db, chains }: Pick<TransferDeps, "db" | "chains">): Promise<void> {
  const errors = [
    ...(await listUnfinishedKinds(db)).flatMap((one) => describeMissing(chains, one) ?? []),
    ...(await listWaitingKinds(db)).flatMap((one) => describeOtherKind(chains, one, "waiting confirm") ?? []),
  ];
  if (errors.length > 0) throw new ChainError("unknown_asset", { detail: errors.join("; ") });
}

/** Returns what the networks file lacks for an asset's unfinished transfers, or undefined. */
function describeMissing(chains: Chains, one: UnfinishedKind): string | undefined {
  if (!chains.get(one.chain)?.tokens.has(one.asset))
    return `${one.asset} is missing and has ${countOf(one, "unfinished transfer")}`;
  // A payout keeps the kind with which it was signed.
  return one.is_payment ? describeOtherKind(chains, one, "unfinished transfer") : undefined;
}

/** Returns that the networks file has an asset with another kind, or undefined. */
function describeOtherKind(chains: Chains, one: WaitingKind, what: string): string | undefined {
  const token = chains.get(one.chain)?.tokens.get(one.asset);
  if (!token || token.kind === one.kind) return undefined;
  return `the kind of ${one.asset} must not become ${token.kind}: it has ${countOf(one, what)} of kind ${one.kind}`;
}

const countOf = ({ count }: WaitingKind, what: string) => `${count} ${what}${count === 1 ? "" : "s"}`;
