import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { Refusal } from "../payments/error-codes.ts";
import { isInOtherMode } from "../payments/lifecycle/read-payment.ts";
import { isMerchantInOtherMode } from "../payments/merchants/merchants.ts";
import type { ApiDeps } from "./api-deps.ts";
import type { Operation, RawCall } from "./contract/operation.ts";
import { paymentId } from "./contract/request-schemas.ts";
import { gatewayCancel } from "./gateway/gateway-cancel.ts";
import { gatewayConfirm } from "./gateway/gateway-confirm.ts";
import { gatewayFetch } from "./gateway/gateway-fetch.ts";
import { gatewayOptions } from "./gateway/gateway-options.ts";
import { gatewayPayment } from "./gateway/gateway-payment.ts";
import { gatewayStatus } from "./gateway/gateway-status.ts";
import { pickVersion } from "./http/api-version.ts";
import { type Authenticated, authenticate, readHeader } from "./http/auth.ts";
import { sendRefusal } from "./http/http-errors.ts";
import { type OperationResponse, runOperation } from "./http/idempotency.ts";
import { toHold } from "./http/observe-requests.ts";
import { readPaymentId } from "./http/payment-links.ts";
import { readPublicUrl } from "./http/public-url.ts";
import { addressLimitKey, limitByPayment } from "./http/rate-limits.ts";
import { appIdOperations } from "./merchant/app-id-operations.ts";
import { approvalKeyOperations } from "./merchant/approval-key-operations.ts";
import { balanceOperations } from "./merchant/balance-operations.ts";
import { createOperations } from "./merchant/create-operations.ts";
import { destinationChangeOperations } from "./merchant/destination-change-operations.ts";
import { eventOperations } from "./merchant/event-operations.ts";
import { keyOperations } from "./merchant/key-operations.ts";
import { listOperations } from "./merchant/list-operations.ts";
import { merchantOperations } from "./merchant/merchant-operations.ts";
import { paymentOperations } from "./merchant/payment-operations.ts";
import { refundOperations } from "./merchant/refund-operations.ts";
import { requestLogOperations } from "./merchant/request-log-operations.ts";
import { settlementOperations } from "./merchant/settlement-operations.ts";
import { statusOperations } from "./merchant/status-operations.ts";
import { webhookDeliveryOperations } from "./merchant/webhook-delivery-operations.ts";
import { webhookEndpointOperations } from "./merchant/webhook-endpoint-operations.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** Set before the body is read, so that the body of an unauthenticated request is never read. */
    authenticated: Authenticated | null;
  }
}

/** Every operation of the contract. */
export const operations: readonly Operation[] = [
  ...createOperations,
  ...statusOperations,
  ...paymentOperations,
  ...refundOperations,
  ...listOperations,
  ...balanceOperations,
  ...merchantOperations,
  ...settlementOperations,
  ...destinationChangeOperations,
  ...approvalKeyOperations,
  ...keyOperations,
  ...appIdOperations,
  ...webhookEndpointOperations,
  ...webhookDeliveryOperations,
  ...eventOperations,
  ...requestLogOperations,
  gatewayPayment,
  gatewayOptions,
  gatewayFetch,
  gatewayConfirm,
  gatewayStatus,
  gatewayCancel,
];

const methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const;

/** Serves every operation; responds with 405 to other methods on their paths and with 404 to other paths. */
export function serveOperations(app: FastifyInstance, deps: ApiDeps): void {
  app.decorateRequest("authenticated", null);
  // In this hook, because a notFound handler runs only after the body has been read.
  app.addHook("onRequest", async (request, reply) => {
    if (request.is404) return sendRefusal(reply, { code: "invalid_params", message: "there is no such path" }, 404);
  });
  for (const operation of operations) serveOperation(app, deps, operation);
  for (const path of new Set(operations.map((operation) => operation.path))) refuseOtherMethods(app, path);
}

function serveOperation(app: FastifyInstance, deps: ApiDeps, operation: Operation): void {
  const isGateway = operation.access === "gateway";
  app.route<{ Params: { id?: string } }>({
    method: operation.method,
    url: operation.path,
    onRequest: async (request, reply) => {
      // The limit by address comes first: it bounds the guessing of keys.
      const addressRefusal = await deps.limits.address(addressLimitKey(request.ip), reply);
      if (addressRefusal) return sendRefusal(reply, addressRefusal);
      const authenticated = await authenticate(deps, request, operation);
      if (!authenticated.ok) return sendRefusal(reply, authenticated);
      request.authenticated = authenticated.value;
      const { keyId, version } = authenticated.value.caller;
      const keyRefusal = keyId === null ? undefined : await deps.limits.key(keyId, reply);
      if (keyRefusal) return sendRefusal(reply, keyRefusal);
      const picked = pickVersion(readHeader(request.headers, "svc-version"), version);
      if (!picked.ok) return sendRefusal(reply, picked);
      reply.header("svc-version", picked.value);
    },
    // After the body has been read, because it says how much the request asks for.
    preHandler: async (request, reply) => {
      const paymentRefusal = isGateway ? await limitPayment(deps, request, reply) : undefined;
      if (paymentRefusal) return sendRefusal(reply, paymentRefusal);
    },
    // Not an async function: it would keep all of its variables in memory while a request is held.
    handler: (request, reply) => {
      const params = isGateway ? resolveLink(deps, request.params) : request.params;
      const { query, body } = request;
      const call = operation.read(toRawCall(request, reply, params));
      if (!call.ok) return sendRefusal(reply, call);
      const key = readHeader(request.headers, "idempotency-key");
      return runOperation(deps, operation, call.value, { key, input: { params, query, body } }).then((response) =>
        response.ok
          ? sendResponse(reply, response.value)
          : explainMissing(deps, request, response).then((refusal) => sendRefusal(reply, refusal)),
      );
    },
  });
}

