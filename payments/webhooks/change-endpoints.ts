import { inTransaction } from "../../db/in-transaction.ts";
import { lockAccount } from "../../db/queries/accounts.ts";
import type { AuditActor } from "../../db/queries/audit-entries.ts";
import {
  countEndpointsSince,
  type EndpointRow,
  findEndpointRow,
  insertEndpoint,
  listEndpointRows,
  updateEndpoint,
} from "../../db/queries/webhook-endpoints.ts";
import type { Db } from "../../db/tables.ts";
import { done, type Refusal, type Result, refuse } from "../error-codes.ts";
import { newId } from "../ids.ts";
import { type Owner, refuseMissingMerchant } from "../merchants/merchants.ts";
import { makeSecret, type SecretDeps } from "./endpoint-secrets.ts";
import { type EndpointView, noEndpoint, toEndpointView } from "./endpoint-views.ts";
import type { PayloadKind } from "./event-payloads.ts";
import type { EventType } from "./event-types.ts";
import {
  changeLocked,
  type EndpointChange,
  type EndpointDeps,
  FLOOD_RETRY_S,
  recordChange,
  refuseFlood,
} from "./lock-endpoint.ts";

/**
 * Endpoints of an account and mode. The events of both modes then leave half of a worker's delivery jobs to other accounts
 * (queues/catalog.ts), even if all of these endpoints hang.
 */
export const MAX_ENDPOINTS = 16;

/** Endpoints that an account registers in a mode within a day. Deleted ones count, because their rows stay. */
const MAX_PER_DAY = 100;
const DAY_MS = 24 * 60 * 60_000;

type UrlDeps = { validateUrl: (url: string) => string | undefined };

/** What an endpoint receives, and in which form. A null filter means everything. */
export type EndpointSettings = {
  url: string;
  eventTypes: readonly EventType[] | null;
  merchantIds: readonly string[] | null;
  payload: PayloadKind;
};

/** Settings of which an undefined one is left as it is. */
type SomeSettings = { [M in keyof EndpointSettings]?: EndpointSettings[M] | undefined };

/**
 * Registers an endpoint of an account and mode. From then on it receives their events. Returns its secret once and stores it
 * encrypted. Refuses with `params_validation` an unknown account or a URL that `validateUrl` rejects, with
 * `merchant_not_found` an unknown merchant, and with `invalid_state` a URL that is registered already (so that a repeated
 * call registers one endpoint) or one endpoint too many, and with `rate_limited` more than 100 registrations in a day.
 */
export async function createEndpoint(
  deps: SecretDeps & UrlDeps,
  args: Owner & { actor: AuditActor } & SomeSettings & { url: string },
): Promise<Result<{ endpoint: EndpointView; secret: string }>> {
  const { accountId, mode, actor, url, eventTypes = null, merchantIds = null, payload = "full" } = args;
  return inTransaction(deps.db, async (db) => {
    // The lock serializes calls. It does not block inserts of the account's payments.
    if (!(await lockAccount(db, accountId))) return refuse("params_validation", "accountId: there is no such account");
    const refusal = await validateSettings({ ...deps, db }, { accountId, mode, url, merchantIds });
    if (refusal) return refusal;
    if ((await listEndpointRows(db, { accountId, mode })).length >= MAX_ENDPOINTS)
      return refuse(
        "invalid_state",
        `the account has ${MAX_ENDPOINTS} webhook endpoints in this mode, which is the most`,
      );
    const at = deps.now();
    const since = new Date(at.getTime() - DAY_MS);
    if ((await countEndpointsSince(db, { accountId, mode, since })) >= MAX_PER_DAY)
      return refuse(
        "rate_limited",
        `the account has registered ${MAX_PER_DAY} webhook endpoints in this mode within a day, which is the most`,
        FLOOD_RETRY_S,
      );
    const id = newId("whe", at);
    const { secret, columns } = await makeSecret(deps, id);
    await insertEndpoint(db, {
      id,
      account_id: accountId,
      mode,
      url,
      event_types: eventTypes && [...eventTypes],
      merchant_ids: merchantIds && [...merchantIds],
      payload,
      by_operator: actor.kind === "operator",
      ...columns,
      created_at: at,
      deleted_at: null,
    });
    const row = await findEndpointRow(db, { endpointId: id });
    if (!row) throw new Error(`the endpoint ${id} was not inserted`);
    const audit = {
      action: "webhook_endpoint.created",
      before: null,
      after: { account: accountId, mode, ...describe(row) },
    };
    await recordChange(db, row, { actor, at, audit, event: { type: "webhook_endpoint.created", reason: null } });
    return done({ endpoint: toEndpointView(row), secret });
  });
}

