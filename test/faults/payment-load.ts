import { setTimeout as pause } from "node:timers/promises";
import {
  ask,
  cancel,
  confirm,
  getStatus,
  listOptions,
  type PaymentStatus,
  type PayOption,
  Refused,
  type Shop,
  signOption,
  watchAnswers,
} from "../../local/buyer-client.ts";
import { checkAnswer } from "../support/published-contract.ts";
import type { Payers, Signed } from "./payer-types.ts";
import { type Conditions, endsOf, type Family, mayEndAfterExpiry, type Plan, tokenOf } from "./payment-plan.ts";
import type { CreatedPayment, History } from "./response-history.ts";
import type { Random } from "./seeded-random.ts";
import type { TestEnvironment } from "./test-environment.ts";

export type Load = {
  /** Resolves when every payment has been created and its wallet has sent its first confirm. */
  sent: Promise<unknown>;
  /** Resolves when every wallet knows the end of its payment, or has stopped at the signal. */
  over: Promise<unknown>;
};

/** The payers of each chain family. */
export type PayersOf = Partial<Record<Family, Payers>>;

type Work = {
  environment: TestEnvironment;
  payers: PayersOf;
  conditions: Conditions;
  history: History;
  random: Random;
  begun: number;
  signal: AbortSignal;
};

/** The database lost the commit that created the payment. */
class PaymentLost extends Error {
  override readonly name = "PaymentLost";
}

/** How many refusals a disturbed wallet accepts before its owner cancels. */
const maxRefusals = 3;
/** The same after the database lost commits: the confirm may be lost although the money has moved. */
const maxRefusalsAfterLoss = 6;
/** How many empty option lists such a wallet accepts. */
const maxEmptyAfterLoss = 20;
/** The time after which a buyer whose transaction is not mined cancels, milliseconds. */
const cancelStuckMs = 6_000;
/** How long the service has to find money that arrived for payments it has lost, milliseconds. */
const closeAfterMs = 8_000;
/** How many forged confirms one third party sends. */
const forgedConfirms = 12;
const pollMs = 3_000;

/** Creates and pays the planned payments over HTTP, and records every response. */
export function startLoad(args: {
  environment: TestEnvironment;
  payers: PayersOf;
  plans: readonly Plan[];
  conditions: Conditions;
  random: Random;
  signal: AbortSignal;
}): Load {
  const { history } = args.environment;
  watchAnswers((...answer) => {
    try {
      checkAnswer(...answer);
    } catch (error) {
      history.contractViolations.push(String(error));
    }
  });
  const journeys = args.plans.map((plan) => {
    const work = { ...args, history, begun: Date.now(), random: args.random.branch(`payment ${plan.index}`) };
    const sent = Promise.withResolvers<void>();
    // A journey may reject only when the run was aborted.
    const over = travel(work, plan, sent.resolve).catch((error: unknown) => {
      if (!args.signal.aborted) throw error;
    });
    void over.finally(sent.resolve).catch(() => undefined);
    return { sent: sent.promise, over };
  });
  return {
    sent: Promise.all(journeys.map(({ sent }) => sent)),
    over: Promise.all(journeys.map(({ over }) => over)),
  };
}

/**
 * Cancels the payments that the database reopened when it lost commits. A wallet that knew the end of its payment is
 * gone, and the payment may be open again; a repeated creation may have created a second payment. The merchant cancels
 * what does not succeed soon.
 */
