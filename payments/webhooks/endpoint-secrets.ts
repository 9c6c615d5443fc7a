import { randomBytes } from "node:crypto";
import { type EndpointRow, updateEndpoint } from "../../db/queries/webhook-endpoints.ts";
import type { Db } from "../../db/tables.ts";
import type { Encrypt } from "../../runtime/encryption.ts";
import { done, type Result } from "../error-codes.ts";
import { refuseToEndFormer } from "../merchants/former-secrets.ts";
import { changeLocked, type EndpointChange, type EndpointDeps, refuseFlood } from "./lock-endpoint.ts";

/** Time for which the previous secret keeps signing beside the new one, milliseconds (wire contract, part 10). */
const ROTATION_MS = 24 * 60 * 60_000;

const noPreviousSecret = { previous_key_id: null, previous_secret: null, previous_until: null };

/** What makes and stores a secret. */
export type SecretDeps = EndpointDeps & { encryptWebhookSecret: Encrypt };

/**
 * Rotates the secret of an endpoint. The previous secret keeps signing beside the new one for 24 hours; an older one
 * stops at once, which `keepsFormer` refuses while it signs. With `now`, for a secret that has leaked, the previous one stops at once
 * too: at the latest when a worker that is delivering renews its lease. Refuses like `changeLocked`, and an API key with `rate_limited`
 * after 300 changes of the account's endpoints in a day.
 */
export async function rotateSecret(
  deps: SecretDeps,
  args: EndpointChange & { now?: boolean | undefined; keepsFormer?: boolean },
): Promise<Result<{ secret: string }>> {
  return changeLocked(deps, args, async (db, row) => {
    const refusal = await refuseFlood({ ...deps, db }, row, { actor: args.actor, what: "change" });
    if (refusal) return refusal;
    const ended = args.keepsFormer ? refuseToEndFormer(row.previous_until, deps.now()) : undefined;
    if (ended) return ended;
    const secret = await replaceSecret({ ...deps, db }, row, { now: args.now });
    const audit = { action: "webhook_endpoint.secret_rotated", before: null, after: null };
    return done({ value: { secret }, audit, event: { type: "webhook_endpoint.updated", reason: null } });
  });
}

/** Returns a new secret (256 random bits in the format of Standard Webhooks) and the columns that store it encrypted. */
export async function makeSecret({ encryptWebhookSecret }: Pick<SecretDeps, "encryptWebhookSecret">, id: string) {
  const secret = `whsec_${randomBytes(32).toString("base64")}`;
  const { keyId, ciphertext } = await encryptWebhookSecret(secret, id);
  return { secret, columns: { key_id: keyId, secret: ciphertext, ...noPreviousSecret } };
}

async function replaceSecret(
  deps: SecretDeps & { db: Db },
  row: EndpointRow,
  options: { now?: boolean | undefined },
): Promise<string> {
  const { secret, columns } = await makeSecret(deps, row.id);
  const previous = {
    previous_key_id: row.key_id,
    previous_secret: row.secret,
    previous_until: new Date(deps.now().getTime() + ROTATION_MS),
  };
  await updateEndpoint(deps.db, row.id, { ...columns, ...(options.now ? noPreviousSecret : previous) });
  return secret;
}
