import { z } from "zod";
import { done } from "../../payments/error-codes.ts";
import { checkAdditions, checkChange } from "../../payments/merchants/check-destinations.ts";
import {
  addDestinations,
  changeDestination,
  deleteDestination,
  listDestinations,
} from "../../payments/merchants/destinations.ts";
import { defineOperation } from "../contract/operation.ts";
import { merchantId, text } from "../contract/request-schemas.ts";
import { cryptoSettlement, deletedResponse, settlementsResponse } from "./merchant-response-schemas.ts";

const caip = text(256).min(1, "expected a CAIP identifier");
const ofMerchant = z.object({ merchantId });
const ofSettlement = z.object({ merchantId, id: z.string().regex(/^crypto_[0-9a-f]{32}$/) });

const list = defineOperation({
  method: "GET",
  path: "/v1/merchants/:merchantId/settlements",
  name: "listSettlements",
  summary: "Lists a merchant's settlement destinations.",
  access: "account",
  scope: "settlements",
  success: 200,
  params: ofMerchant,
  paramsCode: "merchant_not_found",
  response: settlementsResponse,
  refusals: ["merchant_not_found"],
  async handle(deps, { caller, params }) {
    const listed = await listDestinations(deps, { ...caller, ...params });
    return listed.ok ? done({ crypto: listed.value, fiat: [] }) : listed;
  },
});

/** POST …/settlements/crypto: adds all given destinations or none. */
const add = defineOperation({
  method: "POST",
  path: "/v1/merchants/:merchantId/settlements/crypto",
  name: "createCryptoSettlements",
  summary:
    "Adds settlement destinations: the assets that a merchant is paid in, and the account for each. They apply after the account's waiting period; the first one for an asset applies at once while the merchant has not been paid.",
  access: "account",
  scope: "settlements",
  success: 201,
  idempotency: "required",
  params: ofMerchant,
  paramsCode: "merchant_not_found",
  body: z.strictObject({
    settlements: z
      .array(z.strictObject({ asset: caip, destination: caip }))
      .min(1, "expected 1 to 50 settlements")
      .max(50, "expected 1 to 50 settlements"),
  }),
  response: z.object({ settlements: z.array(cryptoSettlement) }),
  refusals: ["merchant_not_found", "settlement_asset_conflict"],
  prepare: (deps, { caller, params, body }) => checkAdditions(deps, { ...caller, ...params, ...body }),
  async handle(deps, { caller, params, body }) {
    const added = await addDestinations(deps, { ...caller, ...params, ...body, actor: caller.actor });
    return added.ok ? done({ settlements: added.value }) : added;
  },
});

/** PUT …/settlements/crypto/{id}: applies to later settlements, after the waiting period. */
const change = defineOperation({
  method: "PUT",
  path: "/v1/merchants/:merchantId/settlements/crypto/:id",
  name: "updateCryptoSettlement",
  summary:
    "Changes the account that an asset is paid out to, for later settlements, after the account's waiting period. The account that applies now withdraws the change that waits.",
  access: "account",
  scope: "settlements",
  success: 200,
  params: ofSettlement,
  paramsCode: "merchant_not_found",
  paramsMessage: "no such settlement",
  body: z.strictObject({ destination: caip }),
  response: cryptoSettlement,
  refusals: ["merchant_not_found"],
  prepare: (deps, { caller, params, body }) => checkChange(deps, { ...caller, ...params, ...body }),
  async handle(deps, { caller, params, body }) {
    return changeDestination(deps, { ...caller, ...params, ...body, actor: caller.actor });
  },
});

const remove = defineOperation({
  method: "DELETE",
  path: "/v1/merchants/:merchantId/settlements/crypto/:id",
  name: "deleteCryptoSettlement",
  summary: "Deletes a destination at once; the balance in its asset waits for a new one.",
  access: "account",
  scope: "settlements",
  success: 200,
  params: ofSettlement,
  paramsCode: "merchant_not_found",
  paramsMessage: "no such settlement",
  response: deletedResponse,
  refusals: ["merchant_not_found"],
  async handle(deps, { caller, params }) {
    const deleted = await deleteDestination(deps, { ...caller, ...params, actor: caller.actor });
    return deleted.ok ? done({ id: deleted.value.id, deleted: true }) : deleted;
  },
});

/**
 * Operations on a merchant's settlement destinations. A merchant of another account and an unknown entry are
 * `merchant_not_found`.
 */
export const settlementOperations = [list, add, change, remove];
