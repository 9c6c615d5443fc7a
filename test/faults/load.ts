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
import { endsOf, type Family, type Plan } from "./plan.ts";
import type { Random } from "./random.ts";
import type { Stage } from "./stage.ts";
import type { Asked, History } from "./told.ts";

export type Load = {
  history: History;
  /** Every payment has been asked for and its wallet has sent its first confirm. */
  sent: Promise<unknown>;
  /** Every wallet knows its end, or has given up at the signal. */
  over: Promise<unknown>;
};

/** Those who pay, by the chain they pay on. */
export type PayersOf = Partial<Record<Family, Payers>>;

type Work = { stage: Stage; payers: PayersOf; history: History; random: Random; begun: number; signal: AbortSignal };

/** How often a wallet in trouble takes a refusal before its owner gives up. */
const refusalsTaken = 3;
const pollMs = 3_000;

/** Merchants ask, wallets pay, each by its plan, over HTTP; whatever they are told is written down. */
export function startLoad(args: {
  stage: Stage;
  payers: PayersOf;
  plans: readonly Plan[];
  random: Random;
  signal: AbortSignal;
}): Load {
  const history: History = { told: [], creations: [], asked: [], offContract: [] };
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
    history,
    sent: Promise.all(journeys.map(({ sent }) => sent)),
    over: Promise.all(journeys.map(({ over }) => over)),
  };
}

async function travel(work: Work, plan: Plan, onSent: () => void): Promise<void> {
  const { random, signal } = work;
  await pause(Math.max(0, work.begun + plan.at - Date.now()), undefined, { signal });
  const deadline = Date.now() + plan.lives * 1_000;
  const asked = await create(work, plan, deadline).catch((error: unknown) => {
    // The service was away for as long as the payment would have lived.
    if (error instanceof Refused && Date.now() >= deadline - 1_000) return undefined;
    throw error;
  });
  if (asked === undefined) return;
  const signed = await sign(work, plan, asked);
  if (signed === undefined) return await pollToEnd(work, asked);
  if (plan.kind === "late")
    await pause(Math.max(0, deadline - Date.now() + random.between(-800, 300)), undefined, { signal });
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
      work.history.creations.push({ key: `${mode} ${key}`, body: JSON.stringify(sent), httpStatus, answer });
    return insist(work, mode, async (shop) => {
      try {
        const answer = (await ask(shop, "POST", "/v1/payments", sent, { "idempotency-key": key })) as { id: string };
        note(201, JSON.stringify(answer));
        return answer;
      } catch (error) {
        if (error instanceof Refused && error.status < 500) note(error.status, "");
        throw error;
      }
    });
  };
  const [{ id }] = await Promise.all([send(body), ...(plan.repeatsCreation ? [send(body)] : [])]);
  if (plan.repeatsCreation) await send({ ...body, referenceId: "another" }).catch(() => undefined);
  const asked = { paymentId: id, mode, kind: plan.kind, ends: endsOf(plan), confirmed: false } as const;
  const noted: Asked = { ...asked };
  work.history.asked.push(noted);
  return noted;
}

/** No way to pay means that the chain could not be asked, until the payment is over. */
async function findOption(work: Work, { paymentId, mode }: Asked, account: string): Promise<PayOption | undefined> {
  for (;;) {
    try {
      const [option] = await insist(work, mode, (shop) => listOptions(shop, paymentId, [account]));
      if (option !== undefined) return option;
    } catch (error) {
      if (error instanceof Refused) return undefined;
      throw error;
    }
    await pause(500, undefined, { signal: work.signal });
  }
}

/** The wallet asks how to pay, and signs. Undefined when there is no way any more. */
async function sign(work: Work, plan: Plan, asked: Asked): Promise<Signed | undefined> {
  const payers = payersOf(work, plan);
  const buyer = payers.buyerOf(plan);
  for (;;) {
    const option = await findOption(work, asked, `${payers.chain}:${buyer.address}`);
    if (option === undefined) return undefined;
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
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      refusals += 1;
      const isInTrouble = /blocked|spent/.test(plan.kind);
      if (isInTrouble && refusals >= refusalsTaken)
        await insist(work, asked.mode, (shop) => cancel(shop, asked.paymentId)).catch(passRefusal);
      const { status, isFinal } = await tell(work, asked, "status", (shop) => getStatus(shop, asked.paymentId));
      if (isFinal) return;
      // A blockhash may have died before it was confirmed: then the wallet signs another one, if it has the money.
      if (plan.family === "solana" && status === "requires_action" && !isInTrouble)
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
  { stage, random, signal }: Work,
  mode: "live" | "test",
  question: (shop: Shop) => Promise<T>,
): Promise<T> {
  for (;;) {
    signal.throwIfAborted();
    try {
      return await question({ baseUrl: random.pick(stage.baseUrls), caller: stage.seeded[mode] });
    } catch (error) {
      if (error instanceof Refused && error.status < 500) throw error;
    }
    await pause(random.between(100, 500), undefined, { signal });
  }
}

function passRefusal(error: unknown): void {
  if (!(error instanceof Refused)) throw error;
}
