import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { cancelPayment } from "../../payments/cancel.ts";
import { type CheckoutView, findCheckout, openCheckout } from "../../payments/checkout.ts";
import { storeCollected } from "../../payments/collect.ts";
import { acceptConfirm, isReverted } from "../../payments/confirm.ts";
import { done, type Result, refuse } from "../../payments/errors.ts";
import { listActions, listOptions } from "../../payments/options.ts";
import { type Requester, requesterName } from "../../payments/requester.ts";
import { simulatePayment } from "../../payments/simulate.ts";
import { signAsTestWallet } from "../../payments/test-wallet.ts";
import { toActionAnswer, toCollectUrl, toOptionAnswer } from "../answers.ts";
import type { ApiDeps } from "../deps.ts";
import { sendRefusal } from "../errors.ts";
import { maxPollMs, paymentId, text } from "../fields.ts";
import { gatewayConfirm } from "../gateway/confirm.ts";
import { gatewayFetch } from "../gateway/fetch.ts";
import { gatewayOptions } from "../gateway/options.ts";
import { addressGroup, paymentGroup } from "../limits.ts";
import { parseInput } from "../parse.ts";
import { type Hold, LONGEST_HOLD_MS, pollVerdict, waitForNews } from "../polls.ts";
import { toNews } from "./news.ts";
import { openSession } from "./session.ts";

type Call<I> = {
  payment: CheckoutView;
  /** The browser's session: one of those who may have requested options. */
  requester: Requester;
  params: Record<string, string>;
  input: I;
  hold: Hold;
};
type Keyless<S extends z.ZodType> = {
  method: "GET" | "POST";
  /** Behind `/checkout/{payment id}`. */
  path: string;
  input: S;
  run: (deps: ApiDeps, call: Call<z.output<S>>) => Promise<Result<object>>;
};
const define = <S extends z.ZodType>(route: Keyless<S>): Keyless<z.ZodType> => route as unknown as Keyless<z.ZodType>;

const schemaOf = ({ schemas }: { schemas: { body?: z.ZodType } }): z.ZodType => schemas.body ?? z.never();
const queryOf = ({ paymentId, mode }: CheckoutView) => ({ paymentId, mode });

/**
 * What the pages ask for. No key: the link is the permission, for this one payment, and the functions are those of the
 * gateway. No header lets another origin read an answer or send JSON here.
 */
const routes = [
  define({
    method: "GET",
    path: "/status",
    // Held as long as the payment is still in that version of its state; without one answered at once.
    input: z.object({
      version: z
        .string()
        .regex(/^\d{1,9}$/)
        .transform(Number)
        .optional(),
      maxPollMs,
    }),
    async run(deps, { payment, input, hold }) {
      const { version: after, maxPollMs: ms = LONGEST_HOLD_MS } = input;
      if (after !== undefined && payment.stateVersion <= after && !payment.isFinal)
        await waitForNews(deps, queryOf(payment), { after, ms, ...hold });
      return tellNews(deps, payment);
    },
  }),
  define({
    method: "POST",
    path: "/options",
    input: schemaOf(gatewayOptions) as z.ZodType<{ accounts: string[] }>,
    async run(deps, { payment, requester, input }) {
      const listed = await listOptions(deps, { ...queryOf(payment), accounts: input.accounts, requester });
      if (!listed.ok) return listed;
      const { paymentId } = payment;
      // A wallet that holds too little is something else than a payment that nothing can pay any more.
      const opened = listed.value.options.length === 0 ? await openCheckout(deps, paymentId) : undefined;
      return done({
        ...(opened?.ok && opened.value.ways.length === 0 && { unpayable: opened.value.view.money }),
        options: listed.value.options.map((option) => {
          const { collectData, ...rest } = toOptionAnswer(option, { paymentId, publicUrl: deps.publicUrl, requester });
          return { ...rest, collectUrl: collectData?.url ?? null };
        }),
      });
    },
  }),
  define({
    method: "POST",
    path: "/fetch",
    input: schemaOf(gatewayFetch) as z.ZodType<{ optionId: string; data: string }>,
    async run(deps, { payment, input }) {
      const listed = await listActions(deps, { ...queryOf(payment), ...input });
      return listed.ok ? done({ actions: listed.value.actions.map(toActionAnswer) }) : listed;
    },
  }),
  define({
    method: "POST",
    path: "/confirm",
    input: schemaOf(gatewayConfirm) as z.ZodType<Pick<Parameters<typeof acceptConfirm>[1], "optionId" | "results">>,
    async run(deps, { payment, requester, input, hold }) {
      const asked = queryOf(payment);
      const { optionId, results } = input;
      const accept = () => acceptConfirm(deps, { ...asked, requester, optionId, results });
      const status = await pollVerdict(deps, asked, accept, { maxPollMs: LONGEST_HOLD_MS, ...hold });
      if (status.ok) return tellNews(deps, payment);
      if (!isReverted(status)) return status;
      const news = await tellNews(deps, payment);
      return news.ok ? done({ ...news.value, reverted: true }) : news;
    },
  }),
  define({
    method: "POST",
    // For the requester that the page's address names, which may be a wallet.
    path: "/collect/:by",
    input: z.object({ optionId: text(128), fields: z.array(z.object({ id: text(64), value: text(1_024) })).max(32) }),
    async run(deps, { payment, params, input }) {
      const requester = readRequester(params.by);
      if (!requester) return refuse("payment_not_found", "no such payment");
      return storeCollected(deps, { ...queryOf(payment), ...input, requester, keepMs: deps.collectedDataMs });
    },
  }),
  define({
    method: "POST",
    path: "/cancel",
    input: z.object({}),
    async run(deps, { payment, requester }) {
      const cancelled = await cancelPayment(deps, queryOf(payment), "cancelled_by_user", { requester });
      return cancelled.ok ? tellNews(deps, payment) : cancelled;
    },
  }),
  define({
    method: "POST",
    path: "/test-wallet",
    input: z.object({}),
    async run(deps, { payment, requester, hold }) {
      const asked = { ...queryOf(payment), requester };
      if (payment.mode !== "test") return nothingToDrive();
      const move = await signAsTestWallet(deps, asked);
      if (!move.ok) return move;
      const { optionId } = move.value;
      if ("needsData" in move.value)
        return done({
          collectUrl: toCollectUrl(deps.publicUrl, { paymentId: payment.paymentId, optionId, requester }),
        });
      const { results } = move.value;
      const accept = () => acceptConfirm(deps, { ...asked, optionId, results });
      const status = await pollVerdict(deps, asked, accept, { maxPollMs: LONGEST_HOLD_MS, ...hold });
      return status.ok ? tellNews(deps, payment) : status;
    },
  }),
  define({
    method: "POST",
    path: "/simulate",
    input: z.object({ status: z.enum(["processing", "succeeded", "failed", "expired", "cancelled"]) }),
    async run(deps, { payment, input }) {
      if (payment.mode !== "test") return nothingToDrive();
      const driven = await simulatePayment(deps, queryOf(payment), input.status);
      return driven.ok ? tellNews(deps, payment) : driven;
    },
  }),
];