export async function cancelReopenedPayments(
  { baseUrls, seeded, history }: TestEnvironment,
  signal: AbortSignal,
): Promise<void> {
  await pause(closeAfterMs, undefined, { signal });
  const paying = new Set(history.payments.flatMap(({ paymentId, left }) => (left ? [] : paymentId)));
  const made = history.creations.filter(({ httpStatus }) => httpStatus === 201);
  const ids = new Map(made.map(({ key, answer }) => [(JSON.parse(answer) as { id: string }).id, key]));
  for (const [id, key] of ids) {
    if (paying.has(id)) continue;
    const shop = { baseUrl: baseUrls[0] ?? "", caller: key.startsWith("test") ? seeded.test : seeded.live };
    for (let polls = 0; polls < 10; polls += 1) {
      const status = await getStatus(shop, id).catch((error: unknown) => error);
      const isOpen = !(status instanceof Error) && (status as PaymentStatus).status === "requires_action";
      if (isOpen) await cancel(shop, id).catch(() => undefined);
      else if (!(status instanceof Error) || (status instanceof Refused && status.status < 500)) break;
      await pause(200, undefined, { signal });
    }
  }
}

async function travel(work: Work, plan: Plan, onSent: () => void): Promise<void> {
  const { signal } = work;
  await pause(Math.max(0, work.begun + plan.at - Date.now()), undefined, { signal });
  const deadline = Date.now() + plan.lives * 1_000;
  const payment = await create(work, plan, deadline).catch((error: unknown) => {
    // The service was unavailable for the payment's whole lifetime.
    if (error instanceof Refused && Date.now() >= deadline - 1_000) return undefined;
    throw error;
  });
  if (payment === undefined) return;
  await payCreated(work, plan, { payment, deadline, onSent }).catch((error: unknown) => {
    if (!(error instanceof PaymentLost)) throw error;
    payment.forgotten = true;
  });
  payment.left = true;
}

async function payCreated(
  work: Work,
  plan: Plan,
  { payment, deadline, onSent }: { payment: CreatedPayment; deadline: number; onSent: () => void },
): Promise<void> {
  const { random, signal } = work;
  const waitUntil = (at: number) => pause(Math.max(0, at - Date.now()), undefined, { signal });
  // This wallet sends the transaction when it signs.
  const before = () => (plan.kind === "late push" ? waitUntil(deadline - random.between(500, 2_500)) : undefined);
  const signed = await sign(work, plan, payment, before);
  if (signed === undefined) return await pollToEnd(work, payment);
  if (plan.kind === "late") await waitUntil(deadline + random.between(-800, 300));
  if (plan.kind === "garbage") sendForgedConfirms(work, payment, signed);
  disturbPayment(work, plan, signed);
  await payToEnd(work, plan, { payment, signed, onSent });
}

/** Creates a payment as a merchant's server does: retries under the same key until a response arrives. */
async function create(work: Work, plan: Plan, deadline: number): Promise<CreatedPayment> {
  const mode = plan.kind === "test" ? "test" : "live";
  const key = `order-${plan.index}`;
  const amount = { unit: "iso4217/USD", value: String(plan.cents) };
  const body = { referenceId: key, amount, expiresAt: Math.ceil(deadline / 1_000) };
  const send = async (sent: object) => {
    const note = (httpStatus: number, answer: string) =>
      work.history.creations.push({
        key: `${mode} ${key}`,
        body: JSON.stringify(sent),
        httpStatus,
        answer,
        at: performance.now(),
      });
    return retryRequest(work, mode, async (shop) => {
      try {
        const answer = (await ask(shop, "POST", "/v1/payments", sent, { "idempotency-key": key })) as { id: string };
        note(201, JSON.stringify(answer));
        return { id: answer.id, createdAt: performance.now() };
      } catch (error) {
        if (error instanceof Refused && error.status < 500) note(error.status, "");
        throw error;
      }
    });
  };
  const [{ id, createdAt }] = await Promise.all([send(body), ...(plan.repeatsCreation ? [send(body)] : [])]);
  if (plan.repeatsCreation) await send({ ...body, referenceId: "another" }).catch(() => undefined);
  const payment: CreatedPayment = {
    paymentId: id,
    mode,
    kind: plan.kind,
    ends: endsOf(plan, work.conditions),
    endsAfterExpiry: mayEndAfterExpiry(plan.kind),
    confirmed: false,
    forgotten: false,
    left: false,
    createdAt,
  };
  work.history.payments.push(payment);
  return payment;
}

