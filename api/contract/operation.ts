import { z } from "zod";
import { done, type ErrorCode, type Result, refuse, type UntimedCode } from "../../payments/error-codes.ts";
import type { KeyClaim } from "../../payments/idempotency-keys.ts";
import type { Requester } from "../../payments/requester.ts";
import type { ApiDeps } from "../api-deps.ts";
import type { Access, ActingCaller, Authenticated, Merchant, Permission } from "../http/auth.ts";
import { listUnknownMembers, parseInput } from "../http/parse-input.ts";
import type { Hold } from "../polling/waiters.ts";

/** Which merchant a call has: only merchant operations take `Merchant-Id`. */
type MerchantOf = { gateway: undefined; merchant: Merchant; account: undefined };

/** The arguments of an operation: parsed input from an authenticated and authorised caller. */
type Call<A extends Access, P, Q, B> = {
  caller: ActingCaller;
  merchant: MerchantOf[A];
  requester: Requester;
  params: P;
  query: Q;
  body: B;
  /** Names of members of the body that the operation ignores. */
  unknownMembers: readonly string[];
  hold: Hold;
};

/** A call whose input is not parsed yet. */
export type RawCall = Authenticated & {
  params: unknown;
  query: unknown;
  body: unknown;
  /** The header `Merchant-Id`. */
  merchantHeader: string | undefined;
  hold: Hold;
};

/** A parsed call of one operation. */
export type ParsedCall = {
  caller: ActingCaller;
  /** The merchant that the call names, in `Merchant-Id` or in its path. */
  merchantId: string | undefined;
  /** True for a call that requires a key although the operation's key is optional: its repetition would act twice. */
  needsKey: boolean;
  /** Sends the requests to other servers, outside of any transaction, and returns the function that does the work. */
  prepare(deps: ApiDeps): Promise<Result<Work>>;
};

/**
 * With an `Idempotency-Key`, `deps.db` is the transaction that stores the response too. An operation that claims its key
 * gets it as `claim` instead, and its work returns undefined when the key is taken.
 */
type Work = (deps: ApiDeps, claim?: KeyClaim) => Promise<Result<object> | undefined>;

/** One operation of the contract as data, for routing, for authorization and for its description. */
export type Operation = Permission & {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** In fastify's notation: `/v1/payments/:id/status`. */
  path: `/v1/${string}`;
  /** The unique `operationId` in the OpenAPI document. */
  name: string;
  /** One sentence for people: what the operation does. */
  summary: string;
  /** HTTP status of success. */
  success: 200 | 201;
  /** Whether the operation reads `Idempotency-Key`, and whether it requires it. */
  idempotency?: "required" | "optional" | undefined;
  /** True when the work is one statement, which stores the key and the response too. */
  claimsKey?: true;
  /** True for a list of the account that `Merchant-Id` narrows, as `merchantId` does in the query, which comes first. */
  merchantNarrows?: true;
  schemas: { params?: z.ZodType; query?: z.ZodType; body?: z.ZodType; response: z.ZodType };
  /** Error codes besides those of authentication and invalid input. */
  refusals: readonly ErrorCode[];
  /** Parses the whole input before any other step runs. */
  read(raw: RawCall): Result<ParsedCall>;
};

type Spec<A extends Access, P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType, R> = {
  method: Operation["method"];
  path: Operation["path"];
  name: string;
  summary: string;
  access: A;
  scope: Operation["scope"];
  wholeAccount?: true;
  success: Operation["success"];
  idempotency?: Operation["idempotency"];
  claimsKey?: true;
  merchantNarrows?: true;
  /** Returns true for a call that requires a key although the operation's key is optional. */
  needsKey?(call: { body: z.output<B> }): boolean;
  params?: P;
  /**
   * Error code for a path that does not match `params`, which names nothing that exists; default `payment_not_found`.
   */
  paramsCode?: UntimedCode;
  /** Message for such a path, of an object that has no error code of its own; default: that of the code. */
  paramsMessage?: string;
  query?: Q;
  body?: B;
  response: z.ZodType;
  refusals?: readonly ErrorCode[];
  /** Sends requests to other servers before the transaction of `handle` begins. */
  prepare?(deps: ApiDeps, call: Call<A, z.output<P>, z.output<Q>, z.output<B>>): Promise<Result<R>>;
  /** Does the work; `prepared` is the result of `prepare`. Returns undefined when the key of `claim` is taken. */
  handle(
    deps: ApiDeps,
    call: Call<A, z.output<P>, z.output<Q>, z.output<B>> & { prepared: R; claim: KeyClaim | undefined },
  ): Promise<Result<object> | undefined>;
};

