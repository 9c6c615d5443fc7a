import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { storeCollected } from "../../../payments/buyer-data/collected-data.ts";
import { done, type Result, refuse } from "../../../payments/error-codes.ts";
import { cancelPayment } from "../../../payments/lifecycle/cancel-payment.ts";
import { type CheckoutView, findCheckout, openCheckout } from "../../../payments/lifecycle/checkout-view.ts";
import { acceptConfirm, isReverted } from "../../../payments/lifecycle/confirm-payment.ts";
import { simulatePayment } from "../../../payments/lifecycle/simulate-payment.ts";
import { signAsTestWallet } from "../../../payments/lifecycle/test-wallet.ts";
import { listActions, listOptions } from "../../../payments/options/list-options.ts";
import { type Requester, requesterName } from "../../../payments/requester.ts";
import type { ApiDeps } from "../../api-deps.ts";
import { maxPollMs, paymentId, text } from "../../contract/request-schemas.ts";
import { toActionResponse, toCollectUrl, toOptionResponse } from "../../contract/responses.ts";
import { confirmBody } from "../../gateway/gateway-confirm.ts";
import { fetchBody } from "../../gateway/gateway-fetch.ts";
import { optionsBody } from "../../gateway/gateway-options.ts";
import { sendRefusal } from "../../http/http-errors.ts";
import { toHold } from "../../http/observe-requests.ts";
import { parseInput } from "../../http/parse-input.ts";
import { addressLimitKey, limitByPayment } from "../../http/rate-limits.ts";
import { MAX_HOLD_MS, pollVerification, waitForStatusChange } from "../../polling/long-polls.ts";
import type { Hold } from "../../polling/waiters.ts";
import { toStatusPayload } from "../pages/status-payload.ts";
import { openSession } from "./browser-session.ts";

type Call = {
  payment: CheckoutView;
  /** The browser's session, as the requester of options. */
  requester: Requester;
  params: Record<string, string>;
  hold: Hold;
};
type CheckoutRoute = {
  method: "GET" | "POST";
  /** The part after `/checkout/{payment id}`. */
  path: string;
  /** Parses the query or the body and returns the function that does the work. */
  read: (input: unknown) => Result<(deps: ApiDeps, call: Call) => Promise<Result<object>>>;
};
type Spec<S extends z.ZodType> = Pick<CheckoutRoute, "method" | "path"> & {
  input: S;
  run: (deps: ApiDeps, call: Call & { input: z.output<S> }) => Promise<Result<object>>;
};

/** Returns a route with the given schema of its input and handler. */
function define<S extends z.ZodType>({ method, path, input, run }: Spec<S>): CheckoutRoute {
  return {
    method,
    path,
    read(given) {
      const parsed = parseInput(input, given, { whole: method === "GET" ? "query" : "body", code: "invalid_params" });
      return parsed.ok ? done((deps: ApiDeps, call: Call) => run(deps, { ...call, input: parsed.value })) : parsed;
    },
  };
}

const queryOf = ({ paymentId, mode }: CheckoutView) => ({ paymentId, mode });

/**
 * The routes that the pages request, without an API key: knowing the payment link is the permission for this one payment.
 * They call the same functions as the gateway. No CORS header lets another origin read a response or send JSON.
 */
