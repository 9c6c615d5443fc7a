import type { z } from "zod";
import type { Caller } from "../payments/accounts.ts";
import { done, type ErrorCode, type Result, refuse } from "../payments/errors.ts";
import type { Requester } from "../payments/requester.ts";
import type { Access, Authenticated, Merchant } from "./auth.ts";
import type { ApiDeps } from "./deps.ts";
import { parseInput } from "./parse.ts";
import type { Hold } from "./polls.ts";

/** The arguments of an operation: parsed input from an authenticated and authorised caller. */
export type Call<A extends Access, P, Q, B, R = undefined> = {
  caller: Caller;
  /** The merchant of the call; undefined where the operation takes no `Merchant-Id`. */
  merchant: A extends "merchant" ? Merchant : undefined;
  requester: Requester;
  params: P;
  query: Q;
  body: B;
  /** The result of `prepare`. */
  prepared: R;
  hold: Hold;
};

type RawCall = Authenticated & { params: unknown; query: unknown; body: unknown; hold: Hold };

/** One operation of the contract as data, for routing and for its description. */
export type Operation = {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** In fastify's notation: `/v1/payments/:id/status`. */
  path: `/v1/${string}`;
  /** The unique `operationId` in the OpenAPI document. */
  name: string;
  /** One sentence for people: what the operation does. */
  summary: string;
  access: Access;
  /** HTTP status of success. */
  success: 200 | 201;
  /** Whether the operation reads `Idempotency-Key`, and whether it requires it. */
  idempotency?: "required" | "optional" | undefined;
  /** Returns true for a call that requires a key although the operation's key is optional: one whose repetition would act twice. */
  needsKey?(call: ParsedCall): boolean;
  schemas: { params?: z.ZodType; query?: z.ZodType; body?: z.ZodType; response: z.ZodType };
  /** Error codes besides those of authentication and invalid input. */
  refusals: readonly ErrorCode[];
  /** Parses the whole input before any other step runs. */
  read(raw: RawCall): Result<ParsedCall>;
  /** Requests that go to other servers first, outside of any transaction. */
  prepare?(deps: ApiDeps, call: ParsedCall): Promise<Result<unknown>>;
  handle(deps: ApiDeps, call: ParsedCall): Promise<Result<object>>;
};

export type ParsedCall = Call<Access, unknown, unknown, unknown, unknown>;

type Spec<A extends Access, P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType, R> = {
  method: Operation["method"];
  path: Operation["path"];
  name: string;
  summary: string;
  access: A;
  success: Operation["success"];
  idempotency?: Operation["idempotency"];
  needsKey?(call: Pick<Call<A, z.output<P>, z.output<Q>, z.output<B>>, "body">): boolean;
  params?: P;
  /** Error code for a path that does not match `params`, which names nothing that exists; default `payment_not_found`. */
  paramsCode?: ErrorCode;
  query?: Q;
  body?: B;
  response: z.ZodType;
  refusals?: readonly ErrorCode[];
  prepare?(deps: ApiDeps, call: Call<A, z.output<P>, z.output<Q>, z.output<B>>): Promise<Result<R>>;
  /** With an `Idempotency-Key`, `deps.db` is the transaction that stores the response too. */
  handle(deps: ApiDeps, call: Call<A, z.output<P>, z.output<Q>, z.output<B>, R>): Promise<Result<object>>;
};

/** Error code of invalid input: gateway clients and merchant clients expect different ones. */
export const invalidInputCode = {
  gateway: "invalid_params",
  merchant: "params_validation",
  account: "params_validation",
} as const;

const notFound: Partial<Record<ErrorCode, string>> = {
  payment_not_found: "no such payment",
  merchant_not_found: "no such merchant",
};

/** Returns an operation with the given schemas and handler. */
export function defineOperation<
  A extends Access,
  P extends z.ZodType,
  Q extends z.ZodType,
  B extends z.ZodType,
  R = undefined,
>(spec: Spec<A, P, Q, B, R>): Operation {
  const { params, query, body, response, paramsCode = "payment_not_found", refusals = [], ...rest } = spec;
  const code = invalidInputCode[spec.access];
  return {
    ...(rest as Omit<typeof rest, "prepare" | "handle" | "needsKey">),
    refusals,
    schemas: { ...(params && { params }), ...(query && { query }), ...(body && { body }), response },
    read(raw) {
      const path = params && parseInput(params, raw.params, { whole: "path", code });
      if (path?.ok === false) return refuse(paramsCode, notFound[paramsCode] ?? path.message);
      const search = query && parseInput(query, raw.query, { whole: "query", code });
      if (search?.ok === false) return search;
      const sent = body && parseInput(body, raw.body, { whole: "body", code });
      if (sent?.ok === false) return sent;
      return done({
        ...raw,
        params: path?.value,
        query: search?.value,
        body: sent?.value,
        prepared: undefined,
      } as ParsedCall);
    },
    ...(rest.prepare && { prepare: rest.prepare as unknown as NonNullable<Operation["prepare"]> }),
    ...(rest.needsKey && { needsKey: rest.needsKey as NonNullable<Operation["needsKey"]> }),
    handle: rest.handle as unknown as Operation["handle"],
  };
}
