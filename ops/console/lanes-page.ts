import type { ChainStatus, LaneStatus } from "../../db/queries/gauges.ts";
import type { EndpointReport } from "../../db/queries/rpc-endpoints.ts";
import { html } from "../../runtime/html.ts";
import type { ConsolePage } from "./console-page.ts";
import { table } from "./values.ts";

/**
 * Returns the page of the lanes that send transactions, how far each chain has been read, and its RPC endpoints, whose URLs the
 * board does not know.
 */
export function lanesPage(
  lanes: readonly LaneStatus[],
  chains: readonly ChainStatus[],
  endpoints: readonly EndpointReport[],
): ConsolePage {
  const body = html`
    ${table(
      "Lanes",
      [
        "Chain",
        "Address",
        "Next nonce",
        "In flight",
        "Oldest in flight since",
        "Lowest nonce: maximum fee (wei)",
        "Priority fee (wei)",
        "Newest maximum fee (wei)",
      ],
      lanes.map((one) => [
        one.chain,
        one.address,
        one.next_nonce,
        one.in_flight,
        one.oldest_at,
        one.lowest_max_fee,
        one.lowest_priority_fee,
        one.newest_max_fee,
      ]),
    )}
    ${table(
      "Chains",
      ["Chain", "Read up to block", "Last at the head", "Base fee (wei)", "Transfers wait"],
      chains.map((one) => [one.chain, one.cursor, one.reached_head_at, one.base_fee, one.waiting ? "yes" : "no"]),
    )}
    ${table(
      "RPC endpoints, as workers have reported them within two minutes",
      [
        "Chain",
        "Endpoint",
        "Reached by workers",
        "Newest block",
        "Blocks behind",
        "Last answer",
        "Last failure",
        "Error",
        "Calls",
        "Failed calls",
      ],
      endpoints.map((one) => [
        one.chain,
        one.name,
        `${one.reached_by} of ${one.workers}`,
        one.height,
        one.behind,
        one.answered_at,
        one.failed_at,
        one.error,
        one.calls,
        one.failures,
      ]),
    )}`;
  return { title: "Lanes", section: "/console/lanes", body };
}
