import type { GetEventQuery, GetEventResponse, ListEventsQuery, ListEventsResponse } from "../api-types.ts";
import { listPages, type Pages } from "../http/pages.ts";
import { type CallOptions, path } from "../http/transport.ts";
import type { ThinWebhookEvent, WebhookEvent } from "../webhooks/events.ts";
import type { MerchantCalls } from "./merchant-calls.ts";

type Payload = NonNullable<ListEventsQuery["payload"]>;
type EventAs<P extends Payload> = P extends "thin" ? ThinWebhookEvent : WebhookEvent;
type EventPage<P extends Payload> = Omit<ListEventsResponse, "data"> & { readonly data: readonly EventAs<P>[] };
/** A cursor is null before the first page, as it is stored. */
type ListQuery<P extends Payload> = Omit<ListEventsQuery, "payload" | "cursor"> & {
  readonly payload?: P;
  readonly cursor?: string | null;
};

/** The events of the account, in the form of its webhooks. */
export function createEvents({ get }: MerchantCalls) {
  return {
    /**
     * Lists the events from the oldest, or after a cursor, up to the newest. To continue later, iterate over `pages()` and store
     * each page's `nextCursor` with what you have processed.
     */
    list: <P extends Payload = "full">(
      query: ListQuery<P> = {},
      options?: CallOptions,
    ): Pages<EventAs<P>, EventPage<P>> =>
      listPages(
        (cursor) => get<EventPage<P>>("/v1/events", { ...query, cursor }, options),
        ({ data }) => data,
        query.cursor ?? undefined,
      ),
    get: <P extends Payload = "full">(
      eventId: string,
      query: Omit<GetEventQuery, "payload"> & { readonly payload?: P } = {},
      options?: CallOptions,
    ) =>
      get<Omit<GetEventResponse, "event"> & { readonly event: EventAs<P> }>(
        path`/v1/events/${eventId}`,
        query,
        options,
      ),
  };
}
