import { z } from "zod";
import { ChainError } from "./errors.ts";
import { Answer, type Call, type CallOutcome, RefusedStatus, readAnswer, type Send } from "./json-rpc.ts";

/**
 * Makes several calls of one method with one request, and returns their outcomes in order. The calls must be safe to repeat:
 * when the endpoint refuses the batch, they are made one by one. Throws ChainError when every call fails.
 */
export type CallMany = (method: string, all: readonly (readonly unknown[])[]) => Promise<CallOutcome[]>;

/** How long an endpoint that has refused a batch gets single calls, milliseconds. */
const REFUSED_MS = 10 * 60_000;

const Answers = z.array(Answer.extend({ id: z.number() }));

/** Creates the function that makes several calls to an endpoint with one request. */
export function createCallMany({ call, send }: { call: Call; send: Send }): CallMany {
  let refusedUntil = 0;
  return async (method, all) => {
    const isBatch = all.length > 1 && performance.now() >= refusedUntil;
    const together = isBatch ? await callTogether(send, method, all) : undefined;
    if (together) return together;
    const outcomes = await Promise.all(all.map((params) => callOne(call, method, params)));
    const errors = outcomes.flatMap((one) => ("error" in one ? one.error : []));
    const answered = errors.find(({ code }) => code !== "rpc_unreachable");
    if (errors[0] && errors.length === all.length) throw answered ?? errors[0];
    if (isBatch) refusedUntil = performance.now() + REFUSED_MS;
    return outcomes;
  };
}

/** Returns undefined when the endpoint refuses the batch. Some endpoints do so by an error for each of its calls. */
async function callTogether(send: Send, ...[method, all]: Parameters<CallMany>): Promise<CallOutcome[] | undefined> {
  const answers = await send(all.map((params, id) => ({ jsonrpc: "2.0", id, method, params }))).catch(ignoreRefusal);
  const byId = new Map(Answers.safeParse(answers).data?.map((answer) => [answer.id, readAnswer(answer)]));
  const outcomes = all.flatMap((_params, id) => byId.get(id) ?? []);
  return outcomes.length === all.length && outcomes.some((one) => "result" in one) ? outcomes : undefined;
}

/** Returns undefined for an answer that is not 200 or not JSON. Throws an error that says nothing about batches. */
function ignoreRefusal(error: unknown): undefined {
  if (error instanceof ChainError && !(error.cause instanceof RefusedStatus)) throw error;
}

async function callOne(call: Call, method: string, params: readonly unknown[]): Promise<CallOutcome> {
  try {
    return { result: await call(method, params) };
  } catch (cause) {
    return { error: cause instanceof ChainError ? cause : new ChainError("rpc_answer", { cause }) };
  }
}
