import type { z } from "zod";
import type { Caller } from "../payments/accounts.ts";
import { type Result, refuse } from "../payments/errors.ts";
import type { Access, Authenticated, Merchant } from "./auth.ts";
import type { ApiDeps } from "./deps.ts";
import { parseInput } from "./parse.ts";
import type { Hold } from "./polls.ts";

/** What an operation is given: parsed, and from somebody who may. */
export type Call<A extends Access, P, Q, B> = {
  caller: Caller;
  /** Whose payments a merchant's call is about; undefined on the gateway, which is scoped by mode alone. */
  merchant: A extends "merchant" ? Merchant : undefined;
  params: P;
  query: Q;
  body: B;
  hold: Hold;
};

export type Raw = Authenticated & { params: unknown; query: unknown; body: unknown; hold: Hold };

/** One line of the contract as data, for routing (and for its description). */
export type Operation = {
  method: "GET" | "POST";
  /** As fastify writes it: `/v1/payments/:id/status`. */
  path: `/v1/${string}`;
  access: Access;
  /** HTTP status when it went well. */
  success: 200 | 201;
  schemas: { params?: z.ZodType; query?: z.ZodType; body?: z.ZodType };
  run(deps: ApiDeps, raw: Raw): Promise<Result<object>>;
};

type Spec<A extends Access, P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType> = {
  method: Operation["method"];
  path: Operation["path"];
  access: A;
  success: Operation["success"];
  /** A path that does not fit names no payment. */
  params?: P;
  query?: Q;
  body?: B;
  handle(deps: ApiDeps, call: Call<A, z.output<P>, z.output<Q>, z.output<B>>): Promise<Result<object>>;
};

/** The code for input that does not fit: each family of clients knows its own. */
const unfit = { gateway: "invalid_params", merchant: "params_validation" } as const;

/** Makes an operation of its schemas and its handler: parses all input before the handler sees any. */
export function defineOperation<A extends Access, P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType>(
  spec: Spec<A, P, Q, B>,
): Operation {
  const { method, path, access, success, params, query, body, handle } = spec;
  const code = unfit[access];
  return {
    method,
    path,
    access,
    success,
    schemas: { ...(params && { params }), ...(query && { query }), ...(body && { body }) },
    async run(deps, raw) {
      const where = params && parseInput(params, raw.params, { whole: "path", code });
      if (where?.ok === false) return refuse("payment_not_found", "no such payment");
      const asked = query && parseInput(query, raw.query, { whole: "query", code });
      if (asked?.ok === false) return asked;
      const sent = body && parseInput(body, raw.body, { whole: "body", code });
      if (sent?.ok === false) return sent;
      return handle(deps, {
        ...raw,
        merchant: raw.merchant as A extends "merchant" ? Merchant : undefined,
        params: where?.value as z.output<P>,
        query: asked?.value as z.output<Q>,
        body: sent?.value as z.output<B>,
      });
    },
  };
}