/**
 * Returns the first option, or undefined when the payment is over. An empty list means that the chain could not be read.
 * After lost commits it may also mean that the money has moved by a transfer of which the service has no record: then
 * the buyer gives up.
 */
async function findOption(work: Work, payment: CreatedPayment, account: string): Promise<PayOption | undefined> {
  const { paymentId, mode } = payment;
  for (let empty = 0; ; ) {
    try {
      const [option] = await retryRequest(work, mode, (shop) => listOptions(shop, paymentId, [account]));
      if (option !== undefined) return option;
      empty += 1;
      if (mayBeLost(work, payment) && empty > maxEmptyAfterLoss)
        await retryRequest(work, mode, (shop) => cancel(shop, paymentId)).catch(ignoreRefusal);
    } catch (error) {
      if (error instanceof Refused) return undefined;
      throw error;
    }
    await pause(500, undefined, { signal: work.signal });
  }
}

/** Returns whether the database may have lost commits of a payment. */
function mayBeLost({ history }: Work, { createdAt }: CreatedPayment): boolean {
  return history.lost.some(({ to }) => createdAt <= to);
}

/** Requests the options and signs one. Returns undefined when the payment can no longer be paid. */
async function sign(
  work: Work,
  plan: Plan,
  payment: CreatedPayment,
  before: () => Promise<void> | undefined = () => undefined,
): Promise<Signed | undefined> {
  const payers = payersOf(work, plan);
  const buyer = payers.buyerOf(plan);
  for (;;) {
    const option = await findOption(work, payment, `${payers.chain}:${buyer.address}`);
    if (option === undefined) return undefined;
    await before();
    try {
      const results = await retryRequest(work, payment.mode, (shop) =>
        signOption(shop, payment.paymentId, option, buyer),
      );
      return { option, results };
    } catch (error) {
      // The option expired before its actions were fetched; or the payment is over, as the next request will report.
      if (!(error instanceof Refused)) throw error;
    }
  }
}

function payersOf({ payers }: Work, { family }: Plan): Payers {
  const found = payers[family];
  if (found === undefined) throw new Error(`this run has no payers on ${family}`);
  return found;
}

/** Confirms the option with forged signatures of the right form, as a third party. Does not wait for the responses. */
function sendForgedConfirms(work: Work, { paymentId, mode }: CreatedPayment, { option, results }: Signed): void {
  for (let count = 0; count < forgedConfirms; count += 1) {
    const made = results.map(({ data: [real = ""] }) => {
      const digits = Array.from({ length: real.length - 2 }, () => work.random.between(0, 15).toString(16));
      return { type: "walletRpc" as const, data: [`0x${digits.join("")}`] };
    });
    const [shop] = work.environment.baseUrls.map((baseUrl) => ({ baseUrl, caller: work.environment.seeded[mode] }));
    if (shop) void confirm(shop, paymentId, { optionId: option.id, results: made }).catch(() => undefined);
  }
}

/** Disturbs the payment shortly before or after its confirm, in the background. */
function disturbPayment(work: Work, plan: Plan, signed: Signed): void {
  const { random, signal } = work;
  const payers = payersOf(work, plan);
  const after = (ms: number) => pause(ms, undefined, { signal });
  const [soon, later] = [random.between(0, 900), random.between(2_000, 6_000)];
  const disturb = async () => {
    await after(soon);
    await payers.disturb(plan, signed);
    await after(later);
    payers.revertDisturbance(plan, signed);
  };
  // A third party's transaction that the chain rejects has no effect.
  void disturb().catch(() => undefined);
}

