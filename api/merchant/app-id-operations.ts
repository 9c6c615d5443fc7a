import { z } from "zod";
import { done } from "../../payments/error-codes.ts";
import { type AppIdView, createAppId, listAppIds, revokeApp } from "../../payments/merchants/app-ids.ts";
import { defineOperation } from "../contract/operation.ts";
import { listQuery, noBody } from "../contract/request-schemas.ts";
import { instant } from "../contract/response-schemas.ts";
import { nextCursor } from "./merchant-response-schemas.ts";

const ofAccount = { access: "account", scope: "keys", wholeAccount: true } as const;
const EXAMPLE = "9f86d081884c7d659a2feaa0c55ad015";

const appId = z
  .object({
    id: z.string().meta({ description: "What wallets send as App-Id; it is public.", example: EXAMPLE }),
    createdAt: instant,
    revokedAt: instant.nullable(),
  })
  .meta({ id: "AppId", description: "Lets wallets call the gateway for the account's payments of one mode." });

const toAppId = ({ id, createdAt, revokedAt }: AppIdView) => ({
  id,
  createdAt: createdAt.toISOString(),
  revokedAt: revokedAt?.toISOString() ?? null,
});

const create = defineOperation({
  ...ofAccount,
  method: "POST",
  path: "/v1/app-ids",
  name: "createAppId",
  summary:
    "Creates an app id of the key's mode; at most 100. The key needs the scope gateway too, which an app id grants.",
  success: 201,
  idempotency: "optional",
  body: noBody,
  response: z.object({ appId }),
  refusals: ["invalid_state"],
  async handle(deps, { caller }) {
    const { accountId, mode, actor } = caller;
    const created = await createAppId(deps, { accountId, mode, actor, caller });
    return created.ok ? done({ appId: toAppId(created.value) }) : created;
  },
});

const list = defineOperation({
  ...ofAccount,
  method: "GET",
  path: "/v1/app-ids",
  name: "listAppIds",
  summary: "Lists the app ids of the key's mode, the newest first, also revoked ones.",
  success: 200,
  query: listQuery({ maxLimit: 100, defaultLimit: 20 }),
  response: z.object({ data: z.array(appId), nextCursor }),
  async handle(deps, { caller: { accountId, mode }, query }) {
    const listed = await listAppIds(deps, { accountId, mode, ...query });
    return listed.ok ? done({ data: listed.value.items.map(toAppId), nextCursor: listed.value.nextCursor }) : listed;
  },
});

const revoke = defineOperation({
  ...ofAccount,
  method: "POST",
  path: "/v1/app-ids/:appId/revoke",
  name: "revokeAppId",
  summary: "Revokes an app id at once: wallets that use it can no longer call the gateway. Repeatable.",
  success: 200,
  params: z.object({
    appId: z
      .string()
      .regex(/^[0-9a-f]{32}$/)
      .meta({ description: "The app id.", example: EXAMPLE }),
  }),
  paramsCode: "app_id_not_found",
  body: noBody,
  response: z.object({ appId }),
  refusals: ["app_id_not_found"],
  async handle(deps, { caller, params }) {
    const { accountId, mode, actor } = caller;
    const revoked = await revokeApp(deps, { actor, id: params.appId, owner: { accountId, mode } });
    deps.credentials.forget();
    return revoked.ok ? done({ appId: toAppId(revoked.value) }) : revoked;
  },
});

/** Operations on the app ids of an account; additions to the specification. */
export const appIdOperations = [create, list, revoke];
