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
} from "../../ops/local/wallet.ts";
import { checkAnswer } from "../support/contract.ts";
import type { Payers, Signed } from "./payers.ts";
import { type Conditions, endsOf, type Family, mayOutlive, type Plan, tokenOf } from "./plan.ts";
import type { Random } from "./random.ts";
import type { Stage } from "./stage.ts";
import type { Asked, History } from "./told.ts";

export type Load = {
  /** Every payment has been asked for and its wallet has sent its first confirm. */
  sent: Promise<unknown>;
  /** Every wallet knows its end, or has given up at the signal. */
  over: Promise<unknown>;
};

/** Those who pay, by the chain they pay on. */
export type PayersOf = Partial<Record<Family, Payers>>;

type Work = {
  stage: Stage;
  payers: PayersOf;
  conditions: Conditions;
  history: History;
  random: Random;
  begun: number;
  signal: AbortSignal;
};

/** The database has stepped back to a time before the payment. */
class Forgotten extends Error {
  override readonly name = "Forgotten";
}

/** How often a wallet in trouble takes a refusal before its owner gives up. */
const refusalsTaken = 3;
/** The same where the database has stepped back: what was confirmed may be forgotten, and the money gone. */
const refusalsTakenAfterStep = 6;
/** How often such a wallet hears that there is no way to pay. */
const emptyTakenAfterStep = 20;
/** A buyer whose transaction is not mined cancels after so many milliseconds. */
const stuckMs = 6_000;
/** How long the service has to find by itself that money has come for payments it has forgotten. */
const closeAfterMs = 8_000;
/** Made-up confirms of one stranger. */
const garbageConfirms = 12;
const pollMs = 3_000;

