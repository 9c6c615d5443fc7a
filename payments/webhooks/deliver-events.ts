import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { Webhook } from "standardwebhooks";
import { type DueDestinationEvent, listDueDestinationEvents } from "../../db/queries/destination-events.ts";
import {
  type DeliveryAttempt,
  type DueEvent as DuePaymentEvent,
  giveUpDeliveries,
  listDueEvents,
  recordDeliveryAttempts,
} from "../../db/queries/webhook-deliveries.ts";
import { type EndpointRow, leaseEndpoint, releaseEndpoint } from "../../db/queries/webhook-endpoints.ts";
import type { Decrypt } from "../../runtime/encryption.ts";
import type { SafeFetchError } from "../../runtime/safe-fetch.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { isDestinationEvent, toDestinationPayload } from "./destination-payload.ts";
import { writeSettledEvents } from "./settled-events.ts";
import { toPayload } from "./webhook-payload.ts";

export type DeliveryDeps = PaymentDeps & { decryptWebhookSecret: Decrypt };
type DueEvent = DuePaymentEvent | DueDestinationEvent;

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/**
 * Delays between delivery attempts, milliseconds (wire contract, part 10). The attempt after the last delay is final.
 */
const WAITS_MS = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 10 * HOUR];

const TIMEOUT_MS = 15 * SECOND;
/** Maximum response size, bytes. Response bodies are discarded. */
const ANSWER_BYTES = 64 * 1024;
/** Concurrent requests to one endpoint. The limit protects a slow endpoint, and other endpoints from it. */
const AT_ONCE = 100;
/** Lease time of an endpoint. Longer than the poll interval, see POLL_MS. */
const LEASE_MS = 10 * SECOND;
const RENEW_MS = 3 * SECOND;
/** Interval at which due events are read while requests are in flight. */
const POLL_MS = SECOND;
/** Batching delay: results that arrive within it are recorded in one statement. */
const BATCH_DELAY_MS = 20;
/** Time slice of one endpoint. After it, the endpoint's job goes to the end of the queue. */
const TIME_SLICE_MS = 10 * SECOND;

/** Returns when the next attempt is due after this many attempts; undefined after the last one. */
function nextAttempt(attemptsMade: number, now: Date): Date | undefined {
  const wait = WAITS_MS[attemptsMade - 1];
  return wait === undefined ? undefined : new Date(now.getTime() + wait);
}

/**
 * Sends an endpoint its due events, several concurrently, until none is left. A lease ensures that one worker delivers
 * to an endpoint at a time. Delivery is at least once: after a crash between a response and its record, the same event
 * is sent again under the same id. Returns `more` when the time slice has ended and events may be left.
 */
export async function deliverDue(
  deps: DeliveryDeps,
  args: { endpointId: string; signal: AbortSignal },
): Promise<"done" | "more"> {
  const owner = randomUUID();
  const renew = () => {
    const now = deps.now();
    return leaseEndpoint(deps.db, { id: args.endpointId, owner, now, until: new Date(now.getTime() + LEASE_MS) });
  };
  const endpoint = await renew();
  if (!endpoint) return "done";
  const end = await pump(deps, { endpoint, renew, signal: args.signal });
  // After an error the lease is not released; it expires, which delays the next worker.
  await releaseEndpoint(deps.db, { id: args.endpointId, owner });
  return end;
}

type Run = { endpoint: EndpointRow; renew: () => Promise<EndpointRow | undefined>; signal: AbortSignal };

/** Keeps up to `AT_ONCE` requests in flight. A slow request does not delay the next ones. */
async function pump(deps: DeliveryDeps, { renew, signal, endpoint: leased }: Run): Promise<"done" | "more"> {
  const since = (at: number) => deps.now().getTime() - at;
  const began = deps.now().getTime();
  let renewed = began;
  let target: Target | undefined = await toTarget(deps, leased);
  /** Events in flight. An event stays in it until its result is recorded, so that no poll reads it again. */
  const sending = new Map<string, Promise<void>>();
  const ended: DeliveryAttempt[] = [];
  // Once per time slice, so that an endpoint with a backlog of new events receives its `payment.settled` events too.
  if (!target.isDeleted) await writeSettledEvents(deps, { endpointId: target.endpointId });
  for (;;) {
    const over = ended.splice(0);
    await recordDeliveryAttempts(deps.db, over);
    for (const { id } of over) sending.delete(id);
    if (since(renewed) > RENEW_MS) {
      const endpoint = await renew();
      target = endpoint && (await toTarget(deps, endpoint));
      renewed = deps.now().getTime();
    }
    const takesMore = target !== undefined && !signal.aborted && since(began) <= TIME_SLICE_MS;
    if (target && takesMore)
      for (const event of await takeEvents(deps, target, [...sending.keys()]))
        sending.set(
          event.id,
          attempt(deps, target, event)
            .catch((error: unknown) => putOff(deps, event, error))
            .then((one) => void ended.push(one)),
        );
    if (sending.size === 0) return takesMore || signal.aborted ? "done" : "more";
    await firstOf(sending.values());
  }
}

