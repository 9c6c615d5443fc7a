import type { ListRequestLogsQuery, ListRequestLogsResponse, RequestLogEntry } from "../api-types.ts";
import { listPages, type Pages } from "../http/pages.ts";
import type { CallOptions } from "../http/transport.ts";
import type { MerchantCalls } from "./merchant-calls.ts";

/** The latest requests of the account in test mode. */
export function createRequestLogs({ get }: MerchantCalls) {
  return {
    /** Lists them, the newest first. A live key is refused. */
    list: (query: ListRequestLogsQuery = {}, options?: CallOptions): Pages<RequestLogEntry, ListRequestLogsResponse> =>
      listPages(
        (cursor) => get("/v1/request-logs", { ...query, cursor }, options),
        ({ data }) => data,
        query.cursor,
      ),
  };
}
