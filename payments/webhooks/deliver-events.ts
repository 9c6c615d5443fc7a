import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { Webhook } from "standardwebhooks";
import {
  type DeliveryAttempt,
  type DueEvent,
  giveUpDeliveries,
  listDueEvents,
  recordDeliveryAttempts,
} from "../../db/queries/webhook-deliveries.ts";
import { type EndpointRow, leaseEndpoint, noteSlow, releaseEndpoint } from "../../db/queries/webhook-endpoints.ts";
import { cleanText } from "../../runtime/clean-text.ts";
import type { Decrypt } from "../../runtime/encryption.ts";
import { memberNames } from "../../runtime/member-names.ts";
import { scrubText } from "../../runtime/redaction.ts";
import type { SafeFetchError, SafeFetchResult } from "../../runtime/safe-fetch.ts";
import { inSharedSpan, type SpanDescription, setSpanAttributes } from "../../runtime/tracing/spans.ts";
import { readPaymentTraces } from "../../transfers/trace-transfers.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { noteHealth } from "./disable-failing.ts";
import { readPayloads } from "./event-payloads.ts";

export type DeliveryDeps = PaymentDeps & { decryptWebhookSecret: Decrypt };
/** A due event with the body of its request, and the trace of its payment if that is sampled. */
type Outgoing = { event: DueEvent; body: string; trace: string | undefined };

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/**
 * Delays between delivery attempts, milliseconds (wire contract, part 10). The attempt after the last delay is final.
 */
const WAITS_MS = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 10 * HOUR];

const TIMEOUT_MS = 15 * SECOND;
/** Maximum response size, bytes; the rest of a longer one is not read. */
const ANSWER_BYTES = 64 * 1024;
/** Part of a response that is stored for the merchant: bytes that are read, and characters that are kept. */
const KEPT_BYTES = 2_048;
const KEPT_CHARACTERS = 1_000;
/** Concurrent requests to one endpoint. The limit protects a slow endpoint, and other endpoints from it. */
const AT_ONCE = 100;
/** Events that one statement gives up, so that it ends within the statement timeout. */
const GIVEN_UP_AT_ONCE = 5_000;
/** Lease time of an endpoint. Longer than the poll interval, see POLL_MS. */
const LEASE_MS = 10 * SECOND;
const RENEW_MS = 3 * SECOND;
/** Interval at which due events are read while requests are in flight. */
const POLL_MS = SECOND;
/** Batching delay: results that arrive within it are recorded in one statement. */
const BATCH_DELAY_MS = 20;
/** Time slice of one endpoint. After it, the endpoint's job goes to the end of the queue. */
const TIME_SLICE_MS = 10 * SECOND;
/** An endpoint is slow for an hour once a request to it has taken this long, milliseconds. Slow ones have a queue of their own. */
const SLOW_MS = 3 * SECOND;
const SLOW_FOR_MS = HOUR;

/** Returns when the next attempt is due after this many attempts; undefined after the last one. */
function nextAttempt(attemptsMade: number, now: Date): Date | undefined {
  const wait = WAITS_MS[attemptsMade - 1];
  return wait === undefined ? undefined : new Date(now.getTime() + wait);
}

/**
 * Sends an endpoint its due events, several concurrently, until none is left. A lease ensures that one worker delivers
 * to an endpoint at a time. Delivery is at least once: after a crash between a response and its record, the same event
 * is sent again under the same id. Gives up the events of a deleted or disabled endpoint, except notices for a day after it was
 * disabled. Returns `more` when the time slice or the part has ended and events may be left. An endpoint that turns out to be
 * slow gets no further request in this run: the next sweep enqueues the rest in the queue of slow endpoints. With `onlyFast`, one
 * that is known as slow gets none at all: its earlier jobs may still wait in the queue of the others.
 */
