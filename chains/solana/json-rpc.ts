import { Agent, request } from "undici";
import { z } from "zod";
import { cleanText } from "../../ops/clean-text.ts";
import { ChainFault } from "../faults.ts";

/** One JSON-RPC call to one endpoint; gives its result, whose shape the caller checks. Throws ChainFault. */
export type Call = (method: string, params: readonly unknown[]) => Promise<unknown>;

/** Calls side by side to one endpoint. */
const CONNECTIONS = 64;

const Answer = z.object({
  result: z.unknown(),
  error: z.object({ code: z.number(), message: z.string() }).optional(),
});

/**
 * For the few calls that every payment takes: the library checks and copies whatever it reads, which costs more than the
 * call itself. Nothing is repeated here. Throws ChainFault `rpc_unreachable`, or `rpc_answer` with the endpoint's code.
 */
export function createCall(url: string, timeoutMs: number): Call {
  const dispatcher = new Agent({ connections: CONNECTIONS, headersTimeout: timeoutMs, bodyTimeout: timeoutMs });
  let id = 0;
  return async (method, params) => {
    id += 1;
    const body = JSON.stringify({ jsonrpc: "2.0", id, method, params });
    const text = await post(url, { body, dispatcher, signal: AbortSignal.timeout(timeoutMs) });
    const { result, error } = Answer.parse(JSON.parse(text));
    if (error) throw new ChainFault("rpc_answer", { detail: `${error.code} ${cleanText(error.message, 200)}` });
    return result;
  };
}

type Post = { body: string; dispatcher: Agent; signal: AbortSignal };

/** An error in JSON-RPC's own form comes with 200; anything else is as good as no answer. */
async function post(url: string, options: Post): Promise<string> {
  try {
    const { statusCode, body } = await request(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      ...options,
    });
    const text = await body.text();
    if (statusCode !== 200) throw new Error(`HTTP ${statusCode}`);
    return text;
  } catch (cause) {
    throw new ChainFault("rpc_unreachable", { cause });
  }
}