function toRawCall(request: FastifyRequest, reply: FastifyReply, params: unknown): RawCall {
  const { authenticated, query, body } = request;
  if (!authenticated) throw new Error("the request has not been authenticated");
  const merchantHeader = readHeader(request.headers, "merchant-id");
  return { ...authenticated, params, query, body, merchantHeader, hold: toHold(request, reply) };
}

function sendResponse(reply: FastifyReply, { status, text, replayed }: OperationResponse): FastifyReply {
  if (replayed) reply.header("idempotent-replayed", "true");
  return reply.code(status).type("application/json; charset=utf-8").send(text);
}

/** The member of a path that names a merchant. */
const namedMerchant = z.object({ merchantId: z.string() });
/** The members of a request that may name a payment. */
const namedPayment = z.union([z.object({ id: paymentId }), z.object({ paymentId })]);

type MissingCall = Pick<FastifyRequest, "authenticated" | "params" | "body">;

/**
 * Adds to `payment_not_found` and `merchant_not_found` that the payment or merchant exists in the other mode, when the caller's
 * account owns it there.
 */
async function explainMissing(deps: ApiDeps, call: MissingCall, refusal: Refusal): Promise<Refusal> {
  const what = await findInOtherMode(deps, call, refusal);
  if (!what || !call.authenticated) return refusal;
  const { mode } = call.authenticated.caller;
  const other = mode === "test" ? "live" : "test";
  const message = `${refusal.message} in ${mode} mode; it is a ${other} ${what}, and test and live data are separate`;
  return { ...refusal, message };
}

/** Returns what a refused call names that only the other mode of the caller's account has. */
async function findInOtherMode(
  deps: ApiDeps,
  { authenticated, params, body }: MissingCall,
  { code }: Refusal,
): Promise<"payment" | "merchant" | undefined> {
  if (!authenticated) return undefined;
  const { caller, merchant } = authenticated;
  if (code === "merchant_not_found") {
    const merchantId = merchant?.merchantId ?? namedMerchant.safeParse(params).data?.merchantId;
    return merchantId && (await isMerchantInOtherMode(deps, { merchantId, caller })) ? "merchant" : undefined;
  }
  if (code !== "payment_not_found" || !merchant) return undefined;
  const named = namedPayment.safeParse(params).data ?? namedPayment.safeParse(body).data;
  if (!named) return undefined;
  const id = "id" in named ? named.id : named.paymentId;
  return (await isInOtherMode(deps, { paymentId: id, caller })) ? "payment" : undefined;
}

/** Applies the limit of the payment to a gateway operation, as on its page. A malformed id has no counter. */
async function limitPayment(
  deps: ApiDeps,
  request: FastifyRequest<{ Params: { id?: string } }>,
  reply: FastifyReply,
): Promise<Refusal | undefined> {
  const { id } = resolveLink(deps, request.params);
  const known = paymentId.safeParse(id);
  if (!known.success) return undefined;
  const keyId = request.authenticated?.caller.keyId ?? null;
  return limitByPayment(deps.limits, reply, { paymentId: known.data, keyId });
}

/**
 * Replaces a payment link in a gateway path by its payment id. Any other text stays as it is and matches no payment.
 */
function resolveLink({ publicUrl }: ApiDeps, { id = "" }: { id?: string }): { id: string } {
  return { id: readPaymentId(id, readPublicUrl(publicUrl).hostname) ?? id };
}

function refuseOtherMethods(app: FastifyInstance, path: string): void {
  const served = operations
    .filter((operation) => operation.path === path)
    .flatMap(({ method }) => (method === "GET" ? [method, "HEAD"] : [method]));
  const allow = served.join(", ");
  app.route({
    method: methods.filter((method) => !served.some((other) => other === method)),
    url: path,
    onRequest: async (_request, reply) =>
      sendRefusal(
        reply.header("allow", allow),
        { code: "invalid_params", message: `expected the method ${allow}` },
        405,
      ),
    handler: async () => undefined,
  });
}
