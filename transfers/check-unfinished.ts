import type { Chains } from "../chains/chain.ts";
import { ChainError } from "../chains/errors.ts";
import { listUnfinishedKinds, type UnfinishedKind } from "../db/queries/transfer-counts.ts";
import type { TransferDeps } from "./transfer-deps.ts";

/**
 * Checks that the networks file still has the assets of unfinished transfers. Without its asset, a transfer on the chain is
 * not seen and a payout cannot be sent. A payment whose kind differs from that of the asset is not recognized. Throws
 * ChainError `unknown_asset`, which must stop the process.
 */
export async function checkUnfinished({ db, chains }: Pick<TransferDeps, "db" | "chains">): Promise<void> {
  const errors = (await listUnfinishedKinds(db)).flatMap((one) => describeMissing(chains, one) ?? []);
  if (errors.length > 0) throw new ChainError("unknown_asset", { detail: errors.join("; ") });
}

/** Returns what the networks file lacks for an asset's unfinished transfers, or undefined. */
function describeMissing(chains: Chains, { asset, chain, kind, is_payment: isPayment, count }: UnfinishedKind) {
  const token = chains.get(chain)?.tokens.get(asset);
  const unfinished = `${count} unfinished ${count === 1 ? "transfer" : "transfers"}`;
  if (!token) return `${asset} is missing and has ${unfinished}`;
  // A payout keeps the kind with which it was signed.
  if (!isPayment || token.kind === kind) return undefined;
  return `${asset} is of kind ${token.kind} and has ${unfinished} of kind ${kind}`;
}
