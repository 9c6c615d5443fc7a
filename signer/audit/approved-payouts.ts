import type { AuthorizedPayout } from "../records.ts";
import type { Store } from "../store.ts";
import { appendEntry } from "./entries.ts";

/**
 * Appends a payout that operators have approved: a return or a withdrawal. Call it inside the transaction that records the payout.
 * @param of.subject what the operators have named: the movement that is returned, or the withdrawal's reference
 */
export function appendApproved(
  store: Store,
  {
    row,
    action,
    subject,
    approvers,
    at,
  }: {
    row: AuthorizedPayout;
    action: "return.signed" | "withdrawal.signed";
    subject: string;
    approvers: readonly string[];
    at: Date;
  },
): void {
  const { nonce, treasury, asset, amount, receiver } = row;
  const actor = { kind: "operator", id: approvers.join(", "), address: null } as const;
  const after = { nonce, treasury, asset, amount: String(amount), receiver };
  appendEntry(store, { actor, action, subject, before: null, after, at });
}
