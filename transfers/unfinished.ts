import { ChainFault } from "../chains/faults.ts";
import type { Chains } from "../chains/open.ts";
import { listUnfinishedKinds, type UnfinishedKind } from "../db/transfers.ts";
import type { TransferDeps } from "./deps.ts";

/**
 * Makes sure that the networks file still has what unfinished transfers need. Without their asset, what has happened on
 * chain is not seen, and what was promised cannot be sent; payments of another kind than the asset now has are not
 * recognised. Throws ChainFault `unknown_asset`, which must stop the process.
 */
export async function checkUnfinished({ db, chains }: Pick<TransferDeps, "db" | "chains">): Promise<void> {
  const errors = (await listUnfinishedKinds(db)).flatMap((one) => describeMissing(chains, one) ?? []);
  if (errors.length > 0) throw new ChainFault("unknown_asset", { detail: errors.join("; ") });
}

/** Pure: what is wrong with an asset, if anything is. */
export function describeMissing(chains: Chains, { asset, chain, kind, isPayment, count }: UnfinishedKind) {
  const token = chains.get(chain)?.tokens.get(asset);
  const unfinished = `${count} unfinished ${count === 1 ? "transfer" : "transfers"}`;
  if (!token) return `${asset} is missing and has ${unfinished}`;
  // A payout is made as it was signed, whatever kind the asset has now.
  if (!isPayment || token.kind === kind) return undefined;
  return `${asset} is of kind ${token.kind} and has ${unfinished} of kind ${kind}`;
}
