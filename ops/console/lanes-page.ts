import type { ChainStatus, LaneStatus } from "../../db/queries/gauges.ts";
import { html } from "../../runtime/html.ts";
import type { ConsolePage } from "./console-page.ts";
import { table } from "./values.ts";

/** The lanes that send transactions, and how far each chain has been read. */
export function lanesPage(lanes: readonly LaneStatus[], chains: readonly ChainStatus[]): ConsolePage {
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
    )}`;
  return { title: "Lanes", section: "/console/lanes", body };
}
