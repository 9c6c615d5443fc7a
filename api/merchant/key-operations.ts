import { z } from "zod";
import { done } from "../../payments/error-codes.ts";
import type { ApiKeyView } from "../../payments/merchants/api-key-views.ts";
import { createApiKey, revokeApiKey, rotateApiKey } from "../../payments/merchants/api-keys.ts";
import { findApiKey, listApiKeys } from "../../payments/merchants/find-api-keys.ts";
import { scopes } from "../../payments/merchants/scopes.ts";
import { defineOperation } from "../contract/operation.ts";
import { instant, listQuery, merchantId, optional, text } from "../contract/request-schemas.ts";
import { apiKeyListResponse, apiKeyResponse, issuedKeyResponse, revokedKeysResponse } from "./key-response-schemas.ts";

const params = z.object({ keyId: z.string().regex(/^key_[0-9a-f]{32}$/) });
const ofKey = { access: "account", scope: "keys", params, paramsCode: "api_key_not_found" } as const;

function toApiKey({ expiresAt, createdAt, revokedAt, previousUntil, lastUsedAt, ...rest }: ApiKeyView) {
  return {
    ...rest,
    expiresAt: expiresAt?.toISOString() ?? null,
    createdAt: createdAt.toISOString(),
    revokedAt: revokedAt?.toISOString() ?? null,
    previousUntil: previousUntil?.toISOString() ?? null,
    lastUsedAt: lastUsedAt?.toISOString() ?? null,
  };
}

/** POST /v1/api-keys: takes no Idempotency-Key, because the stored response would contain the key. */
const create = defineOperation({
  method: "POST",
  path: "/v1/api-keys",
  name: "createApiKey",
  summary: "Creates an API key, which is shown only now. A limit that is left out is the caller's own.",
  access: "account",
  scope: "keys",
  success: 201,
  body: z.strictObject({
    scopes: z.array(z.enum(scopes, `expected scopes: ${scopes.join(", ")}`)).min(1, "expected at least one scope"),
    merchantIds: optional(
      z
        .array(merchantId)
        .min(1, "expected 1 to 100 merchants")
        .max(100, "expected 1 to 100 merchants")
        .meta({ description: "The only merchants that the key reaches." }),
    ),
    allowedCidrs: optional(
      z
        .array(text(64))
        .min(1, "expected 1 to 50 ranges")
        .max(50, "expected 1 to 50 ranges")
        .meta({ description: "The only addresses that the key works from: IPv4 and IPv6 addresses and CIDR ranges." }),
    ),
    expiresAt: optional(instant),
  }),
  response: issuedKeyResponse,
  refusals: ["merchant_not_found"],
  async handle(deps, call) {
    const { caller } = call;
    const { actor, accountId, mode } = caller;
    const { scopes, merchantIds: onlyMerchants, allowedCidrs, expiresAt } = call.body;
    const wanted = { scopes, onlyMerchants, allowedCidrs, expiresAt };
    const created = await createApiKey(deps, { actor, caller, accountId, mode, ...wanted });
    return created.ok ? done({ apiKey: toApiKey(created.value.apiKey), key: created.value.key }) : created;
  },
});

const list = defineOperation({
  method: "GET",
  path: "/v1/api-keys",
  name: "listApiKeys",
  summary: "Lists the API keys that can do no more than the caller's, the newest first; also revoked ones.",
  access: "account",
  scope: "keys",
  success: 200,
  query: listQuery({ maxLimit: 100, defaultLimit: 20 }),
  response: apiKeyListResponse,
  async handle(deps, { caller, query }) {
    const listed = await listApiKeys(deps, { caller, ...query });
    return listed.ok ? done({ data: listed.value.items.map(toApiKey), nextCursor: listed.value.nextCursor }) : listed;
  },
});

const get = defineOperation({
  ...ofKey,
  method: "GET",
  path: "/v1/api-keys/:keyId",
  name: "getApiKey",
  summary: "Returns an API key with its limits and its last use.",
  success: 200,
  response: apiKeyResponse,
  refusals: ["api_key_not_found"],
  async handle(deps, { caller, params }) {
    const found = await findApiKey(deps, { caller, id: params.keyId });
    return found.ok ? done({ apiKey: toApiKey(found.value) }) : found;
  },
});

const rotate = defineOperation({
  ...ofKey,
  method: "POST",
  path: "/v1/api-keys/:keyId/rotate",
  name: "rotateApiKey",
  summary: "Replaces an API key's secret, which is shown only now; the former one works until previousUntil.",
  success: 200,
  body: optional(
    z.strictObject({
      previousUntil: optional(instant).meta({
        description: "Default: in 24 hours; at most 30 days away. A time that has come ends the former secret at once.",
      }),
    }),
  ),
  response: issuedKeyResponse,
  refusals: ["api_key_not_found", "invalid_state"],
  async handle(deps, { caller, params, body }) {
    const { actor } = caller;
    const rotated = await rotateApiKey(deps, { actor, caller, id: params.keyId, previousUntil: body?.previousUntil });
    deps.credentials.forget();
    return rotated.ok ? done({ apiKey: toApiKey(rotated.value.apiKey), key: rotated.value.key }) : rotated;
  },
});

const revoke = defineOperation({
  ...ofKey,
  method: "POST",
  path: "/v1/api-keys/:keyId/revoke",
  name: "revokeApiKey",
  summary: "Revokes an API key at once; with withCreated also every key that it created or rotated. Repeatable.",
  success: 200,
  body: optional(z.strictObject({ withCreated: optional(z.boolean("expected true or false")) })),
  response: revokedKeysResponse,
  refusals: ["api_key_not_found"],
  async handle(deps, { caller, params, body }) {
    const { actor } = caller;
    const withCreated = body?.withCreated ?? false;
    const revoked = await revokeApiKey(deps, { actor, caller, id: params.keyId, withCreated });
    deps.credentials.forget();
    return revoked.ok ? done({ apiKey: toApiKey(revoked.value.apiKey), revoked: revoked.value.revoked }) : revoked;
  },
});

/** Operations on the API keys of an account; additions to the specification. Decision: docs/decisions/api-keys.md. */
export const keyOperations = [create, list, get, rotate, revoke];
