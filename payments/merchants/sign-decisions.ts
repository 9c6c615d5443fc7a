import type { KeyObject } from "node:crypto";
import { parseAccountId } from "../../chains/caip.ts";
import { findDestinationChange } from "../../db/queries/destination-changes.ts";
import { insertSignedStatement } from "../../db/queries/signed-statements.ts";
import type { Db } from "../../db/tables.ts";
import { type StatementSubject, signText, writeStatement } from "../../signer/statements.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import type { PaymentDeps } from "../payment-deps.ts";

type Deps = Pick<PaymentDeps, "now"> & { db: Db };
/**
 * The key that signs a decision. `name`: how the signer knows the key: an operator's name in the limits file, or the public key
 * of an approver in hex.
 */
export type SigningKey = { name: string; key: KeyObject; deployment: string };

/**
 * Signs a decision about a waiting change and stores the statement for the signer, which approves or rejects the destination
 * in its own records. Call it in the transaction of the decision. Refuses with `merchant_not_found`, and with `invalid_state`
 * for a deletion: the signer has no part in it.
 */
export async function signDecision(
  deps: Deps,
  args: { merchantId: string; changeId: string; decision: "approve" | "reject"; by: SigningKey },
): Promise<Result<null>> {
  const { merchantId, changeId, decision, by } = args;
  const change = await findDestinationChange(deps.db, { merchantId, id: changeId });
  if (!change) return refuse("merchant_not_found", "the merchant has no such change of a settlement");
  const receiver = parseAccountId(change.after ?? "")?.address;
  if (receiver === undefined) return refuse("invalid_state", "the change is a deletion");
  const subject = { action: `${decision} destination`, merchantId, asset: change.asset, receiver } as const;
  await storeStatement(deps, { subject, of: changeId, by });
  return done(null);
}

/** Signs a statement and stores it. @param args.of the id of the row that the statement is about */
export async function storeStatement(
  { db, now }: Deps,
  { subject, of, by }: { subject: StatementSubject; of: string; by: SigningKey },
): Promise<void> {
  const at = now();
  const text = writeStatement(subject, { deployment: by.deployment, at });
  const signature = signText(by.key, text);
  await insertSignedStatement(db, {
    subject: of,
    text,
    signer: by.name,
    signature,
    created_at: at,
    reported_at: null,
    outcome: null,
  });
}
