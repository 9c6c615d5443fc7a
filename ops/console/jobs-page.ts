import { createHash } from "node:crypto";
import type { Job } from "bullmq";
import type { PaymentOfRow } from "../../db/queries/open-rows.ts";
import { includesRole } from "../../payments/operators/operators.ts";
import { type Html, html } from "../../runtime/html.ts";
import type { SignedIn } from "../bull-board/session-guard.ts";
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
  payments: readonly string[];
};

/** Most jobs that are linked of one error. */
const MOST_LINKED = 5;

/** The failed jobs of all queues, by error. @param status what a form of the page has just done */
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
        html`${one.payments.map((id) => html`${link("payments", id)} `)}`,
        html`${one.jobs.slice(0, MOST_LINKED).map(({ id }) => html`<a href="${jobPath(one.queue, id)}">${id}</a> `)}`,
        retryForm(operator, { queue: one.queue, error: errorKey(one.error) }, "Retry all with this error"),
      ]),
    )}
    ${queues.length > 0 && includesRole(operator.role, "operator") && html`<h2>Retry a whole queue</h2><div class="actions">${queues.map((queue) => retryForm(operator, { queue }, `Retry all of ${queue}`))}</div>`}`;
  return { title: "Failed jobs", section: "/console/jobs", body };
}

type JobDetails = { queue: string; job: Job; state: string; component: string; payments: readonly PaymentOfRow[] };

/** One job: its payments, its error in words and with its code, and the place where it was thrown. */
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
    ${table(
      "Payments",
      ["Payment", "Row that the job names"],
      payments.map((one) => [link("payments", one.payment_id), one.row]),
    )}
    <h2>Data</h2><pre>${JSON.stringify(job.data, undefined, 2)}</pre>
    <h2>Thrown at</h2><pre>${(job.stacktrace ?? []).at(-1) ?? "unknown"}</pre>`;
  return { title: `Job ${job.id}`, section: "/console/jobs", body };
}

/** Returns the path of a job's page. */
export const jobPath = (queue: string, id: string): string =>
  `/console/jobs/${encodeURIComponent(queue)}/${encodeURIComponent(id)}`;

/** Returns a short name of an error, because a form changes the line breaks of what it sends back. */
export const errorKey = (error: string): string => createHash("sha256").update(error).digest("hex").slice(0, 16);

/** Returns the form that runs failed jobs again; nothing for an operator who may only read. */
function retryForm(operator: SignedIn, fields: Readonly<Record<string, string>>, label: string): Html | undefined {
  if (!includesRole(operator.role, "operator")) return undefined;
  const inputs = Object.entries({ token: makeFormToken(operator.token), ...fields });
  return html`<form action="/console/jobs" method="post">${inputs.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}<button type="submit">${label}</button></form>`;
}
