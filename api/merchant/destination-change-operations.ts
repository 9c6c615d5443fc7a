import { z } from "zod";
import { done } from "../../payments/error-codes.ts";
import { decideChange, listChanges } from "../../payments/merchants/decide-changes.ts";
import { defineOperation } from "../contract/operation.ts";
import { listQuery, merchantId, noBody } from "../contract/request-schemas.ts";
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

const decide = (decision: "approve" | "reject", name: string, summary: string) =>
  defineOperation({
    method: "POST",
    path: `/v1/merchants/:merchantId/settlements/changes/:changeId/${decision}`,
    name,
    summary,
    access: "account",
    scope: "settlements:approve",
    success: 200,
    params: z.object({ merchantId, changeId: z.string().regex(/^dchg_[0-9a-f]{32}$/) }),
    paramsCode: "merchant_not_found",
    body: noBody,
    response: settlementChange,
    refusals: ["merchant_not_found", "invalid_state"],
    async handle(deps, { caller, approvalKey, params }) {
      const { privateKey: key, publicKey: name } = approvalKey();
      const by = { name, key, deployment: deps.networks.deployment };
      return decideChange(deps, { ...caller, ...params, actor: caller.actor, decision, by });
    },
  });

/**
 * Operations on the requested changes of a merchant's settlement destinations: additions to the specification. Only a key
 * with the scope `settlements:approve` decides, also about its own requests; the decision is signed for the signer. An unknown change is `merchant_not_found`.
 */
export const destinationChangeOperations = [
  list,
  decide("approve", "approveSettlementChange", "Approves a change that waits: it applies at once. Repeatable."),
  decide("reject", "rejectSettlementChange", "Rejects a change that waits. Repeatable."),
];
