import type { Job, Queue } from "bullmq";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { listPaymentsOfRows } from "../../db/queries/open-rows.ts";
import { includesRole } from "../../payments/operators/operators.ts";
import { operatorOf } from "../bull-board/session-guard.ts";
import type { ConsoleDeps } from "./console-deps.ts";
import { sendPage } from "./console-page.ts";
import { findFormProblem, readForm } from "./forms.ts";
import { errorKey, type FailedGroup, jobPage, jobsPage } from "./jobs-page.ts";
import { sendMessage } from "./send-message.ts";

/** Most payments that are listed of the jobs with one error, or of one job. */
const MOST_PAYMENTS = 20;

/** Serves the failed jobs of all queues: by error, one by one, and the forms that run them again. */
export function serveJobs(app: FastifyInstance, deps: ConsoleDeps): void {
  app.get<{ Querystring: { retried?: unknown; of?: unknown } }>("/console/jobs", async (request, reply) => {
    const groups: FailedGroup[] = [];
    for (const queue of deps.queues)
      for (const [error, jobs] of Map.groupBy(await listFailed(queue), ({ failedReason }) => failedReason))
        groups.push(await describeGroup(deps, { queue: queue.name, error, jobs }));
    return sendPage(reply, operatorOf(request), jobsPage(operatorOf(request), groups, describeRetry(request.query)));
  });

  app.get(
    "/console/jobs/:queue/:id",
    async (request: FastifyRequest<{ Params: { queue: string; id: string } }>, reply) => {
      const { queue, id } = request.params;
      const job = await findQueue(deps, queue)?.getJob(id);
      if (!job) {
        const text = `The queue ${queue} has no job ${id}. Jobs leave when their work is done.`;
        return sendMessage(request, reply, { status: 404, title: "Job", text });
      }
      const { component, rows } = deps.describeJob(queue, job.data);
      const payments = await listPaymentsOfRows(deps.db, rows, MOST_PAYMENTS);
      const state = await job.getState();
      return sendPage(
        reply,
        operatorOf(request),
        jobPage(operatorOf(request), { queue, job, state, component, payments }),
      );
    },
  );

  app.post("/console/jobs", async (request, reply) => {
    const operator = operatorOf(request);
    const form = readForm(request.body);
    const refuse = (status: number, text: string) =>
      sendMessage(request, reply, { status, title: "Nothing was changed", text });
    const problem = findFormProblem(request, form);
    if (problem !== undefined) {
      deps.log.warn({ operator: operator.name }, "console form refused");
      return refuse(403, problem);
    }
    if (!includesRole(operator.role, "operator")) return refuse(403, "A viewer can change nothing.");
    const queue = findQueue(deps, form["queue"]);
    if (!queue) return refuse(404, "There is no such queue.");
    const { job: id, error } = form;
    const failed = await listFailed(queue);
    const chosen = failed.filter(
      (job) => (id === undefined || job.id === id) && (error === undefined || errorKey(job.failedReason) === error),
    );
    if (chosen.length === 0)
      return refuse(409, "No failed job is left that this names: another operator or a sweep was faster.");
    const action = id === undefined ? "failed_jobs.retried" : "job.retried";
    const subject = id === undefined ? queue.name : `${queue.name}/${id}`;
    const actor = { kind: "operator", id: operator.name, address: request.ip } as const;
    // Redis is outside of the transaction, so the entry comes first: without it, nothing is run again.
    await deps.record({ actor, action, subject, before: null, after: { jobs: chosen.length }, at: deps.now() });
    deps.log.info({ operator: operator.name, action, subject, jobs: chosen.length }, "operator action");
    let retried = 0;
    for (const job of chosen) if (await retryFailed(job)) retried += 1;
    return reply.redirect(`/console/jobs?retried=${retried}&of=${chosen.length}`, 303);
  });
}

/** Runs a failed job again. Returns false for one that has left or that another operator has retried. Throws any other error. */
async function retryFailed(job: Job): Promise<boolean> {
  try {
    await job.retry("failed");
    return true;
  } catch (error) {
    if (error instanceof Error && /not in the failed state|Missing key for job/.test(error.message)) return false;
    throw error;
  }
}

const findQueue = ({ queues }: ConsoleDeps, name: string | undefined): Queue | undefined =>
  queues.find((queue) => queue.name === name);

/** Returns what the form that led to the page has done; undefined when no form led to it. */
function describeRetry({ retried, of }: { retried?: unknown; of?: unknown }): string | undefined {
  const isCount = (one: unknown) => /^\d{1,6}$/.test(String(one));
  if (!isCount(retried) || !isCount(of)) return undefined;
  if (retried === of) return of === "1" ? "1 job runs again." : `${String(of)} jobs run again.`;
  return `${retried} of ${of} jobs run again. The others had left, or another operator had retried them.`;
}

/** Returns the failed jobs of a queue, the newest first. Jobs that leave meanwhile are left out. */
async function listFailed(queue: Queue): Promise<Job[]> {
  if ((await queue.getFailedCount()) === 0) return [];
  return (await queue.getFailed()).filter((job) => job?.id !== undefined);
}

async function describeGroup(
  deps: ConsoleDeps,
  { queue, error, jobs }: { queue: string; error: string; jobs: readonly Job[] },
): Promise<FailedGroup> {
  const described = jobs.map((job) => deps.describeJob(queue, job.data));
  const rows = [...new Set(described.flatMap((one) => one.rows))];
  const found = await listPaymentsOfRows(deps.db, rows, MOST_PAYMENTS);
  return {
    queue,
    error,
    component: described[0]?.component ?? "unknown",
    jobs: jobs.map(({ id = "", finishedOn = 0 }) => ({ id, failedAt: new Date(finishedOn) })),
    payments: [...new Set(found.map(({ payment_id }) => payment_id))],
  };
}
