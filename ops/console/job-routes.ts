import type { Job, Queue } from "bullmq";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { countPaymentsOfRows, listPaymentsOfRows } from "../../db/queries/open-rows.ts";
import { includesRole } from "../../payments/operators/operators.ts";
import { operatorOf } from "../operator-login/session-guard.ts";
import type { ConsoleDeps } from "./console-deps.ts";
import { sendPage } from "./console-page.ts";
import { findFormProblem, readForm } from "./forms.ts";
import { errorKey, errorPage, type FailedGroup, jobPage, jobsPage, type PaymentPage, retryPage } from "./jobs-page.ts";
import { sendMessage } from "./send-message.ts";

/** Payments of an error that the list of all errors names, and payments on one page of an error or a job. */
const FEW_PAYMENTS = 20;
const PAGE = 200;

type Paged = { Querystring: { after?: unknown } };

/** Serves the failed jobs of all queues: by error, one by one, and the forms that run them again. */
export function serveJobs(app: FastifyInstance, deps: ConsoleDeps): void {
  app.get<{ Querystring: { retried?: unknown; of?: unknown } }>("/console/jobs", async (request, reply) => {
    const groups: FailedGroup[] = [];
    for (const queue of deps.queues)
      for (const [error, jobs] of Map.groupBy(await listFailed(queue), ({ failedReason }) => failedReason))
        groups.push(await describeGroup(deps, { queue: queue.name, error, jobs }));
    return sendPage(reply, operatorOf(request), jobsPage(operatorOf(request), groups, describeRetry(request.query)));
  });

  app.get<{ Params: { queue: string; key: string } } & Paged>(
    "/console/jobs/:queue/errors/:key",
    async (request, reply) => {
      const { queue, key } = request.params;
      const jobs = await listChosen(findQueue(deps, queue), key);
      const [job] = jobs;
      if (!job) return sendNoJobs(request, reply);
      const group = await describeGroup(deps, { queue, error: job.failedReason, jobs });
      const payments = await readPage(deps, rowsOf(deps, queue, jobs), request.query.after);
      return sendPage(reply, operatorOf(request), errorPage(operatorOf(request), group, payments));
    },
  );

  app.get<{ Params: { queue: string; id: string } } & Paged>("/console/jobs/:queue/:id", async (request, reply) => {
    const { queue, id } = request.params;
    const job = await findQueue(deps, queue)?.getJob(id);
    if (!job) {
      const text = `The queue ${queue} has no job ${id}. Jobs leave when their work is done.`;
      return sendMessage(request, reply, { status: 404, title: "Job", text });
    }
    const { component, rows } = deps.describeJob(queue, job.data);
    const payments = await readPage(deps, rows, request.query.after);
    const state = await job.getState();
    return sendPage(
      reply,
      operatorOf(request),
      jobPage(operatorOf(request), { queue, job, state, component, payments }),
    );
  });

  app.get<{ Params: { queue: string }; Querystring: { error?: unknown } }>(
    "/console/retries/:queue",
    async (request, reply) => {
      const operator = operatorOf(request);
      if (!includesRole(operator.role, "operator")) return sendViewerRefusal(request, reply);
      const { queue } = request.params;
      const key = typeof request.query.error === "string" ? request.query.error : undefined;
      const jobs = await listChosen(findQueue(deps, queue), key);
      if (jobs.length === 0) return sendNoJobs(request, reply);
      const payments = await countPaymentsOfRows(deps.db, rowsOf(deps, queue, jobs));
      const error = key === undefined ? undefined : jobs[0]?.failedReason;
      return sendPage(reply, operator, retryPage(operator, { queue, error, jobs: jobs.length, payments }));
    },
  );

  app.post("/console/jobs", async (request, reply) => {
    const operator = operatorOf(request);
    const form = readForm(request.body);
    const problem = findFormProblem(request, form);
    if (problem !== undefined) {
      deps.log.warn({ operator: operator.name }, "console form refused");
      return sendMessage(request, reply, { status: 403, title: "Nothing was changed", text: problem });
    }
    if (!includesRole(operator.role, "operator")) return sendViewerRefusal(request, reply);
    const { job = null, error } = form;
    const queue = findQueue(deps, form["queue"]);
    const chosen = job === null ? await listChosen(queue, error) : await findFailed(queue, job);
    if (!queue || chosen.length === 0) return sendNoJobs(request, reply);
    const retried = { queue: queue.name, job, jobs: chosen.length };
    // Redis is outside of the transaction, so the entry comes first: without it, nothing is run again.
    await deps.recordRetry(operator.token, retried);
    deps.log.info({ operator: operator.name, ...retried }, "failed jobs are run again");
    let done = 0;
    for (const one of chosen) if (await retryFailed(one)) done += 1;
    return reply.redirect(`/console/jobs?retried=${done}&of=${chosen.length}`, 303);
  });
}

const sendViewerRefusal = (request: FastifyRequest, reply: FastifyReply) =>
  sendMessage(request, reply, { status: 403, title: "Nothing was changed", text: "A viewer can change nothing." });

const sendNoJobs = (request: FastifyRequest, reply: FastifyReply) =>
  sendMessage(request, reply, {
    status: request.method === "GET" ? 404 : 409,
    title: "No failed job",
    text: "No failed job is left that this names: another operator or a sweep was faster.",
  });

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

/** Returns the failed jobs of a queue, all of them or those with one error. */
async function listChosen(queue: Queue | undefined, key: string | undefined): Promise<Job[]> {
  const failed = queue === undefined ? [] : await listFailed(queue);
  return key === undefined ? failed : failed.filter((job) => errorKey(job.failedReason) === key);
}

/** Returns one job of a queue, if it has failed. */
async function findFailed(queue: Queue | undefined, id: string): Promise<Job[]> {
  const job = await queue?.getJob(id);
  return job && (await job.isFailed()) ? [job] : [];
}

const rowsOf = (deps: ConsoleDeps, queue: string, jobs: readonly Job[]): string[] => [
  ...new Set(jobs.flatMap((job) => deps.describeJob(queue, job.data).rows)),
];

/** Returns a page of the payments to which rows belong. @param after the last payment of the page before */
async function readPage({ db }: ConsoleDeps, ids: readonly string[], after: unknown): Promise<PaymentPage> {
  const isId = typeof after === "string" && /^\w{1,64}$/.test(after);
  const found = await listPaymentsOfRows(db, { ids, after: isId ? after : undefined, limit: PAGE + 1 });
  const payments = found.slice(0, PAGE);
  return { payments, next: found.length > PAGE ? payments.at(-1)?.payment_id : undefined };
}

async function describeGroup(
  deps: ConsoleDeps,
  { queue, error, jobs }: { queue: string; error: string; jobs: readonly Job[] },
): Promise<FailedGroup> {
  const ids = rowsOf(deps, queue, jobs);
  const few = await listPaymentsOfRows(deps.db, { ids, limit: FEW_PAYMENTS });
  return {
    queue,
    error,
    component: deps.describeJob(queue, jobs[0]?.data).component,
    jobs: jobs.map(({ id = "", finishedOn = 0 }) => ({ id, failedAt: new Date(finishedOn) })),
    payments: few.map(({ payment_id }) => payment_id),
    paymentCount: few.length < FEW_PAYMENTS ? few.length : await countPaymentsOfRows(deps.db, ids),
  };
}
