import { z } from "zod";
import { done } from "../../payments/error-codes.ts";
import { decideChange, listChanges } from "../../payments/merchants/decide-changes.ts";
import { defineOperation } from "../contract/operation.ts";
import { listQuery, merchantId, optional, text } from "../contract/request-schemas.ts";
import { publicKey } from "./approval-key-operations.ts";
import { settlementChange, settlementChangeListResponse } from "./merchant-response-schemas.ts";

const list = defineOperation({
  method: "GET",
  path: "/v1/merchants/:merchantId/settlements/changes",
  name: "listSettlementChanges",
  summary: "Lists the requested changes of a merchant's settlement destinations, newest first.",
  access: "account",
  scope: "settlements",
  success: 200,
  params: z.object({ merchantId }),
  paramsCode: "merchant_not_found",
  query: listQuery({ maxLimit: 100, defaultLimit: 20 }).extend({
    status: z
      .enum(["requested", "approved", "applied", "rejected"], "expected requested, approved, applied or rejected")
      .optional(),
  }),
  response: settlementChangeListResponse,
  refusals: ["merchant_not_found"],
  async handle(deps, { caller, params, query: { status: state, ...page } }) {
    const listed = await listChanges(deps, { ...caller, ...params, ...page, state });
    return listed.ok ? done({ data: listed.value.items, nextCursor: listed.value.nextCursor }) : listed;
  },
});

const signedStatement = z
  .strictObject({
    text: text(2_000).meta({
      description: "The canonical text of the decision, exactly as it was signed; lines end with one line feed each.",
    }),
    signer: publicKey,
    signature: z
      .string()
      .regex(/^[A-Za-z0-9+/]{86}==$/, "expected 64 bytes in base64")
      .meta({ description: "The Ed25519 signature of the text's bytes (UTF-8), base64." }),
  })
  .meta({ id: "SignedStatement", description: "A decision that an approval key of the merchant has signed." });

const ofChange = {
  method: "POST",
  access: "account",
  scope: "settlements:approve",
  success: 200,
  params: z.object({ merchantId, changeId: z.string().regex(/^dchg_[0-9a-f]{32}$/) }),
  paramsCode: "merchant_not_found",
  paramsMessage: "no such change of a settlement",
  response: settlementChange,
  refusals: ["merchant_not_found", "invalid_state"],
} as const;

const approve = defineOperation({
  ...ofChange,
  path: "/v1/merchants/:merchantId/settlements/changes/:changeId/approve",
  name: "approveSettlementChange",
  summary: "Approves a change that waits by the signature of an approval key: it applies at once. Repeatable.",
  body: z.strictObject({ statement: signedStatement }),
  async handle(deps, { caller, params, body }) {
    const by = { ...body, deployment: deps.networks.deployment };
    return decideChange(deps, { ...caller, ...params, actor: caller.actor, decision: "approve", by });
  },
});

const reject = defineOperation({
  ...ofChange,
  path: "/v1/merchants/:merchantId/settlements/changes/:changeId/reject",
  name: "rejectSettlementChange",
  summary:
    "Rejects a change that waits. With the signature of an approval key, the receiver applies only by an approval from then on. Repeatable.",
  body: optional(z.strictObject({ statement: optional(signedStatement) })),
  async handle(deps, { caller, params, body }) {
    const by = body?.statement && { statement: body.statement, deployment: deps.networks.deployment };
    return decideChange(deps, { ...caller, ...params, actor: caller.actor, decision: "reject", by });
  },
});

/**
 * Operations on the requested changes of a merchant's settlement destinations: additions to the specification. An API key
 * alone approves nothing: the text of the decision is signed by an approval key, whose private half the service never has. An
 * unknown change is `merchant_not_found`.
 */
export const destinationChangeOperations = [list, approve, reject];
