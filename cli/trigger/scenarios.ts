import type { EventType } from "../../client/index.ts";
import { usageError } from "../cli-error.ts";
import { changeApprovalKey, changeDestination } from "./account-scenarios.ts";
import { changeEndpoint } from "./endpoint-scenarios.ts";
import { refund, simulate } from "./payment-scenarios.ts";
import type { Scenario } from "./steps.ts";

/** How test mode makes an event of each type happen, or why it cannot. */
export const scenarios: Readonly<Record<EventType, Scenario | { impossible: string }>> = {
  "payment.created": simulate(),
  "payment.processing": simulate("processing"),
  "payment.succeeded": simulate("succeeded"),
  "payment.failed": simulate("failed"),
  "payment.expired": simulate("expired"),
  "payment.cancelled": simulate("cancelled"),
  "payment.settled": { impossible: "no money moves in test mode, so nothing is paid out" },
  "refund.created": refund,
  "refund.held": { impossible: "nothing is screened in test mode" },
  "refund.succeeded": refund,
  "refund.failed": { impossible: "a refund in test mode succeeds at once, so it cannot be withdrawn" },
  "destination.change_requested": changeDestination,
  "destination.approved": { impossible: "a change needs the signature of one of your approval keys" },
  "destination.applied": changeDestination,
  "destination.rejected": {
    impossible: "only a change that waits can be rejected: request one, and reject it over the API",
  },
  "approval_key.registered": changeApprovalKey,
  "approval_key.revoked": changeApprovalKey,
  "webhook_endpoint.created": changeEndpoint,
  "webhook_endpoint.updated": changeEndpoint,
  "webhook_endpoint.deleted": changeEndpoint,
  "webhook_endpoint.disabled": { impossible: "an endpoint is disabled after five days of failures" },
  "webhook_endpoint.test": changeEndpoint,
};

/** Returns the scenario of a type of event. Throws CliError for an unknown type, and for one that test mode cannot produce. */
export function findScenario(type: string): Scenario {
  const scenario = scenarios[parseEventType(type)];
  if (typeof scenario === "function") return scenario;
  throw usageError(`test mode cannot produce ${type}: ${scenario.impossible}`);
}

/** Reads a list of event types that are separated by commas. Throws CliError for an unknown one. */
export function parseEventTypes(text: string): readonly EventType[] {
  return text.split(",").map((type) => parseEventType(type.trim()));
}

function parseEventType(text: string): EventType {
  if (isEventType(text)) return text;
  throw usageError(`there is no event type ${text}: \`pay trigger --list\` lists them`);
}

const isEventType = (text: string): text is EventType => Object.hasOwn(scenarios, text);
