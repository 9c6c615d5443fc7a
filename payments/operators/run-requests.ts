import { inTransaction } from "../../db/in-transaction.ts";
import {
  countDoneRequests,
  endOperatorRequest,
  findOperatorRole,
  hasSignedIn,
  listWaitingRequests,
  lockWaitingRequest,
  type OperatorRequestRow,
} from "../../db/queries/operator-requests.ts";
import type { Enqueue } from "../../queues/enqueue.ts";
import { type Result, refuse } from "../error-codes.ts";
import { isTransient } from "../is-transient.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { includesRole } from "./operators.ts";
import { HOUR_MS, isExpired, MOST_PER_HOUR } from "./request-limits.ts";
import { type ActionDeps, type AfterCommit, isActionName, requestedActions } from "./requested-actions.ts";
import { SESSION_MS } from "./sign-in.ts";

/** Requests carried out in one run. */
const LIMIT = 20;

type Deps = Pick<PaymentDeps, "db" | "now" | "enqueue" | "networks" | "log" | "metrics">;

/**
 * Carries out what operators have requested on the console, the oldest first, each in one transaction with its audit entry
 * and with the outcome that the operator sees. A request is carried out once, whatever number of workers do this.
 */
export async function runOperatorRequests(deps: Deps): Promise<void> {
  for (const id of await listWaitingRequests(deps.db, LIMIT)) await runOnce(deps, id);
}

async function runOnce(deps: Deps, id: string): Promise<void> {
  const following: AfterCommit[] = [];
  const enqueue: Enqueue = async (queue, requests) => void following.push(() => deps.enqueue(queue, requests));
  const afterCommit = (work: AfterCommit) => void following.push(work);
  try {
    const isEnded = await inTransaction(deps.db, async (db) => {
      const row = await lockWaitingRequest(db, id);
      if (!row) return false;
      const result = await runRequest({ db, now: deps.now, networks: deps.networks, enqueue, afterCommit }, row);
      const ended_at = deps.now();
      const end = result.ok
        ? { state: "done" as const, outcome: result.value }
        : { state: "refused" as const, outcome: result.message };
      await endOperatorRequest(db, { id, ...end, ended_at });
      return true;
    });
    if (isEnded) deps.metrics.operatorRequests.inc();
  } catch (error) {
    deps.log.error({ err: error, request: id }, "an operator's request failed");
    // A later run may succeed. Any other error is a bug, which a further run would only repeat.
    if (isTransient(error)) return;
    const outcome = "the action failed, and nothing was changed: the workers' log has the error";
    await endOperatorRequest(deps.db, { id, state: "refused", outcome, ended_at: deps.now() });
    deps.metrics.operatorRequests.inc();
    return;
  }
  for (const work of following)
    await work(deps.db).catch((err: unknown) => deps.log.warn({ err, request: id }, "work after a request failed"));
}

/** Verifies a request and carries it out. The board has verified the same, but a worker does not trust it. */
async function runRequest(deps: ActionDeps, row: OperatorRequestRow): Promise<Result<string>> {
  const { action, subject, args } = row;
  const role = await findOperatorRole(deps.db, row.operator);
  if (role === undefined || !includesRole(role, "operator"))
    return refuse("forbidden", `${row.operator} may not change anything`);
  if (isExpired(row, deps.now()))
    return refuse("invalid_state", "it was not carried out within 10 minutes: request it again");
  const to = row.requested_at;
  const from = new Date(to.getTime() - SESSION_MS);
  if (!(await hasSignedIn(deps.db, { operator: row.operator, from, to })))
    return refuse("forbidden", `${row.operator} had not signed in within the 12 hours before`);
  if (!isActionName(action)) return refuse("invalid_params", "there is no such action");
  const problem = requestedActions[action].validate({ subject, args });
  if (problem !== undefined) return refuse("invalid_params", problem);
  const since = new Date(row.requested_at.getTime() - HOUR_MS);
  if ((await countDoneRequests(deps.db, { operator: row.operator, since })) >= MOST_PER_HOUR)
    return refuse(
      "invalid_state",
      `workers carry out ${MOST_PER_HOUR} requests of one operator within an hour: wait, or use the command line`,
    );
  const actor = { kind: "operator", id: row.operator, address: row.address, request: row.id } as const;
  return requestedActions[action].run(deps, { actor, subject, args });
}
