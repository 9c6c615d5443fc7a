import { Agent, request } from "undici";
import { z } from "zod";
import { cleanText } from "../runtime/clean-text.ts";
import { ChainError } from "./errors.ts";
import { readRetryAfter } from "./rate-limit-wait.ts";

/** A JSON-RPC call to one endpoint. Returns the result; the caller checks its shape. Throws ChainError. */
export type Call = (method: string, params: readonly unknown[]) => Promise<unknown>;

/** Posts the body of a JSON-RPC request, and returns that of the response. Throws ChainError, or SyntaxError for one that is not JSON. */
export type Send = (body: unknown) => Promise<unknown>;

/** The outcome of a call that an endpoint has answered or not. */
export type CallOutcome = { result: unknown } | { error: ChainError };

/** Maximum number of concurrent calls to one endpoint. */
const CONNECTIONS = 64;

/** The answer to a call. */
export const Answer = z.object({
  result: z.unknown().optional(),
  error: z.object({ code: z.number(), message: z.string() }).nullish(),
});

/**
 * Creates a plain client for the few calls that every payment makes. web3.js validates and copies every response, which
 * costs more than the call itself. The client does not retry. It throws ChainError `rpc_unreachable`, with the wait that a
 * rate limit asks for, or `rpc_answer` with the endpoint's error code.
 */
export function createCall(url: string, timeoutMs: number): { call: Call; send: Send } {
  const dispatcher = new Agent({ connections: CONNECTIONS, headersTimeout: timeoutMs, bodyTimeout: timeoutMs });
  const send: Send = async (body) => {
    const signal = AbortSignal.timeout(timeoutMs);
    return JSON.parse(await post(url, { body: JSON.stringify(body), dispatcher, signal }));
  };
  let id = 0;
  const call: Call = async (method, params) => {
    id += 1;
    const outcome = readAnswer(Answer.parse(await send({ jsonrpc: "2.0", id, method, params })));
    if ("error" in outcome) throw outcome.error;
    return outcome.result;
  };
  return { call, send };
}

/** Returns the result of a call, or the endpoint's error, whose `cause` has its code. */
export function readAnswer({ result, error }: z.infer<typeof Answer>): CallOutcome {
  if (!error) return { result };
  const { code, message } = error;
  return { error: new ChainError("rpc_answer", { cause: { code }, detail: `${code} ${cleanText(message, 200)}` }) };
}

/** The cause of `rpc_unreachable` for an answer with a status other than 200. */
export class RefusedStatus extends Error {
  readonly status: number;

  constructor(status: number) {
    super(`HTTP ${status}`);
    this.status = status;
  }
}

type Post = { body: string; dispatcher: Agent; signal: AbortSignal };

/** Sends a request. JSON-RPC errors have status 200; any other status counts as no answer. */
async function post(url: string, options: Post): Promise<string> {
  try {
    const { statusCode, headers, body } = await request(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      ...options,
    });
    const text = await body.text();
    if (statusCode === 429) throw rateLimited(headers["retry-after"]);
    if (statusCode !== 200) throw new RefusedStatus(statusCode);
    return text;
  } catch (cause) {
    if (cause instanceof ChainError) throw cause;
    throw new ChainError("rpc_unreachable", { cause });
  }
}

/** Returns the error of an endpoint that has answered 429, by its header Retry-After. */
export function rateLimited(header: string | string[] | null | undefined): ChainError {
  const waitMs = readRetryAfter(Array.isArray(header) ? header[0] : header);
  return new ChainError("rpc_unreachable", { detail: "the endpoint limits the rate of calls", waitMs });
}
