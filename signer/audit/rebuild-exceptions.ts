import type { SignerDeps } from "../signer-deps.ts";
import { appendEntry, machineActor } from "./entries.ts";

/**
 * Appends what an operator lets pass when a lost store is rebuilt: transfers that belong to no payout (`--accept`), and money that
 * stays in a retired treasury (`--leave`). Call it inside the transaction that records the payouts.
 */
export function recordExceptions(
  { store, now }: Pick<SignerDeps, "store" | "now">,
  { accepted, left }: { accepted: ReadonlySet<string>; left: ReadonlyMap<string, bigint> },
): void {
  const after = {
    accepted: [...accepted],
    left: Object.fromEntries([...left].map(([asset, amount]) => [asset, String(amount)])),
  };
  const entry = { action: "rebuild.ended", subject: "store", before: null, after };
  appendEntry(store, { ...entry, actor: machineActor(), at: now() });
}