/** The requester that an address of the data page names; undefined for what is no such name. */
export function readRequester(name: string | undefined): Requester | undefined {
  return name !== undefined && requesterName.test(name) ? { name, isOne: true } : undefined;
}

/** As for a payment that is not there: of a live one there is nothing to be driven. */
const nothingToDrive = () => refuse("payment_not_found", "no such payment");

/** The payment of a link's id; what is no id of ours never reaches the database. Refuses with `payment_not_found`. */
export async function findByLink(deps: ApiDeps, id: string): Promise<Result<CheckoutView>> {
  return paymentId.safeParse(id).success ? findCheckout(deps, id) : refuse("payment_not_found", "no such payment");
}

/** The same with the ways to pay it, for the page. */
export async function openByLink(deps: ApiDeps, id: string): ReturnType<typeof openCheckout> {
  return paymentId.safeParse(id).success ? openCheckout(deps, id) : refuse("payment_not_found", "no such payment");
}

async function tellNews(deps: ApiDeps, { paymentId }: CheckoutView): Promise<Result<object>> {
  const now = await findCheckout(deps, paymentId);
  return now.ok ? done(toNews(now.value)) : now;
}

/** Serves the keyless routes: limited by address first, then by payment. */
export function serveKeyless(app: FastifyInstance, deps: ApiDeps): void {
  for (const { method, path, input, run } of routes)
    app.route<{ Params: { id: string } }>({
      method,
      url: `/checkout/:id${path}`,
      onRequest: async (request, reply) => {
        const { id } = request.params;
        const busy = await deps.limits.address(addressGroup(request.ip), reply);
        if (busy) return sendRefusal(reply, busy);
        // Nothing is counted for what is no payment.
        const often = paymentId.safeParse(id).success
          ? await deps.limits.payment(paymentGroup(id, request.ip), reply)
          : undefined;
        if (often) return sendRefusal(reply, often);
      },
      handler: async (request, reply) => {
        const { id } = request.params;
        const payment = await findByLink(deps, id);
        if (!payment.ok) return sendRefusal(reply, payment);
        const [whole, given] = method === "GET" ? ["query", request.query] : ["body", request.body];
        const parsed = parseInput(input, given, { whole: whole as string, code: "invalid_params" });
        if (!parsed.ok) return sendRefusal(reply, parsed);
        const hold = {
          onGone: (leave: () => void) => void reply.raw.once("close", leave),
          held: (ms: number) => {
            request.heldMs = ms;
          },
        };
        const own = { ...deps, log: request.log as ApiDeps["log"] };
        const requester = openSession(request, reply, deps.publicUrl);
        const { params } = request;
        const answer = await run(own, { payment: payment.value, requester, params, input: parsed.value, hold });
        return answer.ok ? reply.send(answer.value) : sendRefusal(reply, answer);
      },
    });
}
