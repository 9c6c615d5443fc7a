import type { KeyObject } from "node:crypto";
import { parseAccountId } from "../../chains/caip.ts";
import type { DestinationChangeRow } from "../../db/queries/destination-changes.ts";
import { insertSignedStatement } from "../../db/queries/signed-statements.ts";
import type { Db } from "../../db/tables.ts";
import type { Statement } from "../../signer/protocol.ts";
import { type StatementSubject, signText, writeStatement } from "../../signer/statements.ts";
import { done, type Result } from "../error-codes.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import type { ChangeDeps } from "./destination-changes.ts";
import { type Decision, verifyDecision } from "./verify-decision.ts";

/** The key file of an operator who signs. `name`: their name in the signer's limits file. */
export type SigningKey = { name: string; key: KeyObject; deployment: string };
/** Who vouches for a decision to the signer: an operator who signs it now, or a merchant who has signed it. */
export type Voucher = SigningKey | { statement: Statement; deployment: string };

/** What a statement about the deletion of a destination names as its receiver. */
const NO_RECEIVER = "none";

/**
 * Returns the signed statement of a decision for the signer, after it has verified a merchant's. Returns undefined for a deletion: it
 * has no receiver, and the signer no part in it. Refuses like `verifyDecision`.
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
  if (receiver === undefined) return done(undefined);
  const { merchant_id: merchantId, asset } = change;
  return done(sign(deps, { subject: { action: `${decision} destination`, merchantId, asset, receiver }, by }));
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