export async function deliverDue(
  deps: DeliveryDeps,
  { endpointId: id, signal, onlyFast = false }: { endpointId: string; signal: AbortSignal; onlyFast?: boolean },
): Promise<"done" | "more"> {
  const owner = randomUUID();
  const lease = (only = false, now = deps.now()) =>
    leaseEndpoint(deps.db, { id, owner, now, until: new Date(now.getTime() + LEASE_MS), onlyFast: only });
  const endpoint = await lease(onlyFast);
  if (!endpoint) return "done";
  const isClosed = endpoint.deleted_at !== null || endpoint.disabled_at !== null;
  const isLeft = isClosed && (await giveUpPart(deps, endpoint)) === "more";
  const end = isLeft ? "more" : await pump(deps, { endpoint, renew: () => lease(), signal });
  // After an error the lease is not released; it expires, which delays the next worker.
  await releaseEndpoint(deps.db, { id, owner, goesOn: end === "more" });
  return end;
}

/** Gives up events of a deleted or disabled endpoint: those that waited, or that a later commit has left. */
async function giveUpPart({ db }: DeliveryDeps, { id }: EndpointRow): Promise<"done" | "more"> {
  return (await giveUpDeliveries(db, id, GIVEN_UP_AT_ONCE)) < GIVEN_UP_AT_ONCE ? "done" : "more";
}

type Run = { endpoint: EndpointRow; renew: () => Promise<EndpointRow | undefined>; signal: AbortSignal };

/**
 * Keeps up to `AT_ONCE` requests in flight. A slow request does not delay the next ones of an endpoint that is known as slow. For
 * another one it ends the run, so that this one leaves the queue of the fast endpoints.
 */
