import { z } from "zod";
import { done, type Result } from "../../payments/error-codes.ts";
import { listDestinations } from "../../payments/merchants/destinations.ts";
import { fetchLogo, saveLogo } from "../../payments/merchants/logos.ts";
import {
  changeMerchant,
  createMerchant,
  deleteMerchant,
  findMerchant,
  findNamesakeRefusal,
  type Icon,
  listMerchants,
  type MerchantView,
} from "../../payments/merchants/merchants.ts";
import type { ResizedImage } from "../../payments/merchants/resize-image.ts";
import type { ApiDeps } from "../api-deps.ts";
import { defineOperation } from "../contract/operation.ts";
import { listQuery, merchantId, optional, text } from "../contract/request-schemas.ts";
import { toLogoUrl } from "../contract/responses.ts";
import {
  deletedResponse,
  merchantListResponse,
  merchantResponse,
  merchantWithSettlementsResponse,
} from "./merchant-response-schemas.ts";

const merchantName = text(256)
  .min(1, "expected 1 to 256 characters")
  .regex(/^[^\p{Cc}]*$/u, "expected no control characters")
  .trim()
  .min(1, "expected more than blanks");
const merchantEmail = z.email("expected an e-mail address").max(254, "expected at most 254 characters");
const iconUrl = text(2_048);
const params = z.object({ merchantId });

const toMerchant = ({ icon, createdAt, ...rest }: MerchantView, publicUrl: string) => ({
  ...rest,
  createdAt: createdAt.toISOString(),
  iconUrl: icon?.url ?? null,
  servedIconUrl: icon && toLogoUrl(publicUrl, icon.logoId),
});

/** A logo that was fetched, and where from. */
type FetchedLogo = { url: string; image: ResizedImage };

/** Fetches a logo. Refuses like `fetchLogo`, and with `rate_limited` while too many logos are being fetched. */
async function fetchIcon(deps: ApiDeps, args: { accountId: string; url: string }): Promise<Result<FetchedLogo>> {
  const { accountId, url } = args;
  return deps.logoJobs(accountId, async () => {
    const image = await fetchLogo(deps, url);
    return image.ok ? done({ url, image: image.value }) : image;
  });
}

const saveIcon = async (deps: ApiDeps, { url, image }: FetchedLogo): Promise<Icon> => ({
  url,
  logoId: await saveLogo(deps, image),
});

/** POST /v1/merchants: creates a merchant once per Idempotency-Key. Fetches the logo now and serves the copy. */
const create = defineOperation({
  method: "POST",
  path: "/v1/merchants",
  name: "createMerchant",
  summary: "Creates a merchant. A repeat with the same Idempotency-Key returns the same response.",
  access: "account",
  scope: "merchants",
  wholeAccount: true,
  success: 201,
  idempotency: "required",
  body: z.strictObject({ merchantName, merchantEmail, iconUrl: optional(iconUrl) }),
  response: merchantResponse,
  refusals: ["merchant_exists"],
  prepare: async (deps, { caller, body: { iconUrl: url } }) =>
    url === undefined ? done(null) : fetchIcon(deps, { ...caller, url }),
  async handle(deps, { caller, body, prepared }) {
    const { merchantName: name, merchantEmail: email } = body;
    const taken = await findNamesakeRefusal(deps.db, { ...caller, name, email });
    if (taken) return taken;
    const icon = prepared && (await saveIcon(deps, prepared));
    return done({
      merchant: toMerchant(await createMerchant(deps, { ...caller, name, email, icon }), deps.publicUrl),
    });
  },
});

/** GET /v1/merchants: the newest first. The list is in `data` (specification) and in `merchants` (deployed clients). */
const list = defineOperation({
  method: "GET",
  path: "/v1/merchants",
  name: "listMerchants",
  summary: "Lists the account's merchants, the newest first.",
  access: "account",
  scope: "merchants",
  success: 200,
  query: listQuery({ maxLimit: 100, defaultLimit: 20 }).extend({
    status: z.enum(["active", "inactive", "suspended"], "expected active, inactive or suspended").optional(),
    search: text(256).min(1, "expected 1 to 256 characters").optional(),
  }),
  response: merchantListResponse,
  async handle(deps, { caller, query }) {
    const listed = await listMerchants(deps, { ...caller, ...query });
    if (!listed.ok) return listed;
    const { items, totalCount, nextCursor } = listed.value;
    const data = items.map((merchant) => toMerchant(merchant, deps.publicUrl));
    return done({ data, merchants: data, totalCount, nextCursor });
  },
});

const get = defineOperation({
  method: "GET",
  path: "/v1/merchants/:merchantId",
  name: "getMerchant",
  summary: "Returns a merchant with its settlement destinations.",
  access: "account",
  scope: "merchants",
  success: 200,
  params,
  paramsCode: "merchant_not_found",
  response: merchantWithSettlementsResponse,
  refusals: ["merchant_not_found"],
  async handle(deps, { caller, params }) {
    const found = await findMerchant(deps, { ...caller, ...params });
    if (!found.ok) return found;
    const crypto = await listDestinations(deps, { ...caller, ...params });
    if (!crypto.ok) return crypto;
    return done({
      merchant: { ...toMerchant(found.value, deps.publicUrl), settlements: { crypto: crypto.value, fiat: [] } },
    });
  },
});

/** PATCH /v1/merchants/{merchantId}: a changed logo appears only after such a call fetches it (specification, 4.2). */
const change = defineOperation({
  method: "PATCH",
  path: "/v1/merchants/:merchantId",
  name: "updateMerchant",
  summary: "Updates a merchant; iconUrl null removes its logo.",
  access: "account",
  scope: "merchants",
  success: 200,
  params,
  paramsCode: "merchant_not_found",
  body: z
    .strictObject({
      merchantName: merchantName.optional(),
      merchantEmail: merchantEmail.optional(),
      iconUrl: iconUrl.nullable().optional(),
    })
    .refine((given) => Object.values(given).some((value) => value !== undefined), {
      error: "expected at least one of merchantName, merchantEmail and iconUrl",
    }),
  response: merchantResponse,
  refusals: ["merchant_not_found", "merchant_exists"],
  async prepare(deps, { caller, params, body }) {
    if (typeof body.iconUrl !== "string") return done(null);
    // Fetch nothing for a merchant of another account.
    const found = await findMerchant(deps, { ...caller, ...params });
    return found.ok ? fetchIcon(deps, { ...caller, url: body.iconUrl }) : found;
  },
  async handle(deps, { caller, params, body, prepared }) {
    const icon = prepared ? await saveIcon(deps, prepared) : body.iconUrl === null ? null : undefined;
    const { merchantName: name, merchantEmail: email } = body;
    const changed = await changeMerchant(deps, { ...caller, ...params, name, email, icon });
    return changed.ok ? done({ merchant: toMerchant(changed.value, deps.publicUrl) }) : changed;
  },
});

const remove = defineOperation({
  method: "DELETE",
  path: "/v1/merchants/:merchantId",
  name: "deleteMerchant",
  summary: "Deletes a merchant: it creates no new payments; payments under way continue. Repeatable.",
  access: "account",
  scope: "merchants",
  success: 200,
  params,
  paramsCode: "merchant_not_found",
  response: deletedResponse,
  refusals: ["merchant_not_found"],
  async handle(deps, { caller, params }) {
    const deleted = await deleteMerchant(deps, { ...caller, ...params });
    return deleted.ok ? done({ id: deleted.value.id, deleted: true }) : deleted;
  },
});

/** Operations on the merchants of an account. */
export const merchantOperations = [create, list, get, change, remove];
