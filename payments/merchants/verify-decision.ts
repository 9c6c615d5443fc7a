import { canonicalAddress, canonicalAsset } from "../../chains/canonical-ids.ts";
import { findApprovalKeyRow } from "../../db/queries/approval-keys.ts";
import type { DestinationChangeRow } from "../../db/queries/destination-changes.ts";
import { findStatementSubject } from "../../db/queries/signed-statements.ts";
import type { Statement } from "../../signer/protocol.ts";
import { findAgeRefusal, isSignedBy, readStatement } from "../../signer/statements.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import type { ChangeDeps } from "./destination-changes.ts";

export type Decision = "approve" | "reject";

/**
 * Verifies that a merchant's approval key has signed this decision about a change. Refuses with `params_validation` a statement
 * that is not canonical, says something else, is too old or has no valid signature; with `forbidden` a key that may not
 * decide; with `invalid_state` a statement that has decided about another change.
 * @param args.receiver the address that the change asks for, or "none" for a deletion
 */
export async function verifyDecision(
  { db, now }: Pick<ChangeDeps, "db" | "now">,
  args: {
    change: DestinationChangeRow;
    decision: Decision;
    receiver: string;
    statement: Statement;
    deployment: string;
  },
): Promise<Result<Statement>> {
  const { change, statement } = args;
  const invalid = findTextRefusal(args, now());
  if (invalid) return refuse("params_validation", `statement.text: ${invalid}`);
  if (!isSignedBy(statement.signer, statement)) return refuse("params_validation", "statement.signature: is not valid");
  const key = await findApprovalKeyRow(db, { merchantId: change.merchant_id, publicKey: statement.signer });
  if (!key) return refuse("forbidden", "statement.signer: is not an approval key of the merchant");
  // A rejection leaves the money where it is. A thief who revokes a merchant's key must not silence it.
  if (args.decision === "approve") {
    if (key.revoked_at) return refuse("forbidden", "statement.signer: the approval key is revoked");
    if (key.applies_at > now())
      return refuse("forbidden", `statement.signer: the approval key counts from ${key.applies_at.toISOString()}`);
  }
  const used = await findStatementSubject(db, statement);
  if (used !== undefined && used !== change.id)
    return refuse("invalid_state", "the statement has decided about another change: sign a new one");
  return done(statement);
}

/** Returns what is wrong with the text of a statement about a change, or undefined. Pure. */
function findTextRefusal(
  { change, decision, receiver, statement, deployment }: Parameters<typeof verifyDecision>[1],
  at: Date,
): string | undefined {
  const read = readStatement(statement.text);
  if (!read) return "is not the canonical text of a statement";
  const { subject } = read;
  if (read.deployment !== deployment) return `deployment: expected ${deployment}`;
  if (!("merchantId" in subject && "asset" in subject) || subject.action !== `${decision} destination`)
    return `action: expected ${decision} destination`;
  if (subject.merchantId !== change.merchant_id) return "merchantId: is not the merchant of the change";
  if (canonicalAsset(subject.asset) !== change.asset) return "asset: is not the asset of the change";
  if (canonicalAddress(change.asset, subject.receiver) !== canonicalAddress(change.asset, receiver))
    return "receiver: is not the address of the change";
  return findAgeRefusal(read.at, at);
}