/** Merchants ask, wallets pay, each by its plan, over HTTP; whatever they are told is written down. */
export function startLoad(args: {
  stage: Stage;
  payers: PayersOf;
  plans: readonly Plan[];
  conditions: Conditions;
  random: Random;
  signal: AbortSignal;
}): Load {
  const { history } = args.stage;
  watchAnswers((...answer) => {
    try {
      checkAnswer(...answer);
    } catch (error) {
      history.offContract.push(String(error));
    }
  });
  const journeys = args.plans.map((plan) => {
    const work = { ...args, history, begun: Date.now(), random: args.random.branch(`payment ${plan.index}`) };
    const sent = Promise.withResolvers<void>();
    // A journey ends with an error only when the run was called off.
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
 * After a step back of the database: a wallet that had heard of the end is gone, and its payment may be open again; a
 * creation that was repeated may have made a second payment. The merchant cancels what is not paid by itself soon.
 */
export async function closeForgotten({ baseUrls, seeded, history }: Stage, signal: AbortSignal): Promise<void> {
  await pause(closeAfterMs, undefined, { signal });
  const paying = new Set(history.asked.flatMap(({ paymentId, left }) => (left ? [] : paymentId)));
  const made = history.creations.filter(({ httpStatus }) => httpStatus === 201);
  const ids = new Map(made.map(({ key, answer }) => [(JSON.parse(answer) as { id: string }).id, key]));
  for (const [id, key] of ids) {
    if (paying.has(id)) continue;
    const shop = { baseUrl: baseUrls[0] ?? "", caller: key.startsWith("test") ? seeded.test : seeded.live };
    for (let asks = 0; asks < 10; asks += 1) {
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
  const asked = await create(work, plan, deadline).catch((error: unknown) => {
    // The service was away for as long as the payment would have lived.
    if (error instanceof Refused && Date.now() >= deadline - 1_000) return undefined;
    throw error;
  });
  if (asked === undefined) return;
  await payAsked(work, plan, { asked, deadline, onSent }).catch((error: unknown) => {
    if (!(error instanceof Forgotten)) throw error;
    asked.forgotten = true;
  });
  asked.left = true;
}

async function payAsked(
  work: Work,
  plan: Plan,
  { asked, deadline, onSent }: { asked: Asked; deadline: number; onSent: () => void },
): Promise<void> {
  const { random, signal } = work;
  const waitUntil = (at: number) => pause(Math.max(0, at - Date.now()), undefined, { signal });
  // This wallet sends the transaction as it signs.
  const before = () => (plan.kind === "late push" ? waitUntil(deadline - random.between(500, 2_500)) : undefined);
  const signed = await sign(work, plan, asked, before);
  if (signed === undefined) return await pollToEnd(work, asked);
  if (plan.kind === "late") await waitUntil(deadline + random.between(-800, 300));
  if (plan.kind === "garbage") confirmGarbage(work, asked, signed);
  makeTrouble(work, plan, signed);
  await payToEnd(work, plan, { asked, signed, onSent });
}

/** The merchant's server sends its request until it is answered, always under the same key. */
async function create(work: Work, plan: Plan, deadline: number): Promise<Asked> {
  const mode = plan.kind === "test" ? "test" : "live";
  const key = `order-${plan.index}`;
  const amount = { unit: "iso4217/USD", value: String(plan.cents) };
  const body = { referenceId: key, amount, expiresAt: Math.ceil(deadline / 1_000) };
  const send = async (sent: object) => {
    const note = (httpStatus: number, answer: string) =>
      work.history.creations.push({
        ...{ key: `${mode} ${key}`, body: JSON.stringify(sent), httpStatus, answer },
        at: performance.now(),
      });
    return insist(work, mode, async (shop) => {
      try {
        const answer = (await ask(shop, "POST", "/v1/payments", sent, { "idempotency-key": key })) as { id: string };
        note(201, JSON.stringify(answer));
        return { id: answer.id, madeAt: performance.now() };
      } catch (error) {
        if (error instanceof Refused && error.status < 500) note(error.status, "");
        throw error;
      }
    });
  };
  const [{ id, madeAt }] = await Promise.all([send(body), ...(plan.repeatsCreation ? [send(body)] : [])]);
  if (plan.repeatsCreation) await send({ ...body, referenceId: "another" }).catch(() => undefined);
  const asked: Asked = {
    ...{ paymentId: id, mode, kind: plan.kind, ends: endsOf(plan, work.conditions), outlives: mayOutlive(plan.kind) },
    ...{ confirmed: false, forgotten: false, left: false, madeAt },
  };
  work.history.asked.push(asked);
  return asked;
}

/**
 * No way to pay means that the chain could not be asked, until the payment is over. Where the database has stepped back it
 * may mean as well that the money has moved, by what the service has forgotten: then the buyer gives up.
 */
async function findOption(work: Work, asked: Asked, account: string): Promise<PayOption | undefined> {
  const { paymentId, mode } = asked;
  for (let empty = 0; ; ) {
    try {
      const [option] = await insist(work, mode, (shop) => listOptions(shop, paymentId, [account]));
      if (option !== undefined) return option;
      empty += 1;
      if (mayBeLost(work, asked) && empty > emptyTakenAfterStep)
        await insist(work, mode, (shop) => cancel(shop, paymentId)).catch(passRefusal);
    } catch (error) {
      if (error instanceof Refused) return undefined;
      throw error;
    }
    await pause(500, undefined, { signal: work.signal });
  }
}

/** The service may have forgotten a part of what has happened to a payment. */
function mayBeLost({ history }: Work, { madeAt }: Asked): boolean {
  return history.lost.some(({ to }) => madeAt <= to);
}

/** The wallet asks how to pay, and signs. Undefined when there is no way any more. */
async function sign(
  work: Work,
  plan: Plan,
  asked: Asked,
  before: () => Promise<void> | undefined = () => undefined,
): Promise<Signed | undefined> {
  const payers = payersOf(work, plan);
  const buyer = payers.buyerOf(plan);
  for (;;) {
    const option = await findOption(work, asked, `${payers.chain}:${buyer.address}`);
    if (option === undefined) return undefined;
    await before();
    try {
      const results = await insist(work, asked.mode, (shop) => signOption(shop, asked.paymentId, option, buyer));
      return { option, results };
    } catch (error) {
      // The option has gone stale before its actions were fetched; or the payment is over, as the next question will say.
      if (!(error instanceof Refused)) throw error;
    }
  }
}

function payersOf({ payers }: Work, { family }: Plan): Payers {
  const found = payers[family];
  if (found === undefined) throw new Error(`nobody pays on ${family} in this run`);
  return found;
}

/** A stranger who has seen the payment confirms its option with signatures of the right form. Nobody waits for it. */
function confirmGarbage(work: Work, { paymentId, mode }: Asked, { option, results }: Signed): void {
  for (let count = 0; count < garbageConfirms; count += 1) {
    const made = results.map(({ data: [real = ""] }) => {
      const digits = Array.from({ length: real.length - 2 }, () => work.random.between(0, 15).toString(16));
      return { type: "walletRpc" as const, data: [`0x${digits.join("")}`] };
    });
    const [shop] = work.stage.baseUrls.map((baseUrl) => ({ baseUrl, caller: work.stage.seeded[mode] }));
    if (shop) void confirm(shop, paymentId, { optionId: option.id, results: made }).catch(() => undefined);
  }
}

/** What gets in the way happens beside the confirm, shortly before it or after it. Nobody waits for it. */
function makeTrouble(work: Work, plan: Plan, signed: Signed): void {
  const { random, signal } = work;
  const payers = payersOf(work, plan);
  const after = (ms: number) => pause(ms, undefined, { signal });
  const [soon, later] = [random.between(0, 900), random.between(2_000, 6_000)];
  const trouble = async () => {
    await after(soon);
    await payers.disturb(plan, signed);
    await after(later);
    payers.relent(plan, signed);
  };
  // A stranger's transaction that the chain does not take changes nothing.
  void trouble().catch(() => undefined);
}

/** Confirms until it is taken, polls until the end, confirms again meanwhile as wallets do that have lost the answer. */
async function payToEnd(
  work: Work,
  plan: Plan,
  { asked, signed, onSent }: { asked: Asked; signed: Signed; onSent: () => void },
): Promise<void> {
  const { random, signal } = work;
  const isInTrouble = /blocked|spent|burner|hostile|stuck|garbage/.test(plan.kind);
  const stuckAt = plan.kind === "stuck push" ? Date.now() + stuckMs : Number.POSITIVE_INFINITY;
  let { option, results } = signed;
  const send = () =>
    tell(work, asked, "confirm", (shop) => confirm(shop, asked.paymentId, { optionId: option.id, results }));
  for (let refusals = 0; ; ) {
    try {
      const sending = plan.confirmsTwice ? Promise.any([send(), send()]).catch(() => send()) : send();
      onSent();
      let status = await sending;
      while (!status.isFinal && status.status !== "requires_action") {
        status = await tell(work, asked, "status", (shop) => getStatus(shop, asked.paymentId, pollMs));
        if (!status.isFinal && random.chance(0.2)) status = await send();
      }
      if (status.isFinal) return;
      if (Date.now() > stuckAt)
        await insist(work, asked.mode, (shop) => cancel(shop, asked.paymentId)).catch(passRefusal);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      refusals += 1;
      const steppedBack = mayBeLost(work, asked);
      if ((isInTrouble && refusals >= refusalsTaken) || (steppedBack && refusals >= refusalsTakenAfterStep))
        await insist(work, asked.mode, (shop) => cancel(shop, asked.paymentId)).catch(passRefusal);
      const { status, isFinal } = await tell(work, asked, "status", (shop) => getStatus(shop, asked.paymentId));
      if (isFinal) return;
      // A step back may have lost the option, too.
      const isOpen = status === "requires_action" && !isInTrouble;
      const isLost = steppedBack && tokenOf(plan.kind) !== "push";
      if (isOpen && (isLost || (await payersOf(work, plan).isWorthless(plan, { option, results }))))
        ({ option, results } = (await sign(work, plan, asked)) ?? { option, results });
    }
    await pause(random.between(300, 1_000), undefined, { signal });
  }
}

async function pollToEnd(work: Work, asked: Asked): Promise<void> {
  for (let isFinal = false; !isFinal; )
    ({ isFinal } = await tell(work, asked, "status", (shop) => getStatus(shop, asked.paymentId, pollMs)));
}

/** Asks until it is answered, and writes the answer down. */
async function tell(
  work: Work,
  asked: Asked,
  by: "confirm" | "status",
  question: (shop: Shop) => Promise<PaymentStatus>,
): Promise<PaymentStatus> {
  return insist(work, asked.mode, async (shop) => {
    const begunAt = performance.now();
    const { status, isFinal, info } = await question(shop);
    const { paymentId } = asked;
    work.history.told.push({
      paymentId,
      by,
      begunAt,
      endedAt: performance.now(),
      status,
      isFinal,
      txId: info?.txId ?? null,
    });
    if (by === "confirm") asked.confirmed = true;
    return { status, isFinal, info };
  });
}

/** Repeats after 5xx and broken connections, and after nothing else (specification, part 7); any api will do. */
async function insist<T>(
  { stage, random, history, signal }: Work,
  mode: "live" | "test",
  question: (shop: Shop) => Promise<T>,
): Promise<T> {
  for (;;) {
    signal.throwIfAborted();
    try {
      return await question({ baseUrl: random.pick(stage.baseUrls), caller: stage.seeded[mode] });
    } catch (error) {
      if (error instanceof Refused && error.status === 404 && history.lost.length > 0) throw new Forgotten();
      if (error instanceof Refused && error.status < 500) throw error;
    }
    await pause(random.between(100, 500), undefined, { signal });
  }
}

function passRefusal(error: unknown): void {
  if (!(error instanceof Refused)) throw error;
}
