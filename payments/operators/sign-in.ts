import { createHash, randomBytes } from "node:crypto";
import { inTransaction } from "../../db/in-transaction.ts";
import {
  deleteLoginAttempts,
  deleteSession,
  findOldestOf,
  findSessionOperator,
  insertLoginAttempt,
  insertSession,
  lockLogins,
  recordRetriedJobs,
} from "../../db/queries/operator-sessions.ts";
import { findOperator, useTotpStep } from "../../db/queries/operators.ts";
import type { Db } from "../../db/tables.ts";
import { cleanText } from "../../runtime/clean-text.ts";
import type { Decrypt } from "../../runtime/encryption.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import type { OperatorRole } from "./operators.ts";
import { isPasswordOf, makeUnmatchedHash } from "./passwords.ts";
import { findTotpStep } from "./totp.ts";

/** Refused logins of one operator, and of one address, within a window, milliseconds, after which all are refused. */
const MOST_REFUSED = 10;
const WINDOW_MS = 15 * 60_000;
/** How long a session lasts, milliseconds. The table of sessions says the same. */
export const SESSION_MS = 12 * 60 * 60_000;

/** Longest name that is looked up or stored. */
const LONGEST_NAME = 64;

export type Login = { name: string; password: string; code: string; address: string };
/** A session's token, or the time until the next login is accepted, ms; 0 after a wrong name, password or code. */
export type SignedIn = { token: string } | { token: undefined; waitMs: number };

type Deps = Pick<PaymentDeps, "now"> & { db: Db; decryptTotpSecret: Decrypt };

/**
 * Signs an operator in with name, password and TOTP code. A code is accepted once. After ten refused logins of an operator,
 * or from an address, within 15 minutes all further ones are refused, also correct ones, until the oldest is 15 minutes
 * old. The count is in Postgres, so it survives restarts.
 */
export async function signIn(deps: Deps, login: Login): Promise<SignedIn> {
  const name = cleanText(login.name, LONGEST_NAME);
  const waitMs = await countAttempt(deps, { name, address: login.address });
  if (waitMs > 0) return { token: undefined, waitMs };
  const step = await verify(deps, { ...login, name });
  if (step === undefined) return { token: undefined, waitMs: 0 };
  const token = randomBytes(32).toString("base64url");
  return inTransaction(deps.db, async (db) => {
    if (!(await useTotpStep(db, { name, step }))) return { token: undefined, waitMs: 0 };
    await deleteLoginAttempts(db, name);
    await insertSession(db, {
      token_hash: hashToken(token),
      operator: name,
      address: login.address,
      now: deps.now(),
    });
    return { token };
  });
}

/** Returns the operator of a session; undefined when it has ended or the operator is disabled. */
export async function findSignedIn(
  { db, now }: Pick<Deps, "db" | "now">,
  token: string,
): Promise<{ name: string; role: OperatorRole } | undefined> {
  return findSessionOperator(db, { tokenHash: hashToken(token), now: now() });
}

/** Failed jobs that an operator runs again: those of a queue, or the one `job` of it. */
export type RetriedJobs = { queue: string; job: string | null; jobs: number };

/** Records in the audit log that the operator of a session runs failed jobs again. Rejects when the operator may not. */
export async function recordRetry({ db }: Pick<Deps, "db">, token: string, retried: RetriedJobs): Promise<void> {
  await recordRetriedJobs(db, { tokenHash: hashToken(token), ...retried });
}

/** Ends a session. */
export async function signOut({ db }: Pick<Deps, "db">, token: string): Promise<void> {
  await deleteSession(db, hashToken(token));
}

/**
 * Counts a login before it is checked, so that concurrent ones are counted too. Returns how long no login is accepted,
 * milliseconds; 0 when this one is.
 */
function countAttempt({ db, now }: Deps, { name, address }: { name: string; address: string }): Promise<number> {
  const at = now();
  const since = new Date(at.getTime() - WINDOW_MS);
  return inTransaction(db, async (db) => {
    await lockLogins(db);
    const window = { since, limit: MOST_REFUSED };
    const oldest = [
      await findOldestOf(db, { by: "operator", value: name, ...window }),
      await findOldestOf(db, { by: "address", value: address, ...window }),
    ];
    const waits = oldest.map((one) => (one ? one.getTime() + WINDOW_MS - at.getTime() : 0));
    const waitMs = Math.max(...waits);
    if (waitMs === 0) await insertLoginAttempt(db, { operator: name, address, at, since });
    return waitMs;
  });
}

/** Returns the step of the login's code when name, password and code are right. */
async function verify(
  { db, decryptTotpSecret, now }: Deps,
  { name, password, code }: Login,
): Promise<number | undefined> {
  const row = await findOperator(db, name);
  // The same work is done for an unknown name, so that the time reveals no name.
  const isRight = await isPasswordOf(row?.password_hash ?? absentHash, password);
  if (!row || !isRight) return undefined;
  const secret = await decryptTotpSecret({ keyId: row.totp_key_id, ciphertext: row.totp_secret }, name);
  return findTotpStep(secret, code, now());
}

/** The hash that the password of an unknown name is compared with. */
const absentHash = makeUnmatchedHash();

const hashToken = (token: string): Buffer => createHash("sha256").update(token).digest();
