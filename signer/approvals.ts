import type { Limits } from "./limits.ts";
import type { Refused, Statement } from "./protocol.ts";
import { refuse } from "./refuse.ts";
import { findAgeRefusal, isSignedBy, readStatement, type StatementSubject, writeStatement } from "./statements.ts";

/** How many operators must approve what leaves the treasury without a merchant's deposit behind it. */
const REQUIRED_APPROVALS = 2;

/**
 * What approvals are verified against. `isRecorded`: exactly this payout was authorized before. Its repetition moves nothing more,
 * so its approvals have no age.
 */
type Against = Pick<Limits, "operators"> & { deployment: string; at: Date; isRecorded: boolean };

/**
 * Returns the names of the operators of the limits file who have approved exactly this subject for this deployment, and of those
 * whose approvals are too old: an approval must not be kept in reserve for a payout that was withdrawn. An operator counts once,
 * however many statements and names their key has. Statements of anyone else count nothing.
 */
export function verifyApprovals(
  { operators, deployment, at, isRecorded }: Against,
  statements: readonly Statement[],
  subject: StatementSubject,
): { approvers: string[]; tooOld: string[] } {
  const [approvers, tooOld] = [new Map<string, string>(), new Map<string, string>()];
  for (const statement of statements) {
    const operator = operators.find(({ name }) => name === statement.signer);
    const read = readStatement(statement.text);
    if (!operator || !read || !isSignedBy(operator.publicKey, statement)) continue;
    if (writeStatement(subject, { deployment, at: read.at }) !== statement.text) continue;
    const isUsable = isRecorded || findAgeRefusal(read.at, at) === undefined;
    (isUsable ? approvers : tooOld).set(operator.publicKey, operator.name);
  }
  for (const publicKey of approvers.keys()) tooOld.delete(publicKey);
  return { approvers: [...approvers.values()], tooOld: [...tooOld.values()] };
}

/** Returns the operators who have approved exactly this subject, or a refusal when they are too few. */
export function requireApprovals(...of: Parameters<typeof verifyApprovals>): Refused | { approvers: string[] } {
  const { approvers, tooOld } = verifyApprovals(...of);
  if (approvers.length >= REQUIRED_APPROVALS) return { approvers };
  const counted = `${approvers.length} of ${REQUIRED_APPROVALS} operators have approved`;
  const old = `; the approvals of ${tooOld.join(", ")} are older than a day, or from the future: approve once more`;
  return refuse("approval_missing", tooOld.length === 0 ? counted : counted + old);
}
