import { z } from "zod";
import { done } from "../../payments/error-codes.ts";
import {
  type ApprovalKeyView,
  listApprovalKeys,
  registerApprovalKey,
  revokeApprovalKey,
} from "../../payments/merchants/approval-keys.ts";
import type { ApiDeps } from "../api-deps.ts";
import { defineOperation } from "../contract/operation.ts";
import { merchantId, noBody } from "../contract/request-schemas.ts";
import { approvalKeyListResponse, approvalKeyResponse } from "./merchant-response-schemas.ts";

/** An Ed25519 public key. */
export const publicKey = z
  .string()
  .regex(/^[0-9a-f]{64}$/, "expected an Ed25519 public key: 32 bytes in lower-case hex")
  .meta({ description: "An Ed25519 public key, 32 bytes in lower-case hex." });

const ofMerchant = { access: "account", paramsCode: "merchant_not_found", success: 200 } as const;

/** Returns a key as the API shows it. `deployment` is part of what it signs. */
const toApprovalKey = ({ networks }: Pick<ApiDeps, "networks">, key: ApprovalKeyView) => ({
  ...key,
  deployment: networks.deployment,
});

const list = defineOperation({
  ...ofMerchant,
  method: "GET",
  path: "/v1/merchants/:merchantId/approval-keys",
  name: "listApprovalKeys",
  summary: "Lists the public keys by which a merchant approves changes of its destinations, also revoked ones.",
  scope: "settlements",
  params: z.object({ merchantId }),
  response: approvalKeyListResponse,
  refusals: ["merchant_not_found"],
  async handle(deps, { caller, params }) {
    const listed = await listApprovalKeys(deps, { ...caller, ...params });
    return listed.ok ? done({ data: listed.value.map((key) => toApprovalKey(deps, key)) }) : listed;
  },
});

const register = defineOperation({
  ...ofMerchant,
  method: "POST",
  path: "/v1/merchants/:merchantId/approval-keys",
  name: "registerApprovalKey",
  summary: "Registers a public key of the merchant, which approves changes after the waiting period. Repeatable.",
  scope: "settlements:approve",
  success: 201,
  params: z.object({ merchantId }),
  body: z.strictObject({ publicKey }),
  response: approvalKeyResponse,
  refusals: ["merchant_not_found", "invalid_state"],
  async handle(deps, { caller, params, body }) {
    const registered = await registerApprovalKey(deps, { ...caller, ...params, ...body, actor: caller.actor });
    return registered.ok ? done({ approvalKey: toApprovalKey(deps, registered.value) }) : registered;
  },
});

const revoke = defineOperation({
  ...ofMerchant,
  method: "POST",
  path: "/v1/merchants/:merchantId/approval-keys/:publicKey/revoke",
  name: "revokeApprovalKey",
  summary: "Revokes an approval key for good. Changes then wait for their whole period. Repeatable.",
  scope: "settlements:approve",
  params: z.object({ merchantId, publicKey }),
  paramsCode: "api_key_not_found",
  paramsMessage: "the merchant has no such approval key",
  body: noBody,
  response: approvalKeyResponse,
  refusals: ["merchant_not_found", "api_key_not_found"],
  async handle(deps, { caller, params }) {
    const revoked = await revokeApprovalKey(deps, { ...caller, ...params, actor: caller.actor });
    return revoked.ok ? done({ approvalKey: toApprovalKey(deps, revoked.value) }) : revoked;
  },
});

/**
 * Operations on the public keys by which a merchant approves changes of its settlement destinations: additions to the
 * specification. The merchant makes the pairs itself, and the service never has a private half.
 */
export const approvalKeyOperations = [list, register, revoke];
