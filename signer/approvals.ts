import type { Limits } from "./limits.ts";
import type { Statement } from "./protocol.ts";
import { isSignedBy, readStatement, type StatementSubject, writeStatement } from "./statements.ts";

/** How many operators must approve what leaves the treasury without a merchant's deposit behind it. */
export const REQUIRED_APPROVALS = 2;

/**
 * Returns the names of the operators of the limits file who have approved exactly this subject for this deployment. An
 * operator counts once, however many statements and names their key has. Statements of anyone else count nothing.
 */
export function verifyApprovals(
  { operators, deployment }: { operators: Limits["operators"]; deployment: string },
  statements: readonly Statement[],
  subject: StatementSubject,
): string[] {
  const approvers = new Map<string, string>();
  for (const statement of statements) {
    const operator = operators.find(({ name }) => name === statement.signer);
    const read = readStatement(statement.text);
    if (!operator || !read || !isSignedBy(operator.publicKey, statement)) continue;
    if (writeStatement(subject, { deployment, at: read.at }) === statement.text)
      approvers.set(operator.publicKey, operator.name);
  }
  return [...approvers.values()];
}
