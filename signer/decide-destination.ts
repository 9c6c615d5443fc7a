import { canonicalAddress } from "../chains/canonical-ids.ts";
import { findApprovalKey } from "./approval-keys.ts";
import { findDestinationRefusal, findWaiting, insertEvent, wasStatementUsed } from "./destinations.ts";
import type { Limits } from "./limits.ts";
import { chainOfAsset } from "./payout-nonce.ts";
import type { Statement } from "./protocol.ts";
import { isSignedBy, type ReadStatement, readStatement } from "./statements.ts";
import type { Store } from "./store.ts";

type Deps = { store: Store; deployment: string; operators: Limits["operators"] };
type Decision = { ok: boolean; detail: string };

const MINUTE_MS = 60_000;
/** How long a statement can be used, milliseconds: the signer may be down, but an old approval must not be kept in reserve. */
const VALID_MS = 24 * 60 * MINUTE_MS;
/** How far the clock of who signs may be ahead, milliseconds. */
const AHEAD_MS = 5 * MINUTE_MS;

const no = (detail: string): Decision => ({ ok: false, detail });

/**
 * Approves or rejects a destination that waits, by a signed statement of an operator of the limits file or of an approval key
 * of the merchant. Repeatable: a statement decides once, and is confirmed again. Call it inside a transaction.
 */
export function decideDestination(deps: Deps, statement: Statement, at: Date): Decision {
  const { store } = deps;
  const read = readStatement(statement.text);
  if (!read || !("merchantId" in read.subject)) return no("the text is no statement about a destination");
  const { subject } = read;
  if (read.deployment !== deps.deployment) return no("the statement is for another deployment");
  const refused = findSignerRefusal(deps, statement, { merchantId: subject.merchantId, at });
  if (refused) return no(refused);
  if (wasStatementUsed(store, statement.text)) return { ok: true, detail: "the statement was used before" };
  const ageMs = at.getTime() - read.at.getTime();
  if (ageMs > VALID_MS || ageMs < -AHEAD_MS) return no("the statement is older than a day, or from the future");
  return useStatement(store, { statement, subject, at });
}

function useStatement(
  store: Store,
  {
    statement,
    subject,
    at,
  }: { statement: Statement; subject: ReadStatement["subject"] & { merchantId: string }; at: Date },
): Decision {
  const { merchantId, asset } = subject;
  const one = { merchantId, asset, receiver: canonicalAddress(chainOfAsset(asset), subject.receiver) };
  const waiting = findWaiting(store, one, at);
  if (!waiting) {
    const isApplied = findDestinationRefusal(store, one, at) === undefined;
    // A rejection comes with the report that ends the claim, or before any claim.
    if (isApplied === (subject.action === "approve destination")) return { ok: true, detail: "nothing to decide" };
    return no(isApplied ? "the destination applies already" : "no such destination waits");
  }
  const kind = subject.action === "approve destination" ? "approved" : "rejected";
  insertEvent(store, { id: waiting.id, kind, at, statement: statement.text, signer: statement.signer });
  return { ok: true, detail: kind };
}

/** Returns why a statement's signer may not decide about a merchant's destinations, or undefined. */
function findSignerRefusal(
  { store, operators }: Deps,
  statement: Statement,
  { merchantId, at }: { merchantId: string; at: Date },
): string | undefined {
  const operator = operators.find(({ name }) => name === statement.signer);
  const publicKey = operator?.publicKey ?? statement.signer;
  if (!isSignedBy(publicKey, statement)) return "the signature is not valid";
  if (operator) return undefined;
  const state = findApprovalKey(store, { merchantId, publicKey }, at);
  if (state === undefined) return "the key may not decide about this merchant";
  return state === "waiting" ? "the key is within its waiting period" : undefined;
}