/** Confirms until the service accepts, polls until the end, and repeats the confirm as wallets do that lost the response. */
async function payToEnd(
  work: Work,
  plan: Plan,
  { payment, signed, onSent }: { payment: CreatedPayment; signed: Signed; onSent: () => void },
): Promise<void> {
  const { random, signal } = work;
  const isDisturbed = /blocked|spent|burner|hostile|stuck|garbage/.test(plan.kind);
  const stuckAt = plan.kind === "stuck push" ? Date.now() + cancelStuckMs : Number.POSITIVE_INFINITY;
  let { option, results } = signed;
  const send = () =>
    fetchStatus(work, payment, "confirm", (shop) => confirm(shop, payment.paymentId, { optionId: option.id, results }));
  for (let refusals = 0; ; ) {
    try {
      const sending = plan.confirmsTwice ? Promise.any([send(), send()]).catch(() => send()) : send();
      onSent();
      let status = await sending;
      while (!status.isFinal && status.status !== "requires_action") {
        status = await fetchStatus(work, payment, "status", (shop) => getStatus(shop, payment.paymentId, pollMs));
        if (!status.isFinal && random.chance(0.2)) status = await send();
      }
      if (status.isFinal) return;
      if (Date.now() > stuckAt)
        await retryRequest(work, payment.mode, (shop) => cancel(shop, payment.paymentId)).catch(ignoreRefusal);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      refusals += 1;
      const lostCommits = mayBeLost(work, payment);
      if ((isDisturbed && refusals >= maxRefusals) || (lostCommits && refusals >= maxRefusalsAfterLoss))
        await retryRequest(work, payment.mode, (shop) => cancel(shop, payment.paymentId)).catch(ignoreRefusal);
      const { status, isFinal } = await fetchStatus(work, payment, "status", (shop) =>
        getStatus(shop, payment.paymentId),
      );
      if (isFinal) return;
      // The database may have lost the option, too.
      const isOpen = status === "requires_action" && !isDisturbed;
      const mayLackOption = lostCommits && tokenOf(plan.kind) !== "push";
      if (isOpen && (mayLackOption || (await payersOf(work, plan).canNoLongerPay(plan, { option, results }))))
        ({ option, results } = (await sign(work, plan, payment)) ?? { option, results });
    }
    await pause(random.between(300, 1_000), undefined, { signal });
  }
}

async function pollToEnd(work: Work, payment: CreatedPayment): Promise<void> {
  for (let isFinal = false; !isFinal; )
    ({ isFinal } = await fetchStatus(work, payment, "status", (shop) => getStatus(shop, payment.paymentId, pollMs)));
}

/** Repeats the request until it is answered, and records the status. */
async function fetchStatus(
  work: Work,
  payment: CreatedPayment,
  by: "confirm" | "status",
  request: (shop: Shop) => Promise<PaymentStatus>,
): Promise<PaymentStatus> {
  return retryRequest(work, payment.mode, async (shop) => {
    const begunAt = performance.now();
    const { status, isFinal, info } = await request(shop);
    const { paymentId } = payment;
    work.history.statuses.push({
      paymentId,
      by,
      begunAt,
      endedAt: performance.now(),
      status,
      isFinal,
      txId: info?.txId ?? null,
    });
    if (by === "confirm") payment.confirmed = true;
    return { status, isFinal, info };
  });
}

/** Retries after a 5xx and a broken connection only (specification, part 7), each time on a random api. */
async function retryRequest<T>(
  { environment, random, history, signal }: Work,
  mode: "live" | "test",
  request: (shop: Shop) => Promise<T>,
): Promise<T> {
  for (;;) {
    signal.throwIfAborted();
    try {
      return await request({ baseUrl: random.pick(environment.baseUrls), caller: environment.seeded[mode] });
    } catch (error) {
      if (error instanceof Refused && error.status === 404 && history.lost.length > 0) throw new PaymentLost();
      if (error instanceof Refused && error.status < 500) throw error;
    }
    await pause(random.between(100, 500), undefined, { signal });
  }
}

function ignoreRefusal(error: unknown): void {
  if (!(error instanceof Refused)) throw error;
}