/** Error code of invalid input: gateway clients and merchant clients expect different ones. */
export const invalidInputCode = {
  gateway: "invalid_params",
  merchant: "params_validation",
  account: "params_validation",
} as const;

/** Messages for paths of objects that do not exist, by error code. */
const notFound: Partial<Record<ErrorCode, string>> = {
  payment_not_found: "no such payment",
  refund_not_found: "no such refund",
  merchant_not_found: "no such merchant",
  api_key_not_found: "no such key",
  app_id_not_found: "no such app id",
  webhook_endpoint_not_found: "no such webhook endpoint",
  event_not_found: "no such event",
};

/** The query of an operation without one: wallets may send any parameter, merchants none. */
const noQuery: Record<Access, z.ZodType | undefined> = {
  gateway: undefined,
  merchant: z.strictObject({}),
  account: z.strictObject({}),
};

/** The parameters of a path that names a merchant. */
const merchantPath = z.object({ merchantId: z.string() });

/** Narrows the merchant of an authenticated call to what the operation's access guarantees. */
const merchantOf: { [A in Access]: (merchant: Merchant | undefined) => MerchantOf[A] } = {
  gateway: () => undefined,
  merchant: (merchant) => {
    if (!merchant) throw new Error("a merchant operation has no merchant");
    return merchant;
  },
  account: () => undefined,
};

/** The value of what a spec leaves out. Its type is inferred as unknown or undefined then. */
const omitted = <T>(): T => undefined as T;

/** Returns an operation with the given schemas and handler. */
export function defineOperation<
  A extends Access,
  P extends z.ZodType,
  Q extends z.ZodType,
  B extends z.ZodType,
  R = undefined,
>(spec: Spec<A, P, Q, B, R>): Operation {
  const { access, params, query, body, response, paramsCode = "payment_not_found", refusals = [], ...rest } = spec;
  const { paramsMessage = notFound[paramsCode], prepare, handle, needsKey, ...description } = rest;
  const { merchantNarrows = false } = description;
  const code = invalidInputCode[access];
  const asked = query ?? noQuery[access];
  const parse = <S extends z.ZodType>(schema: S | undefined, input: unknown, whole: string): Result<z.output<S>> =>
    schema ? parseInput(schema, input, { whole, code }) : done(omitted<z.output<S>>());
  return {
    ...description,
    access,
    refusals,
    schemas: { ...(params && { params }), ...(asked && { query: asked }), ...(body && { body }), response },
    read(raw) {
      const path = parse(params, raw.params, "path");
      if (!path.ok) return refuse(paramsCode, paramsMessage ?? path.message);
      const given =
        merchantNarrows && raw.merchantHeader ? { merchantId: raw.merchantHeader, ...Object(raw.query) } : raw.query;
      const search = parse(asked as Q | undefined, given, "query");
      if (!search.ok) return search;
      const sent = parse(body, raw.body, "body");
      if (!sent.ok) return sent;
      const merchant = merchantOf[access](raw.merchant);
      const unknownMembers = listUnknownMembers(body, raw.body);
      const call = { ...raw, merchant, params: path.value, query: search.value, body: sent.value, unknownMembers };
      return done({
        caller: raw.caller,
        merchantId: merchant?.merchantId ?? merchantPath.safeParse(raw.params).data?.merchantId,
        needsKey: needsKey?.(call) ?? false,
        async prepare(deps) {
          const prepared = prepare ? await prepare(deps, call) : done(omitted<R>());
          if (!prepared.ok) return prepared;
          return done((workDeps: ApiDeps, claim?: KeyClaim) =>
            handle(workDeps, { ...call, prepared: prepared.value, claim }),
          );
        },
      });
    },
  };
}
