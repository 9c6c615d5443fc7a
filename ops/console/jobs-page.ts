import { createHash } from "node:crypto";
import type { Job } from "bullmq";
import type { PaymentOfRow } from "../../db/queries/open-rows.ts";
import { includesRole } from "../../payments/operators/operators.ts";
import { type Html, html } from "../../runtime/html.ts";
import type { SignedIn } from "../operator-login/session-guard.ts";
import type { ConsolePage } from "./console-page.ts";
import { makeFormToken } from "./csrf.ts";
import { facts, link, table } from "./values.ts";

/** Failed jobs of one queue with the same error. */
export type FailedGroup = {
  queue: string;
  error: string;
  component: string;
  /** The newest first. */
  jobs: readonly { id: string; failedAt: Date }[];
  /** The first of them, and how many there are. */
  payments: readonly string[];
  paymentCount: number;
};

/** Payments with the rows of the jobs that belong to them. @param next the last payment, when more follow */
export type PaymentPage = { payments: readonly PaymentOfRow[]; next: string | undefined };

/** Most jobs of one error that are linked in the list of errors, and on the page of the error. */
const FEW_JOBS = 5;
const MOST_JOBS = 500;

/** Returns the page of the failed jobs of all queues, by error. @param status what a form of the page has just done */
export function jobsPage(operator: SignedIn, groups: readonly FailedGroup[], status?: string): ConsolePage {
  const queues = [...new Set(groups.map(({ queue }) => queue))];
  const body = html`${status !== undefined && html`<p role="status">${status}</p>`}
    <p>These jobs failed with an error that is not transient. Running them again is harmless. A job leaves this list when its work is done.</p>
    ${table(
      "By error",
      ["Component", "Queue", "Error", "Jobs", "Newest", "Payments", "Job", "Action"],
      groups.map((one) => [
        one.component,
        one.queue,
        one.error,
        one.jobs.length,
        one.jobs[0]?.failedAt,
        html`${one.payments.map((id) => html`${link("payments", id)} `)}${one.paymentCount > one.payments.length && html`<a href="${errorPath(one)}">all ${one.paymentCount}</a>`}`,
        html`${linkJobs(one, FEW_JOBS)}${one.jobs.length > FEW_JOBS && html`<a href="${errorPath(one)}">all ${one.jobs.length}</a>`}`,
        retryLink(operator, one, "Retry all with this error"),
      ]),
    )}
    ${queues.length > 0 && includesRole(operator.role, "operator") && html`<h2>Retry a whole queue</h2><div class="actions">${queues.map((queue) => retryLink(operator, { queue }, `Retry all of ${queue}`))}</div>`}`;
  return { title: "Failed jobs", section: "/console/jobs", body };
}

/** Returns the page of all payments and jobs of one error. */
export function errorPage(operator: SignedIn, group: FailedGroup, page: PaymentPage): ConsolePage {
  const { component, queue, error, jobs, paymentCount } = group;
  const body = html`
    ${facts({ Component: component, Queue: queue, Error: error, Jobs: jobs.length, Payments: paymentCount })}
    ${retryLink(operator, group, "Retry all with this error")}
    ${showPaymentPage(page)}
    <h2>${jobs.length > MOST_JOBS ? `The newest ${MOST_JOBS} jobs` : "Jobs"}</h2><p>${linkJobs(group, MOST_JOBS)}</p>`;
  return { title: "Failed jobs with one error", section: "/console/jobs", body };
}

/** Returns the page that confirms the retry of several jobs. `error` is undefined for a whole queue. */
export function retryPage(
  operator: SignedIn,
  { queue, error, jobs, payments }: { queue: string; error: string | undefined; jobs: number; payments: number },
): ConsolePage {
  const fields = error === undefined ? { queue } : { queue, error: errorKey(error) };
  const body = html`<p>Jobs that have failed meanwhile run again too. Running jobs again is harmless.</p>
    ${facts({ Queue: queue, Error: error ?? "all errors", "Failed jobs": jobs, Payments: payments })}
    ${retryForm(operator, fields, jobs === 1 ? "Retry 1 job" : `Retry ${jobs} jobs`)}`;
  return { title: "Retry failed jobs", section: "/console/jobs", body };
}

type JobDetails = { queue: string; job: Job; state: string; component: string; payments: PaymentPage };

/** Returns the page of one job: its payments, its error in words and with its code, and the place where it was thrown. */
export function jobPage(operator: SignedIn, { queue, job, state, component, payments }: JobDetails): ConsolePage {
  const body = html`
    ${facts({
      Component: component,
      Queue: queue,
      State: state,
      Error: job.failedReason,
      "Attempts made": job.attemptsMade,
      Created: new Date(job.timestamp),
      Ended: job.finishedOn === undefined ? null : new Date(job.finishedOn),
    })}
    ${state === "failed" && html`<div class="actions">${retryForm(operator, { queue, job: job.id ?? "" }, "Retry")}</div>`}
    ${showPaymentPage(payments)}
    <h2>Data</h2><pre>${JSON.stringify(job.data, undefined, 2)}</pre>
    <h2>Thrown at</h2><pre>${(job.stacktrace ?? []).at(-1) ?? "unknown"}</pre>`;
  return { title: `Job ${job.id}`, section: "/console/jobs", body };
}

/** Returns the path of a job's page. */
export const jobPath = (queue: string, id: string): string =>
  `/console/jobs/${encodeURIComponent(queue)}/${encodeURIComponent(id)}`;

/** Returns a short name of an error, because a form changes the line breaks of what it sends back. */
export const errorKey = (error: string): string => createHash("sha256").update(error).digest("hex").slice(0, 16);

const errorPath = ({ queue, error }: { queue: string; error: string }): string =>
  `/console/jobs/${encodeURIComponent(queue)}/errors/${errorKey(error)}`;

const linkJobs = ({ queue, jobs }: FailedGroup, most: number): Html[] =>
  jobs.slice(0, most).map(({ id }) => html`<a href="${jobPath(queue, id)}">${id}</a> `);

const showPaymentPage = ({ payments, next }: PaymentPage): Html => html`
    ${table(
      "Payments",
      ["Payment", "Row that the job names"],
      payments.map((one) => [link("payments", one.payment_id), one.row]),
    )}
    ${next !== undefined && html`<p><a href="?after=${encodeURIComponent(next)}">More payments</a></p>`}`;

/** Returns the link to the page that confirms a retry; nothing for an operator who may only read. */
function retryLink(
  operator: SignedIn,
  { queue, error }: { queue: string; error?: string },
  label: string,
): Html | undefined {
  if (!includesRole(operator.role, "operator")) return undefined;
  const query = error === undefined ? "" : `?error=${errorKey(error)}`;
  return html`<a class="button" href="/console/retries/${encodeURIComponent(queue)}${query}">${label}</a>`;
}

/** Returns the form that runs failed jobs again; nothing for an operator who may only read. */
function retryForm(operator: SignedIn, fields: Readonly<Record<string, string>>, label: string): Html | undefined {
  if (!includesRole(operator.role, "operator")) return undefined;
  const inputs = Object.entries({ token: makeFormToken(operator.token), ...fields });
  return html`<form action="/console/jobs" method="post">${inputs.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}<button type="submit">${label}</button></form>`;
}
