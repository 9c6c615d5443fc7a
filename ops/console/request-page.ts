import type { OperatorRequestRow } from "../../db/queries/operator-requests.ts";
import { isExpired } from "../../payments/operators/request-limits.ts";
import { type Html, html } from "../../runtime/html.ts";
import type { ConsolePage } from "./console-page.ts";
import { facts, link, table } from "./values.ts";

/** Seconds after which the page of a request that waits is loaded again. */
const REFRESH_S = 2;

/** Returns the page of what became of a request. The page of one that no worker carries out any more is not loaded again. */
export function requestPage(row: OperatorRequestRow, now: Date): ConsolePage {
  const waits = row.state === "requested" && !isExpired(row, now);
  const body = html`<p role="status">${waits ? waiting : describeEnd(row)}</p>
    ${facts({
      Action: row.action,
      Subject: linkSubject(row.subject),
      Operator: row.operator,
      Requested: row.requested_at,
      Ended: row.ended_at,
      ...row.args,
    })}`;
  if (waits) return { title: "Waiting for a worker", body, refreshS: REFRESH_S };
  return { title: titles[row.state], body };
}

/** Returns a table of requests. */
export function showRequests(rows: readonly OperatorRequestRow[]): Html {
  return table(
    "Requested by operators",
    ["At", "Action", "Operator", "State", "Outcome"],
    rows.map((one) => [one.requested_at, one.action, one.operator, one.state, one.outcome]),
  );
}

const waiting =
  "A worker carries this out, usually within seconds, and never later than 10 minutes after the request. This page loads again by itself.";

/** `requested` is the title of a request that no worker has carried out in time. */
const titles = { requested: "Expired", done: "Done", refused: "Refused" } as const;

function describeEnd({ state, outcome }: OperatorRequestRow): string {
  if (state === "requested")
    return "Nothing was changed: no worker has carried this out within 10 minutes, and none does so any more. Check that workers run, and request it again.";
  return state === "done" ? `Done: ${outcome}.` : `Nothing was changed: ${outcome}.`;
}

function linkSubject(subject: string): Html | string {
  if (subject.startsWith("pay_")) return link("payments", subject);
  return subject.startsWith("mrch_") ? link("merchants", subject) : subject;
}
