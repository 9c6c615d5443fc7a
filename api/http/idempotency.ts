import type { Pool } from "../../db/tables.ts";
import { done, type Result, refuse } from "../../payments/error-codes.ts";
import {
  digestRequest,
  findStoredResponse,
  type IdempotentRequest,
  runIdempotent,
} from "../../payments/idempotency-keys.ts";
import type { Enqueue } from "../../queues/enqueue.ts";
import type { ApiDeps } from "../api-deps.ts";
import type { Operation, ParsedCall } from "../contract/operation.ts";

/** The input of a request before parsing. */
type Input = { params: unknown; query: unknown; body: unknown };
/** A successful response: newly written, or replayed from an earlier request. */
export type OperationResponse = { status: number; text: string; replayed: boolean };

/**
 * Runs an operation, once per `Idempotency-Key` if it takes one. `input` is the input before parsing: two requests with the
 * same key must have the same input.
 */
export function runOperation(
  deps: ApiDeps,
  operation: Operation,
  call: ParsedCall,
  repeatable: { key: string | undefined; input: Input },
): Promise<Result<OperationResponse>> {
  const mayRepeat = operation.idempotency === "optional" && !call.needsKey;
  return !operation.idempotency || (repeatable.key === undefined && mayRepeat)
    ? runOnce(deps, operation, call)
    : runWithKey(deps, operation, call, repeatable);
}

async function runWithKey(
  deps: ApiDeps,
  operation: Operation,
  call: ParsedCall,
  { key, input }: { key: string | undefined; input: Input },
): Promise<Result<OperationResponse>> {
  if (key === undefined) return refuse("params_validation", "Idempotency-Key: the header is missing");
  if (!/^[ -~]{1,255}$/.test(key))
    return refuse("params_validation", "Idempotency-Key: expected 1 to 255 printable ASCII characters");
  const { caller, merchantId } = call;
  // The operation's queries refuse the merchant. A stored response of that merchant must not be replayed either.
  if (merchantId !== undefined && caller.onlyMerchants?.includes(merchantId) === false)
    return runOnce(deps, operation, call);
  const digest = digestRequest([merchantId ?? null, input.params, input.query, input.body ?? null]);
  const request: IdempotentRequest = { caller, merchantId, operation: operation.name, key, digest };
  if (operation.claimsKey) return runClaiming(deps, operation, call, request);
  const stored = await findStoredResponse(deps, request);
  if (stored) return stored;
  const work = await call.prepare(deps);
  // A concurrent request with the same key may have succeeded meanwhile.
  if (!work.ok) return (await findStoredResponse(deps, request)) ?? work;
  // Jobs are enqueued after the commit: a job must not run before its row exists, and a hanging Redis must not hold the
  // transaction open.
  const enqueues: (() => Promise<void>)[] = [];
  const enqueue: Enqueue = async (...job) => void enqueues.push(() => deps.enqueue(...job));
  const response = await runIdempotent(deps, request, async (db) => {
    const result = requireResult(await work.value({ ...deps, db: db as Pool, enqueue }));
    return result.ok ? done({ status: operation.success, body: result.value }) : result;
  });
  if (response.ok) for (const enqueue of enqueues) await enqueue();
  return response;
}

/**
 * Runs an operation without an idempotency key. Returns the promise of its work instead of waiting for it, because a held request
 * keeps what a waiting function has in memory.
 */
async function runOnce(deps: ApiDeps, operation: Operation, call: ParsedCall): Promise<Result<OperationResponse>> {
  const work = await call.prepare(deps);
  return work.ok ? work.value(deps).then((result) => toResponse(operation, requireResult(result))) : work;
}

/** Runs an operation whose own statement stores its key and response. */
async function runClaiming(
  deps: ApiDeps,
  operation: Operation,
  call: ParsedCall,
  request: IdempotentRequest,
): Promise<Result<OperationResponse>> {
  const work = await call.prepare(deps);
  const { key, digest } = request;
  const claim = { operation: operation.name, key, digest, status: operation.success };
  const result = work.ok ? await work.value(deps, claim) : work;
  if (result?.ok) return toResponse(operation, result);
  // The key is taken, or the request is one that can be refused only because it has been carried out.
  const stored = await findStoredResponse(deps, request);
  if (stored) return stored;
  // A key that was taken and has no response was past its retention, and was deleted since: it is free.
  return result ? toResponse(operation, result) : runClaiming(deps, operation, call, request);
}

function toResponse(operation: Operation, result: Result<object>): Result<OperationResponse> {
  return result.ok ? done({ status: operation.success, text: JSON.stringify(result.value), replayed: false }) : result;
}

function requireResult(result: Result<object> | undefined): Result<object> {
  if (!result) throw new Error("an idempotency key is neither free nor taken");
  return result;
}
