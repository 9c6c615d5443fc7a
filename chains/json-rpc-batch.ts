import { z } from "zod";
import { ChainError } from "./errors.ts";
import { Answer, type CallOutcome, RefusedStatus, readAnswer, type Send } from "./json-rpc.ts";

/**
 * Makes several calls of one method with one request, and returns their outcomes in order. Throws ChainError: `rpc_answer` with
 * the cause `BatchRefused` for an endpoint that refuses batches, and `rpc_unreachable`. After either, some calls may have
 * been made.
 */
export type CallMany = (method: string, all: readonly (readonly unknown[])[]) => Promise<CallOutcome[]>;

/** The cause of the error of an endpoint that refuses to answer several calls with one request. */
export class BatchRefused extends Error {}

/** The statuses that refuse the body of a request. Any other status also comes from an endpoint that is down. */
const REFUSING = new Set([400, 404, 405, 413, 415, 422]);
/** How long an endpoint gets single calls after it has refused a batch, milliseconds. */
const REFUSED_MS = 10 * 60_000;
/** The same after a batch that it did not answer: some endpoints refuse batches in that way, and most are down. */
const UNANSWERED_MS = 60_000;

const Answers = z.array(Answer.extend({ id: z.number() }));

/** Creates the function that makes several calls to an endpoint with one request. */
export function createCallMany(send: Send): CallMany {
  return async (method, all) => {
    const frames = all.map((params, id) => ({ jsonrpc: "2.0", id, method, params }));
    const answers = await send(frames).catch(ignoreRefusal);
    const byId = new Map(Answers.safeParse(answers).data?.map((answer) => [answer.id, readAnswer(answer)]));
    const outcomes = all.flatMap((_params, id) => byId.get(id) ?? []);
    // Some endpoints refuse a batch by an error for each of its calls.
    if (outcomes.length === all.length && outcomes.some((one) => "result" in one)) return outcomes;
    throw new ChainError("rpc_answer", { cause: new BatchRefused(), detail: "the endpoint refuses batches" });
  };
}

/** Returns how long an endpoint gets single calls after the error of a batch, milliseconds. */
export function batchPauseMs(error: unknown): number {
  if (!(error instanceof ChainError)) return 0;
  if (error.cause instanceof BatchRefused) return REFUSED_MS;
  // A rate limit says nothing about batches.
  return error.code === "rpc_unreachable" && error.waitMs === undefined ? UNANSWERED_MS : 0;
}

/** Returns undefined for a status that refuses the body, and for an answer that is not JSON. Throws any other error. */
function ignoreRefusal(error: unknown): undefined {
  if (!(error instanceof ChainError)) return;
  if (!(error.cause instanceof RefusedStatus && REFUSING.has(error.cause.status))) throw error;
}
