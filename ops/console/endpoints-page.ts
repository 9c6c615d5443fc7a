import type { EndpointHealth } from "../../db/queries/unfinished-work.ts";
import type { ConsolePage } from "./console-page.ts";
import { table } from "./values.ts";

/** Returns the page of the merchants' webhook endpoints, those that fail first. */
export function endpointsPage(endpoints: readonly EndpointHealth[]): ConsolePage {
  const body = table(
    "Webhook endpoints",
    [
      "Endpoint",
      "Origin",
      "Account",
      "Mode",
      "Oldest event that waits",
      "Failing since",
      "Last failure",
      "Disabled",
      "Reason",
    ],
    endpoints.map((one) => [
      one.id,
      one.origin,
      one.account_id,
      one.mode,
      one.oldest_pending,
      one.failing_since,
      one.failed_at,
      one.disabled_at,
      one.disabled_reason,
    ]),
  );
  return { title: "Webhook endpoints", section: "/console/endpoints", body };
}
