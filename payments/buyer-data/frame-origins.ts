import { inTransaction } from "../../db/in-transaction.ts";
import { type AuditActor, insertAuditEntries } from "../../db/queries/audit-entries.ts";
import {
  deleteFrameOrigin,
  insertFrameOrigin,
  listFrameOriginRows,
  listOriginsOfPayment,
} from "../../db/queries/frame-origins.ts";
import type { Db, Mode } from "../../db/tables.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import type { PaymentDeps } from "../payment-deps.ts";

type Deps = Pick<PaymentDeps, "now"> & { db: Db };

/** An origin that may embed the data page of an account's payments in a frame. */
export type FrameOrigin = { origin: string; createdAt: Date };

/** The form that the database enforces, because an origin becomes part of a header: no wildcard, no path. */
const form = /^(https:\/\/[a-z0-9]([-a-z0-9.]*[a-z0-9])?|http:\/\/localhost)(:\d{1,5})?$/;
const LONGEST = 255;

/** Returns true for an origin exactly as browsers send it: lower case, without the default port. */
const isOrigin = (text: string): boolean =>
  text.length <= LONGEST && form.test(text) && URL.parse(text)?.origin === text;

/** Lists the origins of an account in alphabetical order. */
export async function listFrameOrigins({ db }: Pick<Deps, "db">, accountId: string): Promise<FrameOrigin[]> {
  const rows = await listFrameOriginRows(db, accountId);
  return rows.map(({ origin, created_at: createdAt }) => ({ origin, createdAt }));
}

/**
 * Allows an origin to embed the data page of an account's payments, from the next time the page is opened. Repeatable.
 * Refuses with `params_validation` anything but an exact https origin (http for localhost only).
 */
export async function addFrameOrigin(
  deps: Deps,
  args: { actor: AuditActor; accountId: string; origin: string },
): Promise<Result<FrameOrigin[]>> {
  const { actor, accountId, origin } = args;
  if (!isOrigin(origin))
    return refuse(
      "params_validation",
      "origin: expected one such as https://wallet.example, as browsers write it: https (http for localhost only), lower case, no path and no slash at the end",
    );
  const at = deps.now();
  return inTransaction(deps.db, async (db) => {
    await insertFrameOrigin(db, { account_id: accountId, origin, created_at: at });
    const entry = { actor, action: "frame_origin.added", subject: accountId, at };
    await insertAuditEntries(db, [{ ...entry, before: null, after: { origin } }]);
    return done(await listFrameOrigins({ db }, accountId));
  });
}

/**
 * Removes an origin from the list. Pages that are already open stay open. Returns false when it was not on the list.
 */
export async function removeFrameOrigin(
  deps: Deps,
  args: { actor: AuditActor; accountId: string; origin: string },
): Promise<boolean> {
  const { actor, accountId: subject, origin } = args;
  return inTransaction(deps.db, async (db) => {
    if (!(await deleteFrameOrigin(db, args))) return false;
    const entry = { actor, action: "frame_origin.removed", subject, at: deps.now() };
    await insertAuditEntries(db, [{ ...entry, before: { origin }, after: null }]);
    return true;
  });
}

/** Lists the origins that may embed the data page of a payment. */
export async function listFramesOf(
  { db }: Pick<Deps, "db">,
  args: { paymentId: string; mode: Mode },
): Promise<string[]> {
  return listOriginsOfPayment(db, args);
}