/** Waits until a request has ended or the poll interval has passed, and then for the batching delay. */
async function firstOf(sending: Iterable<Promise<void>>): Promise<void> {
  const timer = new AbortController();
  const poll = delay(POLL_MS, undefined, { signal: timer.signal }).catch(() => undefined);
  await Promise.race([...sending, poll]);
  timer.abort();
  await delay(BATCH_DELAY_MS);
}

/** The URL that receives events and the secrets that sign them: two for a day after a rotation. */
type Target = { endpointId: string; url: string; signers: Webhook[]; isDeleted: boolean };

async function toTarget({ decryptWebhookSecret: decrypt, now }: DeliveryDeps, row: EndpointRow): Promise<Target> {
  const secrets = [await decrypt({ keyId: row.key_id, ciphertext: row.secret }, row.id)];
  if (row.previous_key_id && row.previous_secret && row.previous_until && row.previous_until > now())
    secrets.push(await decrypt({ keyId: row.previous_key_id, ciphertext: row.previous_secret }, row.id));
  const signers = secrets.map((secret) => new Webhook(secret));
  return { endpointId: row.id, url: row.url, signers, isDeleted: row.deleted_at !== null };
}

async function takeEvents(deps: PaymentDeps, target: Target, without: readonly string[]): Promise<DueEvent[]> {
  const { endpointId } = target;
  // A transaction that committed while the endpoint was deleted may have left an event.
  if (target.isDeleted) await giveUpDeliveries(deps.db, endpointId);
  const limit = AT_ONCE - without.length;
  if (limit <= 0) return [];
  const list = async (): Promise<DueEvent[]> => {
    const due = { endpointId, now: deps.now(), without };
    const changes = await listDueDestinationEvents(deps.db, { ...due, limit });
    return [...changes, ...(await listDueEvents(deps.db, { ...due, limit: limit - changes.length }))];
  };
  const due = await list();
  // The events of a payout with many payments never delay new events: they are written only when nothing else is due.
  if (due.length === limit || target.isDeleted) return due;
  return (await writeSettledEvents(deps, { endpointId })) > 0 ? list() : due;
}

/** Reschedules an event that could not be sent because of an internal error. Other events continue. */
function putOff(deps: PaymentDeps, event: DueEvent, error: unknown): DeliveryAttempt {
  const { id, attempts_made: attemptsMade, type } = event;
  deps.log.error(
    { event: id, type, ...subjectOf(event), attemptsMade: attemptsMade + 1, err: error },
    "webhook event cannot be sent",
  );
  const at = deps.now();
  const dueAt = nextAttempt(attemptsMade + 1, at) ?? null;
  return { id, attemptsMade, state: dueAt ? "pending" : "given_up", outcome: "internal error", at, dueAt };
}

/** Sends one event and returns its delivery state. */
async function attempt(deps: PaymentDeps, { url, signers }: Target, event: DueEvent): Promise<DeliveryAttempt> {
  const body = isDestinationEvent(event) ? toDestinationPayload(event) : toPayload(event);
  const at = deps.now();
  const signature = signers.map((signer) => signer.sign(event.id, at, body)).join(" ");
  const answer = await deps.safeFetch({
    method: "POST",
    url,
    headers: toHeaders(event.id, at, signature),
    body,
    timeoutMs: TIMEOUT_MS,
    maxBytes: ANSWER_BYTES,
    redirects: 0,
    statusOnly: true,
    keepAlive: true,
  });
  const { id, attempts_made: attemptsMade } = event;
  const isTaken = answer.ok && answer.status >= 200 && answer.status <= 299;
  const dueAt = isTaken ? null : (nextAttempt(attemptsMade + 1, deps.now()) ?? null);
  const state = isTaken ? "delivered" : dueAt ? "pending" : "given_up";
  const outcome = answer.ok ? String(answer.status) : errorTexts[answer.error];
  const fields = { event: id, type: event.type, ...subjectOf(event), outcome, attemptsMade: attemptsMade + 1 };
  // The URL may contain a token, so it is never logged.
  if (state === "given_up") deps.log.warn(fields, "webhook event given up");
  else if (!isTaken) deps.log.debug(fields, "webhook event not accepted");
  deps.metrics.webhookDeliveries.inc({ outcome: isTaken ? "delivered" : answer.ok ? "refused" : answer.error });
  return { id, attemptsMade, state, outcome, at: deps.now(), dueAt };
}

function subjectOf(event: DueEvent): object {
  return isDestinationEvent(event) ? { change: event.change_id } : { payment: event.payment_id };
}

const errorTexts = {
  timeout: "timeout",
  private_address: "refused address",
  unreachable: "unreachable",
  unusable: "unusable answer",
} as const satisfies Record<SafeFetchError, string>;

/** Returns the signature headers under the names of Standard Webhooks and of Svix, so that verifiers of both work. */
function toHeaders(id: string, at: Date, signature: string): Record<string, string> {
  const timestamp = String(Math.floor(at.getTime() / 1000));
  return {
    "content-type": "application/json",
    "user-agent": "payment-service-webhooks",
    "svix-id": id,
    "svix-timestamp": timestamp,
    "svix-signature": signature,
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": signature,
  };
}
