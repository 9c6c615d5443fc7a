import {
  type ApprovalKeyRow,
  findApprovalKeyRow,
  insertApprovalKey,
  listApprovalKeyRows,
  markApprovalKeyRevoked,
} from "../../db/queries/approval-keys.ts";
import type { AuditActor } from "../../db/queries/audit-entries.ts";
import { readChangeTerms } from "../../db/queries/destination-changes.ts";
import { hasMerchant } from "../../db/queries/merchants.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import type { PaymentDeps } from "../payment-deps.ts";
import { type ChangeActor, toActor } from "./decide-changes.ts";
import type { ChangeDeps } from "./destination-changes.ts";
import { withDestinationLock } from "./destinations.ts";
import type { Owner } from "./merchants.ts";

type Deps = Pick<PaymentDeps, "db" | "now" | "log">;

/** Most keys of a merchant that are not revoked. */
const MOST_KEYS = 20;
const HOUR_MS = 3_600_000;

/** A key by which a merchant approves changes of its destinations. `publicKey`: Ed25519, 32 bytes in hex. */
export type ApprovalKeyView = {
  publicKey: string;
  status: "waiting" | "active" | "revoked";
  registeredBy: ChangeActor;
  registeredAt: Date;
  /** When it counts in the service. The signer waits by its own clock. */
  appliesAt: Date;
  revokedAt: Date | null;
};

/** Lists a merchant's approval keys, newest first, also revoked ones. Refuses with `merchant_not_found`. */
export async function listApprovalKeys(
  deps: Pick<Deps, "db" | "now">,
  args: Owner & { merchantId: string },
): Promise<Result<ApprovalKeyView[]>> {
  if (!(await hasMerchant(deps.db, args))) return refuse("merchant_not_found", "no such merchant");
  const rows = await listApprovalKeyRows(deps.db, args.merchantId);
  return done(rows.map((row) => toView(row, deps.now())));
}

/**
 * Registers a merchant's approval key, which counts after the account's waiting period. Repeatable. Refuses with
 * `merchant_not_found`, and with `invalid_state` a key that was revoked and a merchant that has too many.
 */
export async function registerApprovalKey(
  deps: Deps,
  args: Owner & { merchantId: string; publicKey: string; actor: AuditActor },
): Promise<Result<ApprovalKeyView>> {
  const { merchantId, publicKey, actor } = args;
  return withDestinationLock(deps, args, async (locked) => {
    const at = locked.now();
    const known = await findApprovalKeyRow(locked.db, { merchantId, publicKey });
    if (known?.revoked_at) return refuse("invalid_state", "the key was revoked: make another pair of keys");
    if (known) return done(toView(known, at));
    const rows = await listApprovalKeyRows(locked.db, merchantId);
    if (rows.filter(({ revoked_at }) => revoked_at === null).length >= MOST_KEYS)
      return refuse("invalid_state", `the merchant has ${MOST_KEYS} keys: revoke one first`);
    const { waiting_hours: hours } = await readChangeTerms(locked.db, merchantId);
    const row = await insertApprovalKey(locked.db, {
      merchant_id: merchantId,
      public_key: publicKey,
      registrar_kind: actor.kind,
      registrar_id: actor.id,
      registrar_address: actor.address,
      created_at: at,
      applies_at: new Date(at.getTime() + hours * HOUR_MS),
      revoked_at: null,
      revoker_kind: null,
      revoker_id: null,
      revoker_address: null,
      reported_at: null,
    });
    const after = { publicKey, appliesAt: row.applies_at.toISOString() };
    report(locked, { action: "approval_key.registered", actor, merchantId, before: null, after });
    return done(toView(row, at));
  });
}

/**
 * Revokes an approval key for good: it approves nothing any more, here and in the signer. Repeatable. Refuses with
 * `merchant_not_found`, and with `api_key_not_found` a key that the merchant does not have.
 */
export async function revokeApprovalKey(
  deps: Deps,
  args: Owner & { merchantId: string; publicKey: string; actor: AuditActor },
): Promise<Result<ApprovalKeyView>> {
  const { merchantId, publicKey, actor } = args;
  return withDestinationLock(deps, args, async (locked) => {
    const at = locked.now();
    const revoked = await markApprovalKeyRevoked(locked.db, { merchantId, publicKey, actor, at });
    const row = revoked ?? (await findApprovalKeyRow(locked.db, { merchantId, publicKey }));
    if (!row) return refuse("api_key_not_found", "the merchant has no such approval key");
    const change = { before: { publicKey, revokedAt: null }, after: { publicKey, revokedAt: at.toISOString() } };
    if (revoked) report(locked, { action: "approval_key.revoked", actor, merchantId, ...change });
    return done(toView(row, at));
  });
}

/** Logs a change of a key and adds its audit entry. */
function report(
  { log, audit, now }: ChangeDeps,
  { merchantId, ...entry }: Omit<ChangeDeps["audit"][number], "at" | "subject"> & { merchantId: string },
): void {
  log.info({ merchant: merchantId, actor: entry.actor.id, ...entry.after }, entry.action);
  audit.push({ ...entry, subject: merchantId, at: now() });
}

function toView(row: ApprovalKeyRow, now: Date): ApprovalKeyView {
  const { registrar_kind: kind, registrar_id: id, registrar_address: address } = row;
  return {
    publicKey: row.public_key,
    status: row.revoked_at ? "revoked" : row.applies_at > now ? "waiting" : "active",
    registeredBy: toActor({ kind, id, address }),
    registeredAt: row.created_at,
    appliesAt: row.applies_at,
    revokedAt: row.revoked_at,
  };
}
