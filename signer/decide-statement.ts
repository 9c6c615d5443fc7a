import { canonicalAddress, canonicalAsset } from "../chains/canonical-ids.ts";
import { findKeyState, revokeApprovalKey } from "./approval-keys.ts";
import type { Actor } from "./audit/entries.ts";
import { findApplied, findWaiting, insertEvent, listDecisions, rejectLater } from "./destinations.ts";
import type { Limits } from "./limits.ts";
import { chainOfAsset } from "./payout-nonce.ts";
import type { Statement } from "./protocol.ts";
import { findAgeRefusal, isSignedBy, readStatement, type StatementSubject } from "./statements.ts";
import type { Store } from "./store.ts";

type Deps = { store: Store; deployment: string; limits: Limits };
type Decision = { ok: boolean; detail: string };
/** What a statement decides about: a destination or an approval key of a merchant. */
type Subject = Extract<StatementSubject, { merchantId: string }>;

const no = (detail: string): Decision => ({ ok: false, detail });
const yes = (detail: string): Decision => ({ ok: true, detail });

/**
 * Approves or rejects a destination that waits, or revokes an approval key, by a signed statement of an operator of the limits
 * file or of an approval key of the merchant. Repeatable: a statement decides once, and is confirmed again. Call it inside a
 * transaction.
 */
export function decideStatement(deps: Deps, statement: Statement, at: Date): Decision {
  const read = readStatement(statement.text);
  if (!read || !("merchantId" in read.subject)) return no("the text is no statement about a destination or a key");
  if (read.deployment !== deps.deployment) return no("the statement is for another deployment");
  const refused = findSignerRefusal(deps, statement, read.subject);
  if (refused) return no(refused);
  const { subject } = read;
  if (subject.action !== "revoke approval key")
    return decideDestination(deps, { statement, subject, signedAt: read.at, at });
  const tooOld = findAgeRefusal(read.at, at);
  if (tooOld) return no(tooOld);
  const { destinationWaitingHours: waitingHours } = deps.limits;
  const by = { at, waitingHours, text: statement.text, actor: actorOf(deps.limits, statement) };
  return yes(revokeApprovalKey(deps.store, subject, by) ? "revoked" : "revoked before");
}

function decideDestination(
  { store, limits }: Deps,
  {
    statement,
    subject: { merchantId, asset: given, receiver, action },
    signedAt,
    at,
  }: { statement: Statement; subject: Extract<Subject, { receiver: string }>; signedAt: Date; at: Date },
): Decision {
  const { text, signer } = statement;
  const actor = actorOf(limits, statement);
  const asset = canonicalAsset(given);
  const one = { merchantId, asset, receiver: canonicalAddress(chainOfAsset(asset), receiver) };
  const decisions = listDecisions(store, one);
  if (decisions.some((decision) => decision.text === text)) return yes("the statement was used before");
  const tooOld = findAgeRefusal(signedAt, at);
  if (tooOld) return no(tooOld);
  // Otherwise an approval that was held back could follow the rejection that was signed after it. What a merchant's key has
  // signed stops no operator: the key may have leaked.
  const isOperator = (name: string) => limits.operators.some((operator) => operator.name === name);
  const weighing = decisions.filter((decision) => !isOperator(signer) || isOperator(decision.signer));
  if (weighing.some((decision) => (readStatement(decision.text)?.at ?? signedAt) > signedAt))
    return no("a statement that was signed later has decided about the receiver");
  const kind = action === "approve destination" ? "approved" : "rejected";
  const waiting = findWaiting(store, one);
  if (waiting) {
    insertEvent(store, { id: waiting.id, kind, at, statement: text, actor });
    return yes(kind);
  }
  const applied = findApplied(store, one);
  const isApplied = applied?.receiver === one.receiver;
  if (kind === "rejected" && isApplied) return no("the destination applies already");
  if (kind === "rejected") {
    // The report that ends the claim may come before its rejection, and a rejection before any claim.
    rejectLater(store, one, { at, statement: text, actor });
    return yes("no claim waits: later ones are rejected");
  }
  if (!isApplied) return no("no such destination waits");
  // Recorded, so that a copy does not bring the receiver back after the merchant has left it.
  insertEvent(store, { id: applied.id, kind, at, statement: text, actor });
  return yes("nothing to decide");
}

/** Returns who has signed a statement whose signature is valid. */
function actorOf({ operators }: Limits, { signer }: Statement): Actor {
  const operator = operators.find(({ name }) => name === signer);
  return operator
    ? { kind: "operator", id: signer, address: operator.publicKey }
    : { kind: "merchant", id: signer, address: null };
}

/**
 * Returns why a statement's signer may not make this decision, or undefined. A key of a merchant approves only while it is
 * not revoked and the signer is not paused; it rejects and revokes in any case.
 */
function findSignerRefusal({ store, limits }: Deps, statement: Statement, subject: Subject): string | undefined {
  const operator = limits.operators.find(({ name }) => name === statement.signer);
  const publicKey = operator?.publicKey ?? statement.signer;
  if (!isSignedBy(publicKey, statement)) return "the signature is not valid";
  if (operator) return undefined;
  const state = findKeyState(store, { merchantId: subject.merchantId, publicKey });
  if (state === undefined) return "the key may not decide about this merchant";
  if (state === "waiting") return "the key is within its waiting period";
  if (state === "never_applied") return "the key was revoked within its waiting period";
  if (subject.action !== "approve destination") return undefined;
  if (state === "revoked") return "the key is revoked";
  return limits.paused ? "the signer is paused: only operators approve" : undefined;
}
