import { createHash } from "node:crypto";
import { commitIfOk } from "../db/in-transaction.ts";
import {
  claimKey,
  deleteOldKeys,
  findResponse,
  type IdempotencyKey,
  recordResponse,
} from "../db/queries/idempotency-keys.ts";
import type { ClaimedKey } from "../db/queries/payments.ts";
import type { Db } from "../db/tables.ts";
import { done, type Result, refuse } from "./error-codes.ts";
import type { Caller } from "./merchants/callers.ts";
import type { PaymentDeps } from "./payment-deps.ts";

/** Minimum retention of a response, milliseconds (design, part 9). */
const RESPONSE_RETENTION_MS = 24 * 60 * 60_000;

/**
 * A request with an idempotency key: its caller, the merchant that it names, its operation and key, and a digest of
 * everything that was sent.
 */
export type IdempotentRequest = {
  caller: Pick<Caller, "accountId" | "mode">;
  merchantId: string | undefined;
  operation: string;
  key: string;
  digest: Buffer;
};
/** A response as it was sent. Every repetition gets the same text. */
export type StoredResponse = { status: number; text: string; replayed: boolean };

type Deps = Pick<PaymentDeps, "db" | "now">;

/**
 * Returns the SHA-256 of everything that identifies a request. The order of an object's members does not matter. Not
 * recursive, because a body of 64 KiB can be nested deeper than the stack.
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

/** Returns the stored response of a request; undefined without one. Refuses a different request under the same key. */
export async function findStoredResponse(
  deps: Deps,
  request: IdempotentRequest,
): Promise<Result<StoredResponse> | undefined> {
  const kept = await findResponse(deps.db, toRowKey(request));
  if (!kept) return undefined;
  if (!kept.digest.equals(request.digest))
    return refuse("idempotency_conflict", "Idempotency-Key: was used for another request");
  if (kept.status === null || kept.response_body === null)
    throw new Error("an idempotency key was committed without a response");
  return done({ status: kept.status, text: kept.response_body, replayed: true });
}

/** A free key that an operation's own statement stores with its response. */
export type KeyClaim = Pick<IdempotentRequest, "operation" | "key" | "digest"> & { status: number };

/** Returns the row of a claimed key without its owner. */
export function toClaimedKey({ operation, key, digest, status }: KeyClaim, text: string): ClaimedKey {
  return { operation, key, digest, status, response_body: text };
}

function toRowKey({ caller, merchantId, operation, key }: IdempotentRequest): IdempotencyKey {
  return { account_id: caller.accountId, mode: caller.mode, merchant_id: merchantId ?? "", operation, key };
}

/**
 * Runs work once per idempotency key. The key, the work and the response commit in one transaction, so a crash leaves
 * all or none of them. A second request under the key waits for the first one and gets its response. A refusal is not
 * stored: the caller may correct the request and use the key again.
 */
export async function runIdempotent(
  deps: Deps,
  request: IdempotentRequest,
  work: (db: Db) => Promise<Result<{ status: number; body: object }>>,
): Promise<Result<StoredResponse>> {
  const rowKey = toRowKey(request);
  const ran = await commitIfOk(deps.db, async (db): Promise<Result<StoredResponse | undefined>> => {
    // Blocks while another transaction holds the key.
    const isClaimed = await claimKey(db, { ...rowKey, digest: request.digest, created_at: deps.now() });
    if (!isClaimed) return done(undefined);
    const result = await work(db);
    if (!result.ok) return result;
    const { status, body } = result.value;
    const text = JSON.stringify(body);
    await recordResponse(db, rowKey, { status, response_body: text });
    return done({ status, text, replayed: false });
  });
  if (!ran.ok) return ran;
  if (ran.value) return done(ran.value);
  const kept = await findStoredResponse(deps, request);
  if (!kept) throw new Error("an idempotency key is neither free nor taken");
  return kept;
}

/** Deletes responses past their retention, at most `limit`. Returns how many. */
export async function deleteExpiredResponses(deps: Deps, limit: number): Promise<number> {
  return deleteOldKeys(deps.db, { before: new Date(deps.now().getTime() - RESPONSE_RETENTION_MS), limit });
}
