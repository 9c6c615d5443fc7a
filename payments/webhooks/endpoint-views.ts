import {
  type EndpointQuery,
  type EndpointRow,
  findEndpointRow,
  listEndpointRows,
} from "../../db/queries/webhook-endpoints.ts";
import type { Db, Mode } from "../../db/tables.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import type { Owner } from "../merchants/merchants.ts";
import type { PayloadKind } from "./event-payloads.ts";

export type { EndpointQuery } from "../../db/queries/webhook-endpoints.ts";

/** A URL that receives events of an account's objects of one mode, without its secret. */
export type EndpointView = {
  id: string;
  accountId: string;
  mode: Mode;
  url: string;
  /** What it receives; null: events of every type, of every merchant. */
  eventTypes: readonly string[] | null;
  merchantIds: readonly string[] | null;
  payload: PayloadKind;
  status: "enabled" | "disabled";
  /** Why and since when it is disabled. */
  disabledReason: "failing" | "requested" | null;
  disabledAt: Date | null;
  /** The first failure since the last success. */
  failingSince: Date | null;
  /** An operator has registered it: API keys cannot change it. */
  byOperator: boolean;
  createdAt: Date;
  /** Until when the secret before the last rotation signs too. */
  previousUntil: Date | null;
};

/** Returns an endpoint. Refuses with `webhook_endpoint_not_found`, also for one of another account or mode. */
export async function findEndpoint({ db }: { db: Db }, query: EndpointQuery): Promise<Result<EndpointView>> {
  const row = await findEndpointRow(db, query);
  return row ? done(toEndpointView(row)) : noEndpoint();
}

/** Returns the endpoints of an account and mode, the oldest first. */
export async function listEndpoints({ db }: { db: Db }, owner: Owner): Promise<EndpointView[]> {
  return (await listEndpointRows(db, owner)).map(toEndpointView);
}

/** Refuses a call for an endpoint that does not exist for its caller. */
export const noEndpoint = () => refuse("webhook_endpoint_not_found", "no such webhook endpoint");

/** Returns an endpoint as its account sees it. */
export function toEndpointView(row: EndpointRow): EndpointView {
  return {
    id: row.id,
    accountId: row.account_id,
    mode: row.mode,
    url: row.url,
    eventTypes: row.event_types,
    merchantIds: row.merchant_ids,
    payload: row.payload,
    status: row.disabled_at === null ? "enabled" : "disabled",
    disabledReason: row.disabled_reason,
    disabledAt: row.disabled_at,
    failingSince: row.failing_since,
    byOperator: row.by_operator,
    createdAt: row.created_at,
    previousUntil: row.previous_until,
  };
}
