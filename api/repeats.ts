import type { Pool } from "../db/tables.ts";
import { done, type Result, refuse } from "../payments/errors.ts";
import { digestRequest, findAnswer, type Request, runOnce } from "../payments/idempotency.ts";
import type { Ring } from "../queues/ring.ts";
import type { ApiDeps } from "./deps.ts";
import type { Operation, ParsedCall } from "./operation.ts";

/** An answer that went well: a body still to be written, or a text that was written before. */
export type Answered = { status: number; text: string; replayed: boolean };

/**
 * Runs an operation, once per `Idempotency-Key` where it takes one. `asked` is what was sent, before it was parsed: what
 * makes two requests the same.
 */
export async function runOperation(
  deps: ApiDeps,
  operation: Operation,
  call: ParsedCall,
  { key, asked }: { key: string | undefined; asked: { params: unknown; query: unknown; body: unknown } },
): Promise<Result<Answered>> {
  const mayRepeat = operation.idempotency === "optional" && !operation.needsKey?.(call);
  if (!operation.idempotency || (key === undefined && mayRepeat)) {
    const prepared = await operation.prepare?.(deps, call);
    if (prepared?.ok === false) return prepared;
    const result = await operation.handle(deps, { ...call, prepared: prepared?.value });
    return result.ok
      ? done({ status: operation.success, text: JSON.stringify(result.value), replayed: false })
      : result;
  }
  if (key === undefined) return refuse("params_validation", "Idempotency-Key: the header is missing");
  if (!/^[!-~]{1,255}$/.test(key))
    return refuse("params_validation", "Idempotency-Key: expected 1 to 255 printable ASCII characters");
  const request: Request = {
    caller: call.caller,
    operation: operation.name,
    key,
    digest: digestRequest([call.merchant?.merchantId ?? null, asked.params, asked.query, asked.body ?? null]),
  };
  const before = await findAnswer(deps, request);
  if (before) return before;
  const prepared = await operation.prepare?.(deps, call);
  // What was refused here may have gone well for a twin meanwhile.
  if (prepared?.ok === false) return (await findAnswer(deps, request)) ?? prepared;
  // Bells are kept back: a job must not come before its row, and a Redis that hangs must not hold the transaction.
  const rings: (() => Promise<void>)[] = [];
  const ring: Ring = async (...bell) => void rings.push(() => deps.ring(...bell));
  const answer = await runOnce(deps, request, async (db) => {
    const result = await operation.handle({ ...deps, db: db as Pool, ring }, { ...call, prepared: prepared?.value });
    return result.ok ? done({ status: operation.success, body: result.value }) : result;
  });
  if (answer.ok) for (const rung of rings) await rung();
  return answer;
}