async function pump(deps: DeliveryDeps, { renew, signal, endpoint: leased }: Run): Promise<"done" | "more"> {
  const since = (at: number) => deps.now().getTime() - at;
  const began = deps.now().getTime();
  let renewed = began;
  let target: Target | undefined = await toTarget(deps, leased);
  const wasSlow = leased.slow_until !== null && leased.slow_until.getTime() > began;
  let isSlow = false;
  /** Events in flight, the oldest first. No poll reads one again before its result is recorded. */
  const sending = new Map<string, { sentAt: number; ended: Promise<void> }>();
  const ended: (DeliveryAttempt & Pick<DueEvent, "type">)[] = [];
  for (;;) {
    const over = ended.splice(0);
    for (const { id } of over) sending.delete(id);
    // Read before the database is asked: a response that arrives while it stalls is not late.
    const hangs = [...sending.values()].some(({ sentAt }) => since(sentAt) >= SLOW_MS);
    const wasLate = over.some(({ sentAt, at }) => at.getTime() - sentAt.getTime() >= SLOW_MS);
    await recordDeliveryAttempts(deps.db, leased.id, over);
    // Anyone with a key sends test events at any time, so they say nothing about the endpoint's health.
    const answered = over.filter(({ outcome, type }) => outcome !== INTERNAL_ERROR && type !== "webhook_endpoint.test");
    if (target && answered.length > 0) {
      const isAccepting = answered.some(({ state }) => state === "delivered");
      const health = await noteHealth(deps, target.endpoint, { isAccepting, at: deps.now() });
      target = { ...target, endpoint: { ...target.endpoint, ...health } };
    }
    if (!isSlow && (hangs || wasLate)) {
      isSlow = true;
      await noteSlow(deps.db, leased.id, new Date(deps.now().getTime() + SLOW_FOR_MS));
    }
    if (since(renewed) > RENEW_MS) {
      const endpoint = await renew();
      target = endpoint && (await toTarget(deps, endpoint));
      renewed = deps.now().getTime();
    }
    const changesQueue = isSlow && !wasSlow;
    const takesMore = target !== undefined && !signal.aborted && !changesQueue && since(began) <= TIME_SLICE_MS;
    if (target && takesMore)
      for (const one of await takeEvents(deps, target, [...sending.keys()]))
        sending.set(one.event.id, {
          sentAt: deps.now().getTime(),
          ended: attempt(deps, target, one)
            .catch((error: unknown) => putOff(deps, one.event, error))
            .then((result) => void ended.push({ ...result, type: one.event.type })),
        });
    if (sending.size === 0) return takesMore || changesQueue || signal.aborted ? "done" : "more";
    await firstOf([...sending.values()].map(({ ended }) => ended));
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

/** An endpoint and the secrets that sign its events: two for a day after a rotation. */
type Target = { endpoint: EndpointRow; signers: Webhook[] };

async function toTarget(deps: DeliveryDeps, row: EndpointRow): Promise<Target> {
  const current = await deps.decryptWebhookSecret({ keyId: row.key_id, ciphertext: row.secret }, row.id);
  const secrets = [current, ...(await readPreviousSecret(deps, row))];
  return { endpoint: row, signers: secrets.map((secret) => new Webhook(secret)) };
}

/** Returns the secret before the last rotation while it still signs. An unreadable one does not stop deliveries. */
async function readPreviousSecret(deps: DeliveryDeps, row: EndpointRow): Promise<string[]> {
  const { previous_key_id: keyId, previous_secret: ciphertext, previous_until: until } = row;
  if (!keyId || !ciphertext || !until || until <= deps.now()) return [];
  try {
    return [await deps.decryptWebhookSecret({ keyId, ciphertext }, row.id)];
  } catch {
    const fields = { endpoint: row.id, keyId };
    deps.log.error(fields, "previous webhook secret cannot be decrypted; events are signed with the current one only");
    return [];
  }
}

async function takeEvents(deps: PaymentDeps, target: Target, without: readonly string[]): Promise<Outgoing[]> {
  const { id: endpointId, payload } = target.endpoint;
  const limit = AT_ONCE - without.length;
  if (limit <= 0) return [];
  const events = await listDueEvents(deps.db, { endpointId, now: deps.now(), without, limit });
  const bodies = await readPayloads(deps, events, payload);
  const traces = await readPaymentTraces(
    deps,
    events.map((event) => event.payment_id),
  );
  return events.map((event, index) => {
    return { event, body: JSON.stringify(bodies[index]), trace: traces.get(event.payment_id ?? "") };
  });
}

/** Sends one event, in the trace of its payment, and returns its delivery state. The merchant's server gets no trace. */
function attempt(deps: PaymentDeps, target: Target, outgoing: Outgoing): Promise<DeliveryAttempt> {
  const { event, trace } = outgoing;
  const describe = (): SpanDescription => ({
    name: "webhook",
    kind: "client",
    attributes: {
      "http.request.method": "POST",
      "pay.webhook.event": event.id,
      "pay.webhook.type": event.type,
      "pay.webhook.attempt": event.attempts_made + 1,
      ...(event.payment_id === null ? {} : { "pay.payment.id": event.payment_id }),
    },
  });
  return inSharedSpan([{ trace }], describe, () => send(deps, target, outgoing));
}

/** The outcome of an attempt that failed here: the endpoint is not to blame. */
const INTERNAL_ERROR = "internal error";

/** Reschedules an event that could not be sent because of an internal error. Other events continue. */
function putOff(deps: PaymentDeps, event: DueEvent, error: unknown): DeliveryAttempt {
  const { id, attempts_made: attemptsMade, type } = event;
  deps.log.error(
    { event: id, type, ...subjectOf(event), attemptsMade: attemptsMade + 1, err: error },
    "webhook event cannot be sent",
  );
  deps.metrics.webhookDeliveries.inc({ outcome: "internal" });
  const at = deps.now();
  const dueAt = nextAttempt(attemptsMade + 1, at) ?? null;
  const state = dueAt ? "pending" : "given_up";
  return { id, attemptsMade, state, outcome: INTERNAL_ERROR, sentAt: at, at, dueAt, ...noResponse };
}

const noResponse = { responseType: null, responseBody: null };

async function send(
  deps: PaymentDeps,
  { endpoint, signers }: Target,
  { event, body }: Outgoing,
): Promise<DeliveryAttempt> {
  const sentAt = deps.now();
  const signature = signers.map((signer) => signer.sign(event.id, sentAt, body)).join(" ");
  const answer = await deps.safeFetch({
    method: "POST",
    url: endpoint.url,
    headers: { ...toHeaders(event.id, sentAt), "svix-signature": signature, "webhook-signature": signature },
    body,
    timeoutMs: TIMEOUT_MS,
    maxBytes: ANSWER_BYTES,
    redirects: 0,
    beginning: KEPT_BYTES,
    keepAlive: true,
  });
  const { id, attempts_made: attemptsMade } = event;
  const isTaken = answer.ok && answer.status >= 200 && answer.status <= 299;
  const dueAt = isTaken ? null : (nextAttempt(attemptsMade + 1, deps.now()) ?? null);
  const state = isTaken ? "delivered" : dueAt ? "pending" : "given_up";
  const outcome = answer.ok ? String(answer.status) : errorTexts[answer.error];
  setSpanAttributes(answer.ok ? { "http.response.status_code": answer.status } : { "error.type": answer.error });
  const fields = { event: id, type: event.type, ...subjectOf(event), outcome, attemptsMade: attemptsMade + 1 };
  // The URL may contain a token, so it is never logged.
  if (state === "given_up") deps.log.warn(fields, "webhook event given up");
  else if (!isTaken) deps.log.debug(fields, "webhook event not accepted");
  deps.metrics.webhookDeliveries.inc({ outcome: isTaken ? "delivered" : answer.ok ? "refused" : answer.error });
  return { id, attemptsMade, state, outcome, sentAt, at: deps.now(), dueAt, ...describeResponse(answer) };
}

/** Returns what is stored of a response, without what looks like a secret. */
function describeResponse(answer: SafeFetchResult): Pick<DeliveryAttempt, "responseType" | "responseBody"> {
  if (!answer.ok) return noResponse;
  const [type] = [answer.headers["content-type"]].flat();
  const [encoding] = [answer.headers["content-encoding"]].flat();
  const text = encoding === undefined ? answer.body.toString("utf8") : "";
  const responseType = type === undefined ? null : cleanText(scrubText(type), 100);
  return { responseType, responseBody: cleanText(scrubText(text), KEPT_CHARACTERS) };
}

function subjectOf(event: DueEvent): object {
  const { payment_id: payment, refund_id: refund, change_id: change } = event;
  const { approval_key: publicKey, endpoint_id: endpoint } = event;
  if (payment !== null) return { payment };
  if (refund !== null) return { refund };
  if (change !== null) return { change };
  return publicKey === null ? { endpoint } : { merchant: event.merchant_id, publicKey };
}

const errorTexts = {
  timeout: "timeout",
  private_address: "refused address",
  unreachable: "unreachable",
  unusable: "unusable answer",
} as const satisfies Record<SafeFetchError, string>;

/** Sets the count of each outcome to 0. A series that begins with its first count would show no increase to the alert. */
export function initializeDeliveries({ metrics }: Pick<PaymentDeps, "metrics">): void {
  for (const outcome of ["delivered", "refused", "internal", ...memberNames(errorTexts)])
    metrics.webhookDeliveries.inc({ outcome }, 0);
}

/** Returns the headers of a request without its signature, under the names of Standard Webhooks and of Svix. */
export function toHeaders(id: string, at: Date): Record<string, string> {
  const timestamp = String(Math.floor(at.getTime() / 1000));
  return {
    "content-type": "application/json",
    "user-agent": "payment-service-webhooks",
    "svix-id": id,
    "svix-timestamp": timestamp,
    "webhook-id": id,
    "webhook-timestamp": timestamp,
  };
}
