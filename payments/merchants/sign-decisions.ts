import type { KeyObject } from "node:crypto";
import { parseAccountId } from "../../chains/caip.ts";
import { canonicalAddress, canonicalAsset } from "../../chains/canonical-ids.ts";
import type { DestinationChangeRow } from "../../db/queries/destination-changes.ts";
import { insertSignedStatement } from "../../db/queries/signed-statements.ts";
import type { Db } from "../../db/tables.ts";
import { memberNames } from "../../runtime/member-names.ts";
import type { Statement } from "../../signer/protocol.ts";
import { type StatementSubject, signText, writeStatement } from "../../signer/statements.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import type { ChangeDeps } from "./destination-changes.ts";
import { type Decision, verifyDecision } from "./verify-decision.ts";

/** The key file of an operator who signs. `name`: their name in the signer's limits file. */
export type SigningKey = { name: string; key: KeyObject; deployment: string };
/** What an operator has verified with the merchant, by another way than the database. */
type VerifiedChange = { merchantId: string; asset: string; receiver: string };
/** Who vouches for a decision to the signer: an operator who signs now what they verified, or a merchant who has signed it. */
export type Voucher = (SigningKey & { verified: VerifiedChange }) | { statement: Statement; deployment: string };

/** What a statement about the deletion of a destination names as its receiver. */
const NO_RECEIVER = "none";

/**
 * Returns the signed statement of a decision for the signer, after it has verified a merchant's. Returns undefined for a merchant's
 * deletion: it has no receiver, and the signer no part in it. Refuses a merchant's statement like `verifyDecision`, and with
 * `invalid_state` an operator's when the change is another one than they verified: who writes the database can rewrite the row
 * between its listing and its approval.
 */
export async function vouchForDecision(
  deps: Pick<ChangeDeps, "db" | "now">,
  { change, decision, by }: { change: DestinationChangeRow; decision: Decision; by: Voucher },
): Promise<Result<Statement | undefined>> {
  const receiver = parseAccountId(change.after ?? "")?.address;
  if ("statement" in by) {
    const verified = await verifyDecision(deps, { change, decision, receiver: receiver ?? NO_RECEIVER, ...by });
    return verified.ok && receiver === undefined ? done(undefined) : verified;
  }
  if (receiver === undefined) return refuse("invalid_state", "receiver: the change is a deletion, which is not signed");
  const verified = toCanonical(by.verified);
  const found = toCanonical({ merchantId: change.merchant_id, asset: change.asset, receiver });
  const differing = memberNames(verified).find((name) => verified[name] !== found[name]);
  if (differing)
    return refuse("invalid_state", `${differing}: the change names ${found[differing]}, which you did not verify`);
  return done(sign(deps, { subject: { action: `${decision} destination`, ...verified }, by }));
}

function toCanonical({ merchantId, asset: given, receiver }: VerifiedChange): VerifiedChange {
  const asset = canonicalAsset(given);
  return { merchantId, asset, receiver: canonicalAddress(asset, receiver) };
}

/** Stores a signed statement for the signer. @param args.of the id of the row that the statement is about */
export async function storeStatement(
  { db, now }: Pick<PaymentDeps, "now"> & { db: Db },
  { statement, of }: { statement: Statement; of: string },
): Promise<void> {
  await insertSignedStatement(db, {
    subject: of,
    ...statement,
    created_at: now(),
    reported_at: null,
    outcome: null,
  });
}

/** Signs a statement by an operator's key. */
export function sign(
  { now }: Pick<PaymentDeps, "now">,
  { subject, by: { name, key, deployment } }: { subject: StatementSubject; by: SigningKey },
): Statement {
  const text = writeStatement(subject, { deployment, at: now() });
  return { text, signer: name, signature: signText(key, text) };
}