/**
 * Changes an endpoint: its URL (pending events go to the new one), its filters (for later events), its payload, or whether
 * it is enabled. A disabled endpoint receives nothing, and a worker gives up its pending events; once it is enabled again, a
 * replay sends what it has missed. Notices of changes also go by the state of the last day. Refuses like `createEndpoint` and
 * `changeLocked`, and an API key with `rate_limited` after 300 changes of the account's endpoints in a day.
 */
export async function changeEndpoint(
  deps: EndpointDeps & UrlDeps,
  args: EndpointChange & SomeSettings & { status?: "enabled" | "disabled" | undefined },
): Promise<Result<EndpointView>> {
  const { url, eventTypes, merchantIds, payload, status } = args;
  return inTransaction(deps.db, async (db) => {
    const there = await findEndpointRow(db, args);
    if (!there) return noEndpoint();
    // Before the endpoint, as registering does: the URL must stay the only one of its kind.
    await lockAccount(db, there.account_id);
    return changeLocked({ ...deps, db }, args, async (_db, row) => {
      const owner = { accountId: row.account_id, mode: row.mode, ofEndpoint: row.id };
      const refusal = await validateSettings({ ...deps, db }, { ...owner, url, merchantIds });
      if (refusal) return refusal;
      const changes = {
        ...(url === undefined ? {} : { url }),
        ...(eventTypes === undefined ? {} : { event_types: eventTypes && [...eventTypes] }),
        ...(merchantIds === undefined ? {} : { merchant_ids: merchantIds && [...merchantIds] }),
        ...(payload === undefined ? {} : { payload }),
        ...toStatus(row, status, deps.now()),
      };
      if (Object.keys(changes).length === 0) return done({ value: toEndpointView(row) });
      const flood = await refuseFlood({ ...deps, db }, row, { actor: args.actor, what: "change" });
      if (flood) return flood;
      await updateEndpoint(db, row.id, changes);
      const changed = { ...row, ...changes };
      const audit = { action: "webhook_endpoint.updated", before: describe(row), after: describe(changed) };
      const event = { type: "webhook_endpoint.updated", reason: changed.disabled_reason } as const;
      return done({ value: toEndpointView(changed), audit, event });
    });
  });
}

/** Returns the columns of a new status; none when the endpoint has it already. */
function toStatus(row: EndpointRow, status: "enabled" | "disabled" | undefined, at: Date) {
  if (status === "enabled" && row.disabled_at) return { disabled_at: null, disabled_reason: null, failing_since: null };
  if (status === "disabled" && !row.disabled_at) return { disabled_at: at, disabled_reason: "requested" as const };
  return {};
}

/** Deletes an endpoint. Nothing more is sent to it, and a worker gives up its pending events. Refuses like `changeLocked`. */
export async function deleteEndpoint(deps: EndpointDeps, args: EndpointChange): Promise<Result<{ id: string }>> {
  return changeLocked(deps, args, async (db, row) => {
    await updateEndpoint(db, row.id, { deleted_at: deps.now() });
    const audit = { action: "webhook_endpoint.deleted", before: { url: row.url }, after: null };
    return done({ value: { id: row.id }, audit, event: { type: "webhook_endpoint.deleted", reason: null } });
  });
}

function describe({
  url,
  event_types: eventTypes,
  merchant_ids: merchantIds,
  payload,
  disabled_reason: disabled,
}: EndpointRow) {
  return { url, eventTypes, merchantIds, payload, disabled };
}

async function validateSettings(
  { db, validateUrl }: { db: Db } & UrlDeps,
  args: Owner & Pick<SomeSettings, "url" | "merchantIds"> & { ofEndpoint?: string },
): Promise<Refusal | undefined> {
  const { accountId, mode, url, merchantIds, ofEndpoint } = args;
  if (url !== undefined) {
    const error = validateUrl(url);
    if (error) return refuse("params_validation", `url: ${error}`);
    const others = await listEndpointRows(db, { accountId, mode });
    if (others.some((other) => other.url === url && other.id !== ofEndpoint))
      return refuse("invalid_state", "url: another webhook endpoint of the account and mode has it");
  }
  return merchantIds ? refuseMissingMerchant(db, { accountId, mode, ids: merchantIds }) : undefined;
}
