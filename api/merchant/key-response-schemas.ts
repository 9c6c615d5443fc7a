import { z } from "zod";
import { scopes } from "../../payments/merchants/scopes.ts";
import { instant } from "../contract/response-schemas.ts";
import { nextCursor } from "./merchant-response-schemas.ts";

const apiKey = z
  .object({
    id: z.string(),
    mode: z.enum(["test", "live"]),
    hint: z.string().meta({ description: "The last four characters of the key." }),
    scopes: z.array(z.enum(scopes)),
    merchantIds: z
      .array(z.string())
      .nullable()
      .meta({ description: "The only merchants that the key reaches; null: all of the account and mode." }),
    allowedCidrs: z
      .array(z.string())
      .nullable()
      .meta({ description: "The only addresses that the key works from; null: any." }),
    expiresAt: instant.nullable(),
    createdBy: z.string().nullable().meta({ description: "The key that created it; null: the operator." }),
    createdAt: instant,
    revokedAt: instant.nullable(),
    previousUntil: instant.nullable().meta({ description: "Until when the secret before the last rotation works." }),
    lastUsedAt: instant.nullable().meta({ description: "Stored at most once a minute." }),
    lastUsedAddress: z.string().nullable(),
  })
  .meta({ id: "ApiKey" });

export const apiKeyResponse = z.object({ apiKey });
export const apiKeyListResponse = z.object({ data: z.array(apiKey), nextCursor });
export const issuedKeyResponse = z.object({
  apiKey,
  key: z.string().meta({ description: "The key itself. It is shown once and not stored." }),
});
export const revokedKeysResponse = z.object({
  apiKey,
  revoked: z.array(z.string()).meta({ description: "The keys that this call revoked." }),
});
