import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { Webhook } from "standardwebhooks";
import {
  type Attempted,
  type DueEvent,
  dropDeliveries,
  type EndpointRow,
  leaseEndpoint,
  listDueEvents,
  recordAttempts,
  releaseEndpoint,
} from "../db/webhooks.ts";
import type { OutwardFault } from "../ops/outward.ts";
import type { PaymentDeps } from "./deps.ts";
import { writeSettledEvents } from "./settled-events.ts";
import { toPayload } from "./webhook-payload.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/** Waits between one attempt and the next, milliseconds (wire contract, part 10); after the last one nobody tries again. */
const WAITS_MS = [5 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 10 * HOUR];

const TIMEOUT_MS = 15 * SECOND;
/** What an endpoint answers is thrown away; a longer answer is cut off. */
const ANSWER_BYTES = 64 * 1024;
/** Requests to one endpoint at once: a slow one is not run down, and takes nobody else's room. */
const AT_ONCE = 100;
/** An endpoint is somebody else's when it was not heard of for so long. Longer than one look at it, see LOOK_MS. */
const LEASE_MS = 10 * SECOND;
const RENEW_MS = 3 * SECOND;
/** How long nothing has to end before the rows are looked at again. */
const LOOK_MS = SECOND;
/** What ends at about the same time is written down together. */
const GATHER_MS = 20;
/** After this an endpoint goes to the end of the queue, so that others get their turn. */
const TURN_MS = 10 * SECOND;

/** When the attempt after this many is due; undefined when there is none. */
export function nextAttempt(tries: number, now: Date): Date | undefined {
  const wait = WAITS_MS[tries - 1];
  return wait === undefined ? undefined : new Date(now.getTime() + wait);
}

/**
 * Sends an endpoint what is due for it, several at once, until nothing is: one caller at a time, whoever has the lease.
 * A crash between an answer and its record means the same event again, under the same id: at least once.
 * `more` when the turn is over and something may be left.
 */
export async function deliverDue(
  deps: PaymentDeps,
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
  // Not after trouble: then the lease runs out, which is as long as it takes before somebody tries again.
  await releaseEndpoint(deps.db, { id: args.endpointId, owner });
  return end;
}

type Turn = { endpoint: EndpointRow; renew: () => Promise<EndpointRow | undefined>; signal: AbortSignal };

