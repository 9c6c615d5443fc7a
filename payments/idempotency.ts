import { createHash } from "node:crypto";
import type { Db } from "../db/tables.ts";
import type { Caller } from "./accounts.ts";
import type { PaymentDeps } from "./deps.ts";
import { type Refusal, type Result, refuse } from "./errors.ts";

/** How long an answer is kept at least, milliseconds (design, part 9). */
export const KEPT_MS = 24 * 60 * 60_000;

/** One request that may be repeated: who asks for what under which key, and a digest of all that was sent. */
export type Request = { caller: Pick<Caller, "accountId" | "mode">; operation: string; key: string; digest: Buffer };
/** An answer as it went out: the same text for every repeat. */
export type Answer = { status: number; text: string; replayed: boolean };

type Deps = Pick<PaymentDeps, "db" | "now">;

/**
 * SHA-256 over everything that makes a request what it is; the order of an object's members does not matter. Without
 * recursion, because a body of 64 KiB can be nested deeper than the stack.
 */
export function digestRequest(parts: readonly unknown[]): Buffer {
  const hash = createHash("sha256");
  const left: unknown[] = [parts];
  while (left.length > 0) {
    const value = left.pop();
    if (typeof value !== "object" || value === null) hash.update(`${JSON.stringify(value)},`);
    else {
      const inside = Array.isArray(value) ? value : Object.entries(value).sort(byName).flat();
      hash.update(`${Array.isArray(value) ? "[" : "{"}${inside.length},`);
      for (const one of inside) left.push(one);
    }
  }
  return hash.digest();
}

const byName = ([a]: [string, unknown], [b]: [string, unknown]) => (a < b ? -1 : 1);

/** The kept answer of this request; undefined when it was not done yet. Refuses another request under the same key. */
export async function findAnswer(deps: Deps, request: Request): Promise<Result<Answer> | undefined> {
  const kept = await deps.db
    .selectFrom("idempotency")
    .select(["digest", "status", "answer"])
    .where("account_id", "=", request.caller.accountId)
    .where("mode", "=", request.caller.mode)
    .where("operation", "=", request.operation)
    .where("key", "=", request.key)
    .executeTakeFirst();
  if (!kept) return undefined;
  if (!kept.digest.equals(request.digest))
    return refuse("idempotency_conflict", "Idempotency-Key: was used for another request");
  if (kept.status === null || kept.answer === null) throw new Error("an answer was committed before it was there");
  return { ok: true, value: { status: kept.status, text: kept.answer, replayed: true } };
}

/**
 * Does the work once per key. The claim of the key, the work and its answer commit together, so a crash leaves all of
 * it or nothing; a second request under the key waits for the first one and gets its answer. What was refused is not
 * kept: the caller may mend it and use the key again.
 */
export async function runOnce(
  deps: Deps,
  request: Request,
  work: (db: Db) => Promise<Result<{ status: number; body: object }>>,
): Promise<Result<Answer>> {
  const { operation, key, digest } = request;
  const { accountId: account_id, mode } = request.caller;
  try {
    const answer = await deps.db.transaction().execute(async (db): Promise<Answer | undefined> => {
      // Waits here while another one holds the key.
      const claimed = await db
        .insertInto("idempotency")
        .values({ account_id, mode, operation, key, digest, created_at: deps.now() })
        .onConflict((conflict) => conflict.doNothing())
        .executeTakeFirst();
      if (claimed.numInsertedOrUpdatedRows === 0n) return undefined;
      const result = await work(db);
      if (!result.ok) throw new Refused(result);
      const { status, body } = result.value;
      const text = JSON.stringify(body);
      await db
        .updateTable("idempotency")
        .set({ status, answer: text })
        .where("account_id", "=", account_id)
        .where("mode", "=", mode)
        .where("operation", "=", operation)
        .where("key", "=", key)
        .execute();
      return { status, text, replayed: false };
    });
    if (answer) return { ok: true, value: answer };
  } catch (error) {
    if (error instanceof Refused) return error.refusal;
    throw error;
  }
  const kept = await findAnswer(deps, request);
  if (!kept) throw new Error("an idempotency key was neither free nor taken");
  return kept;
}

/** Rolls the transaction back; never leaves this file. */
class Refused extends Error {
  readonly refusal: Refusal;
  constructor(refusal: Refusal) {
    super("refused");
    this.refusal = refusal;
  }
}

/** Forgets answers that have been kept long enough, at most `limit`; gives how many. */
export async function forgetAnswers(deps: Deps, limit: number): Promise<number> {
  const before = new Date(deps.now().getTime() - KEPT_MS);
  const { numDeletedRows } = await deps.db
    .deleteFrom("idempotency")
    .where(({ eb, refTuple }) =>
      eb(
        refTuple("account_id", "mode", "operation", "key"),
        "in",
        eb
          .selectFrom("idempotency")
          .select(["account_id", "mode", "operation", "key"])
          .where("created_at", "<", before)
          .limit(limit)
          .$asTuple("account_id", "mode", "operation", "key"),
      ),
    )
    .executeTakeFirst();
  return Number(numDeletedRows);
}
