import { randomBytes } from "node:crypto";
import { inTransaction } from "../../db/in-transaction.ts";
import { lockAccount } from "../../db/queries/accounts.ts";
import { type AuditActor, type AuditEntry, insertAuditEntries } from "../../db/queries/audit-entries.ts";
import { giveUpDeliveries } from "../../db/queries/webhook-deliveries.ts";
import {
  type EndpointRow,
  findLiveEndpoint,
  insertEndpoint,
  updateEndpoint,
} from "../../db/queries/webhook-endpoints.ts";
import type { Db, Mode } from "../../db/tables.ts";
import type { Encrypt } from "../../runtime/encryption.ts";
import { done, type Result, refuse } from "../error-codes.ts";
import { newId } from "../ids.ts";
import type { Owner } from "../merchants/merchants.ts";
import type { PaymentDeps } from "../payment-deps.ts";

/** Time for which the previous secret keeps signing beside the new one, milliseconds (wire contract, part 10). */
const ROTATION_MS = 24 * 60 * 60_000;

const noPreviousSecret = { previous_key_id: null, previous_secret: null, previous_until: null };

type Deps = Pick<PaymentDeps, "now"> & { db: Db; encryptWebhookSecret: Encrypt };

/**
 * The URL that receives the events of an account's payments of one mode. `previousUntil`: until when two secrets sign.
 */
export type EndpointView = {
  id: string;
  accountId: string;
  mode: Mode;
  url: string;
  createdAt: Date;
  previousUntil: Date | null;
};

/**
 * Sets the webhook endpoint of an account and mode. From then on, every state change of its payments creates an event.
 * If an endpoint exists, its URL changes, pending events go to the new URL, and the secret is rotated. Returns the
 * secret once and stores it encrypted. Refuses with `params_validation` an unknown account, or a URL that
 * `validateUrl` rejects.
 */
export async function setEndpoint(
  deps: Deps & { validateUrl: (url: string) => string | undefined },
  args: Owner & { actor: AuditActor; url: string },
): Promise<Result<{ id: string; secret: string }>> {
  const error = deps.validateUrl(args.url);
  if (error) return refuse("params_validation", `url: ${error}`);
  return inTransaction(deps.db, async (db) => {
    // The lock serializes calls, so that an account gets one endpoint. It does not block inserts of the account's
    // payments.
    if (!(await lockAccount(db, args.accountId)))
      return refuse("params_validation", "accountId: there is no such account");
    // Lock the endpoint too. Otherwise a concurrent rotation or deletion could return a secret that never signs.
    const there = await findLiveEndpoint(db, args, { lock: true });
    if (there) {
      const secret = await replaceSecret({ ...deps, db }, there);
      await updateEndpoint(db, there.id, { url: args.url });
      const change = { before: { url: there.url }, after: { url: args.url } };
      await record(deps, db, { ...change, actor: args.actor, action: "webhook_endpoint.updated", subject: there.id });
      return done({ id: there.id, secret });
    }
    const id = newId("whe");
    const secret = makeSecret();
    const { keyId, ciphertext } = await deps.encryptWebhookSecret(secret, id);
    await insertEndpoint(db, {
      id,
      account_id: args.accountId,
      mode: args.mode,
      url: args.url,
      key_id: keyId,
      secret: ciphertext,
      ...noPreviousSecret,
      created_at: deps.now(),
      deleted_at: null,
    });
    const after = { account: args.accountId, mode: args.mode, url: args.url };
    const { actor } = args;
    await record(deps, db, { actor, action: "webhook_endpoint.created", subject: id, before: null, after });
    return done({ id, secret });
  });
}

/**
 * Rotates the secret of an endpoint. The previous secret keeps signing beside the new one for 24 hours; an older one
 * stops at once. With `now`, for a secret that has leaked, the previous one stops at once too: at the latest when a worker
 * that is delivering renews its lease. Refuses like `findEndpoint`.
 */
export async function rotateSecret(
  deps: Deps,
  args: Owner & { actor: AuditActor; now?: boolean },
): Promise<Result<{ secret: string }>> {
  return inTransaction(deps.db, async (db) => {
    const there = await findLiveEndpoint(db, args, { lock: true });
    if (!there) return noEndpoint();
    const secret = await replaceSecret({ ...deps, db }, there, { now: args.now });
    const { actor } = args;
    const action = "webhook_endpoint.secret_rotated";
    await record(deps, db, { actor, action, subject: there.id, before: null, after: null });
    return done({ secret });
  });
}

/** Deletes an endpoint. Nothing more is sent to it, and its pending events are dropped. Refuses like `findEndpoint`. */
export async function deleteEndpoint(
  deps: Omit<Deps, "encryptWebhookSecret">,
  args: Owner & { actor: AuditActor },
): Promise<Result<{ id: string }>> {
  return inTransaction(deps.db, async (db) => {
    const there = await findLiveEndpoint(db, args, { lock: true });
    if (!there) return noEndpoint();
    await updateEndpoint(db, there.id, { deleted_at: deps.now() });
    await giveUpDeliveries(db, there.id);
    const { actor } = args;
    const change = { before: { url: there.url }, after: null };
    await record(deps, db, { ...change, actor, action: "webhook_endpoint.deleted", subject: there.id });
    return done({ id: there.id });
  });
}

/** Returns the endpoint of an account and mode. Refuses with `invalid_params` when there is none. */
export async function findEndpoint(deps: Pick<Deps, "db">, args: Owner): Promise<Result<EndpointView>> {
  const row = await findLiveEndpoint(deps.db, args);
  if (!row) return noEndpoint();
  const { id, url, created_at: createdAt, previous_until: previousUntil } = row;
  return done({ id, accountId: args.accountId, mode: args.mode, url, createdAt, previousUntil });
}

const noEndpoint = () => refuse("invalid_params", "the account has no webhook endpoint in this mode");

/** Writes a change of an endpoint to the audit log: its URL, never its secret. */
function record({ now }: Pick<Deps, "now">, db: Db, entry: Omit<AuditEntry, "at">): Promise<void> {
  return insertAuditEntries(db, [{ ...entry, at: now() }]);
}

/** Generates a secret: 256 random bits in the format of Standard Webhooks. */
function makeSecret(): string {
  return `whsec_${randomBytes(32).toString("base64")}`;
}

async function replaceSecret(
  deps: Deps,
  row: EndpointRow,
  options: { now?: boolean | undefined } = {},
): Promise<string> {
  const secret = makeSecret();
  const { keyId, ciphertext } = await deps.encryptWebhookSecret(secret, row.id);
  const previous = {
    previous_key_id: row.key_id,
    previous_secret: row.secret,
    previous_until: new Date(deps.now().getTime() + ROTATION_MS),
  };
  const replaced = { key_id: keyId, secret: ciphertext, ...(options.now ? noPreviousSecret : previous) };
  await updateEndpoint(deps.db, row.id, replaced);
  return secret;
}
