import { z } from "zod";
import { done } from "../../payments/error-codes.ts";
import type { EventPayload } from "../../payments/webhooks/event-payloads.ts";
import { findEventPayload, listEvents, listNumberedEvents } from "../../payments/webhooks/list-events.ts";
import type { ApiDeps } from "../api-deps.ts";
import { defineOperation } from "../contract/operation.ts";
import { listQuery } from "../contract/request-schemas.ts";
import { event, eventId, eventListResponse, payload } from "./webhook-schemas.ts";

const ofAccount = { access: "account", scope: "webhooks", wholeAccount: true, success: 200 } as const;
/** Keeps the order of the members, so that an event has the same bytes here and in a webhook. */
const toEvent = (event: EventPayload) => ({ ...event, created_at: event.created_at.toISOString() });

/**
 * Reads a page of a backlog on the replica. Returns undefined for the newest page, and for a list that begins with it: the
 * primary serves them, because it alone gives events their positions.
 */
async function findBacklog({ replica }: ApiDeps, args: Parameters<typeof listEvents>[1]) {
  if (args.cursor === undefined && args.start !== "beginning") return undefined;
  return replica?.attempt(async (db) => {
    const page = await listNumberedEvents({ db }, args);
    return page.ok && !page.value.hasMore ? ({ ok: false } as const) : page;
  });
}

const list = defineOperation({
  ...ofAccount,
  method: "GET",
  path: "/v1/events",
  name: "listEvents",
  summary:
    "Lists the events of the account in the key's mode, the oldest first, in an order that never changes: a reader that follows nextCursor gets each event once.",
  query: listQuery({ maxLimit: 200, defaultLimit: 50 }).extend({
    payload: payload.default("full"),
    start: z
      .enum(["beginning", "latest", "end"], "expected beginning, latest or end")
      .meta({
        description:
          "Where the list begins without a cursor. latest: with the newest events, as many as limit. end: after the newest event. With both, nextCursor continues with later events; while hasMore is true, events before it follow: repeat the call.",
      })
      .default("beginning"),
  }),
  response: eventListResponse,
  async handle(deps, { caller, query }) {
    const args = { ...caller, ...query };
    const listed = (await findBacklog(deps, args)) ?? (await listEvents(deps, args));
    if (!listed.ok) return listed;
    const { items, nextCursor, hasMore } = listed.value;
    return done({ data: items.map(toEvent), nextCursor, hasMore });
  },
});

const get = defineOperation({
  ...ofAccount,
  method: "GET",
  path: "/v1/events/:eventId",
  name: "getEvent",
  summary: "Returns an event in the form of its webhook.",
  params: z.object({ eventId }),
  paramsCode: "event_not_found",
  query: z.strictObject({ payload: payload.default("full") }),
  response: z.object({ event }),
  refusals: ["event_not_found"],
  async handle(deps, { caller, params, query }) {
    const found = await findEventPayload(deps, { ...caller, id: params.eventId, ...query });
    return found.ok ? done({ event: toEvent(found.value) }) : found;
  },
});

/** Operations on the events of an account, for readers that catch up or take no webhooks; additions to the specification. */
export const eventOperations = [list, get];