const routes = [
  define({
    method: "GET",
    path: "/status",
    // Held while the payment's state has this version; answered at once when the version is left out.
    input: z.object({
      version: z
        .string()
        .regex(/^\d{1,9}$/)
        .transform(Number)
        .optional(),
      maxPollMs,
    }),
    async run(deps, { payment, input, hold }) {
      const { version: after, maxPollMs: ms = MAX_HOLD_MS } = input;
      if (after !== undefined && payment.stateVersion <= after && !payment.isFinal)
        await waitForStatusChange(deps, queryOf(payment), { after, ms, ...hold });
      return readStatusPayload(deps, payment);
    },
  }),
  define({
    method: "POST",
    path: "/options",
    input: optionsBody,
    async run(deps, { payment, requester, input }) {
      const listed = await listOptions(deps, { ...queryOf(payment), accounts: input.accounts, requester });
      if (!listed.ok) return listed;
      const { paymentId } = payment;
      // Distinguishes a wallet that holds too little from a payment that no asset can pay any more.
      const opened = listed.value.options.length === 0 ? await openCheckout(deps, paymentId) : undefined;
      return done({
        ...(opened?.ok && opened.value.ways.length === 0 && { unpayable: opened.value.view.money }),
        options: listed.value.options.map((option) => {
          const { collectData, ...rest } = toOptionResponse(option, {
            paymentId,
            publicUrl: deps.publicUrl,
            requester,
          });
          return { ...rest, collectUrl: collectData?.url ?? null };
        }),
      });
    },
  }),
  define({
    method: "POST",
    path: "/fetch",
    input: fetchBody,
    async run(deps, { payment, input }) {
      const listed = await listActions(deps, { ...queryOf(payment), ...input });
      return listed.ok ? done({ actions: listed.value.actions.map(toActionResponse) }) : listed;
    },
  }),
  define({
    method: "POST",
    path: "/confirm",
    input: confirmBody,
    async run(deps, { payment, requester, input, hold }) {
      const paymentQuery = queryOf(payment);
      const { optionId, results } = input;
      const confirm = { ...paymentQuery, requester, optionId, results };
      const accept = (ended: Promise<void>) => acceptConfirm(deps, { ...confirm, ended });
      const status = await pollVerification(deps, paymentQuery, accept, {
        maxPollMs: MAX_HOLD_MS,
        until: "verified",
        ...hold,
      });
      if (status.ok) return readStatusPayload(deps, payment);
      if (!isReverted(status)) return status;
      const payload = await readStatusPayload(deps, payment);
      return payload.ok ? done({ ...payload.value, reverted: true }) : payload;
    },
  }),
  define({
    method: "POST",
    // `by` is the requester from the page's address; it may be a wallet.
    path: "/collect/:by",
    input: z.object({ optionId: text(128), fields: z.array(z.object({ id: text(64), value: text(1_024) })).max(32) }),
    async run(deps, { payment, params, input }) {
      const requester = readRequester(params["by"]);
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
      return cancelled.ok ? readStatusPayload(deps, payment) : cancelled;
    },
  }),
  define({
    method: "POST",
    path: "/test-wallet",
    input: z.object({}),
    async run(deps, { payment, requester, hold }) {
      const paymentQuery = { ...queryOf(payment), requester };
      if (payment.mode !== "test") return refuseLiveMode();
      const signed = await signAsTestWallet(deps, paymentQuery);
      if (!signed.ok) return signed;
      const { optionId } = signed.value;
      if ("needsData" in signed.value)
        return done({
          collectUrl: toCollectUrl(deps.publicUrl, { paymentId: payment.paymentId, optionId, requester }),
        });
      const { results } = signed.value;
      const confirm = { ...paymentQuery, optionId, results };
      const accept = (ended: Promise<void>) => acceptConfirm(deps, { ...confirm, ended });
      const status = await pollVerification(deps, paymentQuery, accept, {
        maxPollMs: MAX_HOLD_MS,
        until: "verified",
        ...hold,
      });
      return status.ok ? readStatusPayload(deps, payment) : status;
    },
  }),
  define({
    method: "POST",
    path: "/simulate",
    input: z.object({ status: z.enum(["processing", "succeeded", "failed", "expired", "cancelled"]) }),
    async run(deps, { payment, input }) {
      if (payment.mode !== "test") return refuseLiveMode();
      const driven = await simulatePayment(deps, queryOf(payment), input.status);
      return driven.ok ? readStatusPayload(deps, payment) : driven;
    },
  }),
];

/** Returns the requester that an address of the data page names, or undefined when the name is malformed. */
export function readRequester(name: string | undefined): Requester | undefined {
  return name !== undefined && requesterName.test(name) ? { name, isOne: true } : undefined;
}

/** Refuses to drive a live payment, in the same way as an unknown one. */
const refuseLiveMode = () => refuse("payment_not_found", "no such payment");

/** Returns the payment of a link. A malformed id never reaches the database. Refuses with `payment_not_found`. */
export async function findPaymentByLink(deps: ApiDeps, id: string): Promise<Result<CheckoutView>> {
  return paymentId.safeParse(id).success ? readCheckout(deps, id) : refuse("payment_not_found", "no such payment");
}

/** Returns the payment of a link with the ways to pay it. Refuses with `payment_not_found`. */
export async function openPaymentByLink(deps: ApiDeps, id: string): ReturnType<typeof openCheckout> {
  if (!paymentId.safeParse(id).success) return refuse("payment_not_found", "no such payment");
  const opened = await openCheckout(deps, id);
  if (opened.ok) await deps.statuses.notify([opened.value.view]);
  return opened;
}

/** Reads a payment that is about to be shown. */
async function readCheckout(deps: ApiDeps, id: string): Promise<Result<CheckoutView>> {
  const found = await findCheckout(deps, id);
  if (found.ok) await deps.statuses.notify([found.value]);
  return found;
}

async function readStatusPayload(deps: ApiDeps, { paymentId }: CheckoutView): Promise<Result<object>> {
  const found = await readCheckout(deps, paymentId);
  return found.ok ? done(toStatusPayload(found.value)) : found;
}

/** Serves the routes of the pages, with a rate limit by address and then one by payment. */
export function serveCheckoutApi(app: FastifyInstance, deps: ApiDeps): void {
  for (const { method, path, read } of routes)
    app.route<{ Params: { id: string } }>({
      method,
      url: `/checkout/:id${path}`,
      onRequest: async (request, reply) => {
        const addressRefusal = await deps.limits.address(addressLimitKey(request.ip), reply);
        if (addressRefusal) return sendRefusal(reply, addressRefusal);
      },
      preHandler: async (request, reply) => {
        const { id } = request.params;
        // A malformed id has no counter.
        const paymentRefusal = paymentId.safeParse(id).success
          ? await limitByPayment(deps.limits, reply, { paymentId: id, keyId: null })
          : undefined;
        if (paymentRefusal) return sendRefusal(reply, paymentRefusal);
      },
      handler: async (request, reply) => {
        const { id } = request.params;
        const payment = await findPaymentByLink(deps, id);
        if (!payment.ok) return sendRefusal(reply, payment);
        const run = read(method === "GET" ? request.query : request.body);
        if (!run.ok) return sendRefusal(reply, run);
        const requester = openSession(request, reply, deps.publicUrl);
        const { params } = request;
        const result = await run.value(deps, {
          payment: payment.value,
          requester,
          params,
          hold: toHold(request, reply),
        });
        return result.ok ? reply.send(result.value) : sendRefusal(reply, result);
      },
    });
}
