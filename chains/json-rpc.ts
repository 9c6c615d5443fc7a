import { Agent, request } from "undici";
import { z } from "zod";
import { cleanText } from "../runtime/clean-text.ts";
import { ChainError } from "./errors.ts";
import { readRetryAfter } from "./rate-limit-wait.ts";

/** A JSON-RPC call to one endpoint. Returns the result; the caller checks its shape. Throws ChainError. */
export type Call = (method: string, params: readonly unknown[]) => Promise<unknown>;

/** Maximum number of concurrent calls to one endpoint. */
const CONNECTIONS = 64;

const Answer = z.object({
  result: z.unknown().optional(),
  error: z.object({ code: z.number(), message: z.string() }).nullish(),
});

/**
 * Creates a plain client for the few calls that every payment makes. web3.js validates and copies every response, which
 * costs more than the call itself. The client does not retry. It throws ChainError `rpc_unreachable`, with the wait that a
 * rate limit asks for, or `rpc_answer` with the endpoint's error code.
 */
export function createCall(url: string, timeoutMs: number): Call {
  const dispatcher = new Agent({ connections: CONNECTIONS, headersTimeout: timeoutMs, bodyTimeout: timeoutMs });
  let id = 0;
  return async (method, params) => {
    id += 1;
    const body = JSON.stringify({ jsonrpc: "2.0", id, method, params });
    const text = await post(url, { body, dispatcher, signal: AbortSignal.timeout(timeoutMs) });
    const { result, error } = Answer.parse(JSON.parse(text));
    if (error) throw new ChainError("rpc_answer", { detail: `${error.code} ${cleanText(error.message, 200)}` });
    return result;
  };
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
    if (statusCode !== 200) throw new Error(`HTTP ${statusCode}`);
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