/** Keeps so many requests under way, without waiting for the slowest of them before the next ones begin. */
async function pump(deps: PaymentDeps, { renew, signal, ...turn }: Turn): Promise<"done" | "more"> {
  const since = (at: number) => deps.now().getTime() - at;
  const began = deps.now().getTime();
  let renewed = began;
  let target: Target | undefined = toTarget(deps, turn.endpoint);
  /** Until what came of them is written down, so that no look at the rows finds them again. */
  const sending = new Map<string, Promise<void>>();
  const ended: Attempted[] = [];
  // Once in every turn, so that an endpoint with more fresh events than it can take hears of its payouts too.
  if (!target.isDeleted) await writeSettledEvents(deps, { endpointId: target.endpointId });
  for (;;) {
    const over = ended.splice(0);
    await recordAttempts(deps.db, over);
    for (const { id } of over) sending.delete(id);
    if (since(renewed) > RENEW_MS) {
      const endpoint = await renew();
      target = endpoint && toTarget(deps, endpoint);
      renewed = deps.now().getTime();
    }
    const takesMore = target !== undefined && !signal.aborted && since(began) <= TURN_MS;
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

/** Waits until one has ended, and a moment for others to do so too; or until it is time to look at the rows again. */
async function firstOf(sending: Iterable<Promise<void>>): Promise<void> {
  const late = new AbortController();
  const look = delay(LOOK_MS, undefined, { signal: late.signal }).catch(() => undefined);
  await Promise.race([...sending, look]);
  late.abort();
  await delay(GATHER_MS);
}

/** Where events go, and what signs them: two secrets for a day after a rotation. */
type Target = { endpointId: string; url: string; signers: Webhook[]; isDeleted: boolean };

function toTarget({ sealer, now }: PaymentDeps, row: EndpointRow): Target {
  const secrets = [sealer.open({ keyId: row.key_id, sealed: row.secret }, row.id)];
  if (row.previous_key_id && row.previous_secret && row.previous_until && row.previous_until > now())
    secrets.push(sealer.open({ keyId: row.previous_key_id, sealed: row.previous_secret }, row.id));
  const signers = secrets.map((secret) => new Webhook(secret));
  return { endpointId: row.id, url: row.url, signers, isDeleted: row.deleted_at !== null };
}

async function takeEvents(deps: PaymentDeps, target: Target, without: readonly string[]): Promise<DueEvent[]> {
  const { endpointId } = target;
  // A move that committed while its endpoint was taken away has left an event behind.
  if (target.isDeleted) await dropDeliveries(deps.db, endpointId);
  const limit = AT_ONCE - without.length;
  if (limit <= 0) return [];
  const list = () => listDueEvents(deps.db, { endpointId, now: deps.now(), without, limit });
  const due = await list();
  // A payout of many payments never delays fresh events: its own are written when there is nothing else to send.
  if (due.length === limit || target.isDeleted) return due;
  return (await writeSettledEvents(deps, { endpointId })) > 0 ? list() : due;
}

/** An event that we cannot send is tried again like one that was not taken, and holds up no other. */
function putOff(deps: PaymentDeps, { id, tries, type, paymentId }: DueEvent, error: unknown): Attempted {
  deps.log.error(
    { event: id, type, payment: paymentId, tries: tries + 1, err: error },
    "a webhook event cannot be sent",
  );
  const at = deps.now();
  const dueAt = nextAttempt(tries + 1, at) ?? null;
  return { id, tries, state: dueAt ? "pending" : "given_up", outcome: "internal error", at, dueAt };
}

/** One request, and what follows from its answer. */
async function attempt(deps: PaymentDeps, { url, signers }: Target, event: DueEvent): Promise<Attempted> {
  const body = toPayload(event);
  const at = deps.now();
  const signature = signers.map((signer) => signer.sign(event.id, at, body)).join(" ");
  const answer = await deps.outward({
    ...{ method: "POST", url, headers: toHeaders(event.id, at, signature), body },
    ...{ timeoutMs: TIMEOUT_MS, maxBytes: ANSWER_BYTES, redirects: 0, statusOnly: true, keepAlive: true },
  });
  const { id, tries } = event;
  const isTaken = answer.ok && answer.status >= 200 && answer.status <= 299;
  const dueAt = isTaken ? null : (nextAttempt(tries + 1, deps.now()) ?? null);
  const state = isTaken ? "delivered" : dueAt ? "pending" : "given_up";
  const outcome = answer.ok ? String(answer.status) : faultWords[answer.fault];
  const told = { event: id, type: event.type, payment: event.paymentId, outcome, tries: tries + 1 };
  // The address may hold a token, so that no line tells it.
  if (state === "given_up") deps.log.warn(told, "a webhook event is given up");
  else if (!isTaken) deps.log.debug(told, "a webhook event was not taken");
  deps.metrics.webhookDeliveries.inc({ outcome: isTaken ? "delivered" : answer.ok ? "refused" : answer.fault });
  return { id, tries, state, outcome, at: deps.now(), dueAt };
}

const faultWords = {
  timeout: "timeout",
  private_address: "refused address",
  unreachable: "unreachable",
  unfit: "unusable answer",
} as const satisfies Record<OutwardFault, string>;

/** Under the names of Standard Webhooks, and under those of the public service, so that verifiers of both kinds work. */
function toHeaders(id: string, at: Date, signature: string): Record<string, string> {
  const timestamp = String(Math.floor(at.getTime() / 1000));
  return {
    "content-type": "application/json",
    "user-agent": "payment-service-webhooks",
    ...{ "svix-id": id, "svix-timestamp": timestamp, "svix-signature": signature },
    ...{ "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature },
  };
}
