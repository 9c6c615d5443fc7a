import type { KeyObject } from "node:crypto";
import { parseAccountId } from "../../chains/caip.ts";
import type { DestinationChangeRow } from "../../db/queries/destination-changes.ts";
import { insertSignedStatement } from "../../db/queries/signed-statements.ts";
import type { Db } from "../../db/tables.ts";
import { type StatementSubject, signText, writeStatement } from "../../signer/statements.ts";
import type { PaymentDeps } from "../payment-deps.ts";

type Deps = Pick<PaymentDeps, "now"> & { db: Db };
/**
 * The key that signs a decision. `name`: how the signer knows the key: an operator's name in the limits file, or the public key
 * of an approver in hex.
 */
export type SigningKey = { name: string; key: KeyObject; deployment: string };

/**
 * Signs a decision about a change and stores the statement for the signer, which approves or rejects the destination in its
 * own records. A deletion has no receiver, and the signer no part in it. Call it in the transaction of the decision.
 */
export async function signDecision(
  deps: Deps,
  { change, decision, by }: { change: DestinationChangeRow; decision: "approve" | "reject"; by: SigningKey },
): Promise<void> {
  const receiver = parseAccountId(change.after ?? "")?.address;
  if (receiver === undefined) return;
  const { merchant_id: merchantId, asset } = change;
  const subject = { action: `${decision} destination`, merchantId, asset, receiver } as const;
  await storeStatement(deps, { subject, of: change.id, by });
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
