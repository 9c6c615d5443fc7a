import type { OperatorRequestRow } from "../../db/queries/operator-requests.ts";
import { type Html, html } from "../../runtime/html.ts";
import type { ConsolePage } from "./console-page.ts";
import { facts, link, table } from "./values.ts";

/** Seconds after which the page of a request that waits is loaded again. */
const REFRESH_S = 2;

/** What became of a request. */
export function requestPage(row: OperatorRequestRow): ConsolePage {
  const body = html`<p role="status">${describeEnd(row)}</p>
    ${facts({
      Action: row.action,
      Subject: linkSubject(row.subject),
      Operator: row.operator,
      Requested: row.requested_at,
      Ended: row.ended_at,
      ...row.args,
    })}`;
  const title = row.state === "requested" ? "Waiting for a worker" : row.state === "done" ? "Done" : "Refused";
  return { title, body, ...(row.state === "requested" ? { refreshS: REFRESH_S } : {}) };
}

/** Returns a table of requests. */
export function showRequests(rows: readonly OperatorRequestRow[]): Html {
  return table(
    "Requested by operators",
    ["At", "Action", "Operator", "State", "Outcome"],
    rows.map((one) => [one.requested_at, one.action, one.operator, one.state, one.outcome]),
  );
}

function describeEnd({ state, outcome }: OperatorRequestRow): string {
  if (state === "requested") return "A worker carries this out within seconds. This page loads again by itself.";
  return state === "done" ? `Done: ${outcome}.` : `Nothing was changed: ${outcome}.`;
}

function linkSubject(subject: string): Html | string {
  if (subject.startsWith("pay_")) return link("payments", subject);
  return subject.startsWith("mrch_") ? link("merchants", subject) : subject;
}
