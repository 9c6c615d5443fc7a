import type { z } from "zod";
import type { Caller } from "../payments/accounts.ts";
import { done, type ErrorCode, type Result, refuse } from "../payments/errors.ts";
import type { Requester } from "../payments/requester.ts";
import type { Access, Authenticated, Merchant } from "./auth.ts";
import type { ApiDeps } from "./deps.ts";
import { parseInput } from "./parse.ts";
import type { Hold } from "./polls.ts";

/** What an operation is given: parsed, and from somebody who may. */
export type Call<A extends Access, P, Q, B, R = undefined> = {
  caller: Caller;
  /** Whose payments a merchant's call is about; undefined where no `Merchant-Id` is wanted. */
  merchant: A extends "merchant" ? Merchant : undefined;
  requester: Requester;
  params: P;
  query: Q;
  body: B;
  /** What `prepare` gave. */
  prepared: R;
  hold: Hold;
};

export type Raw = Authenticated & { params: unknown; query: unknown; body: unknown; hold: Hold };

/** One line of the contract as data, for routing and for its description. */
export type Operation = {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** As fastify writes it: `/v1/payments/:id/status`. */
  path: `/v1/${string}`;
  /** Its name in the description (`operationId`); one per operation. */
  name: string;
  /** What it does, for people: one sentence. */
  summary: string;
  access: Access;
  /** HTTP status when it went well. */
  success: 200 | 201;
  /** Whether `Idempotency-Key` is read, and whether it must be there. */
  idempotency?: "required" | "optional" | undefined;
  /** Which calls of an operation whose key is optional need one all the same: those that a repeat would do twice. */
  needsKey?(call: ParsedCall): boolean;
  schemas: { params?: z.ZodType; query?: z.ZodType; body?: z.ZodType; answer: z.ZodType };
  /** Codes it may refuse with beyond those of authentication and unfit input. */
  refusals: readonly ErrorCode[];
  /** Parses all input before anything sees any. */
  read(raw: Raw): Result<ParsedCall>;
  /** What has to be asked of others first, outside of any transaction. */
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
  /** A path that does not fit names nothing that is there: refused with this code, `payment_not_found` when unset. */
  params?: P;
  paramsCode?: ErrorCode;
  query?: Q;
  body?: B;
  answer: z.ZodType;
  refusals?: readonly ErrorCode[];
  prepare?(deps: ApiDeps, call: Call<A, z.output<P>, z.output<Q>, z.output<B>>): Promise<Result<R>>;
  /** With an `Idempotency-Key`, `deps.db` is the transaction that keeps the answer too. */
  handle(deps: ApiDeps, call: Call<A, z.output<P>, z.output<Q>, z.output<B>, R>): Promise<Result<object>>;
};

/** The code for input that does not fit: each family of clients knows its own. */
export const unfit = {
  gateway: "invalid_params",
  merchant: "params_validation",
  account: "params_validation",
} as const;

const notFound: Partial<Record<ErrorCode, string>> = {
  payment_not_found: "no such payment",
  merchant_not_found: "no such merchant",
};

/** Makes an operation of its schemas and its handler. */
export function defineOperation<
  A extends Access,
  P extends z.ZodType,
  Q extends z.ZodType,
  B extends z.ZodType,
  R = undefined,
>(spec: Spec<A, P, Q, B, R>): Operation {
  const { params, query, body, answer, paramsCode = "payment_not_found", refusals = [], ...rest } = spec;
  const code = unfit[spec.access];
  return {
    ...(rest as Omit<typeof rest, "prepare" | "handle" | "needsKey">),
    refusals,
    schemas: { ...(params && { params }), ...(query && { query }), ...(body && { body }), answer },
    read(raw) {
      const where = params && parseInput(params, raw.params, { whole: "path", code });
      if (where?.ok === false) return refuse(paramsCode, notFound[paramsCode] ?? where.message);
      const asked = query && parseInput(query, raw.query, { whole: "query", code });
      if (asked?.ok === false) return asked;
      const sent = body && parseInput(body, raw.body, { whole: "body", code });
      if (sent?.ok === false) return sent;
      return done({
        ...raw,
        params: where?.value,
        query: asked?.value,
        body: sent?.value,
        prepared: undefined,
      } as ParsedCall);
    },
    ...(rest.prepare && { prepare: rest.prepare as unknown as NonNullable<Operation["prepare"]> }),
    ...(rest.needsKey && { needsKey: rest.needsKey as NonNullable<Operation["needsKey"]> }),
    handle: rest.handle as unknown as Operation["handle"],
  };
}
