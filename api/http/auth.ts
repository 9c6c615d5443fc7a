import type { IncomingHttpHeaders } from "node:http";
import type { AuditActor } from "../../db/queries/audit-entries.ts";
import { done, type Result, refuse } from "../../payments/error-codes.ts";
import type { PaymentQuery } from "../../payments/lifecycle/read-payment.ts";
import { type Caller, findCallerByApp, findCallerByKey } from "../../payments/merchants/callers.ts";
import type { Scope } from "../../payments/merchants/scopes.ts";
import { nameRequester, type Requester } from "../../payments/requester.ts";
import type { ApiDeps } from "../api-deps.ts";

/**
 * The caller of an operation: a wallet (`gateway`), one merchant of an account (`Merchant-Id` names it), or the account
 * itself.
 */
export type Access = "gateway" | "merchant" | "account";
export type Merchant = { accountId: string; merchantId: string };
/** A caller, and how the audit log names it. */
export type ActingCaller = Caller & { actor: AuditActor };
export type Authenticated = {
  caller: ActingCaller;
  merchant: Merchant | undefined;
  requester: Requester;
};
/** What an operation demands of its caller. */
export type Permission = {
  access: Access;
  /** The scope that the caller's key must have. */
  scope: Scope;
  /** True for an operation on the whole account, which a key that is restricted to merchants may not call. */
  wholeAccount?: boolean | undefined;
};
type Credentials = { key: string } | { appId: string };

/** The headers that the API reads. They must be ASCII; other headers are not checked. */
const readHeaders = [
  "api-key",
  "authorization",
  "app-id",
  "client-id",
  "merchant-id",
  "idempotency-key",
  "svc-version",
  "sdk-name",
  "sdk-version",
  "sdk-platform",
] as const;

/**
 * Scopes whose calls may use a key for up to a second after it was read. Calls that move money out or change settings
 * read the key each time.
 */
const cachedScopes: ReadonlySet<Scope> = new Set(["gateway", "payments:read", "payments:write"]);

type Header = (typeof readHeaders)[number];

/** The part of a request that authentication reads. It sets the caller. */
type AuthenticatedRequest = { headers: IncomingHttpHeaders; ip: string; caller: Caller | null };

/**
 * Authenticates the caller of a request (specification, part 5) and notes the use of their key. Refuses an unknown caller with 401 and a
 * caller without the permission with 403. Merchant operations require `Merchant-Id` too; the operation's own queries check
 * whether the caller reaches the merchant.
 */
export async function authenticate(
  deps: Pick<ApiDeps, "db" | "now" | "keyUses" | "credentials">,
  request: AuthenticatedRequest,
  { access, scope, wholeAccount = false }: Permission,
): Promise<Result<Authenticated>> {
  const { headers, ip: address } = request;
  const credentials = readCredentials(headers, access);
  if (!credentials.ok) return credentials;
  const found = await findCaller(deps, credentials.value, { address, isRecent: cachedScopes.has(scope) });
  if (!found.ok) return found;
  request.caller = found.value;
  const { keyId, lastUsedAt } = found.value;
  const id = "appId" in credentials.value ? credentials.value.appId : (keyId ?? "");
  const caller: ActingCaller = { ...found.value, actor: { kind: "key", id, address } };
  if (keyId !== null) deps.keyUses.note({ keyId, lastUsedAt, address });
  if (!caller.scopes.includes(scope)) return refuse("forbidden", `the API key lacks the scope ${scope}`);
  if (wholeAccount && caller.onlyMerchants)
    return refuse("forbidden", "the API key is restricted to merchants, and the call concerns the whole account");
  const requester = readRequester(headers, credentials.value, caller);
  if (access !== "merchant") return done({ caller, requester, merchant: undefined });
  const merchantId = readHeader(headers, "merchant-id");
  if (!merchantId) return refuse("missing_merchant_id", "Merchant-Id: the header is missing");
  return done({ caller, requester, merchant: { accountId: caller.accountId, merchantId } });
}

/** Identifies a payment for a caller: of the caller's mode, of the named merchant, and of one that the key reaches. */
export function queryPayment(
  { caller, merchant }: Pick<Authenticated, "caller" | "merchant">,
  paymentId: string,
): PaymentQuery {
  return { paymentId, mode: caller.mode, merchant, onlyMerchants: caller.onlyMerchants };
}

/**
 * Names the requester of a call. An app id is public, so only its Client-Id identifies one instance. A key may come
 * with one too.
 */
function readRequester(headers: IncomingHttpHeaders, credentials: Credentials, { keyId }: Caller): Requester {
  const clientId = readHeader(headers, "client-id") || undefined;
  const isOne = clientId !== undefined;
  return "appId" in credentials
    ? nameRequester("app", [credentials.appId, clientId], { isOne })
    : nameRequester("key", [keyId ?? undefined, clientId], { isOne });
}

async function findCaller(
  deps: Pick<ApiDeps, "db" | "now" | "credentials">,
  credentials: Credentials,
  { address, isRecent }: { address: string; isRecent: boolean },
): Promise<Result<Caller>> {
  const cache = isRecent ? deps.credentials : {};
  if ("key" in credentials) return findCallerByKey(deps, { key: credentials.key, address }, cache);
  const caller = await findCallerByApp(deps, credentials.appId, cache);
  return caller ? done(caller) : refuse("invalid_app_id", "App-Id: is not known or has been revoked");
}

/** Reads a caller's credentials. A key is sufficient on its own, also beside an App-Id (part 5, rule 1). */
export function readCredentials(headers: IncomingHttpHeaders, access: Access): Result<Credentials> {
  const nonAscii = readHeaders.find((name) => /[^\t -~]/.test(readHeader(headers, name) ?? ""));
  if (nonAscii) return refuse("header_not_ascii", `${nonAscii}: the header holds characters that are not ASCII`);

  const authorization = readHeader(headers, "authorization");
  const bearer = /^bearer +(\S+)$/i.exec(authorization ?? "")?.[1];
  const apiKey = readHeader(headers, "api-key");
  if (apiKey && bearer && apiKey !== bearer)
    return refuse("conflicting_auth_headers", "Api-Key and Authorization hold different keys");
  const key = apiKey || bearer;
  if (key) return done({ key });
  if (authorization) return refuse("unauthorized", "Authorization: expected Bearer and an API key");
  return access === "gateway" ? readApp(headers) : refuseWithoutKey(headers);
}

function refuseWithoutKey(headers: IncomingHttpHeaders): Result<Credentials> {
  return readHeader(headers, "app-id")
    ? refuse("missing_merchant_api_key", "an App-Id is for wallets; this call requires a merchant's Api-Key")
    : refuse("missing_api_key", "Api-Key: the header is missing");
}

function readApp(headers: IncomingHttpHeaders): Result<Credentials> {
  const appId = readHeader(headers, "app-id");
  const clientId = readHeader(headers, "client-id");
  if (appId && clientId) return done({ appId });
  if (appId) return refuse("missing_client_id", "Client-Id: the header is missing beside App-Id");
  if (clientId) return refuse("missing_app_id", "App-Id: the header is missing beside Client-Id");
  if (headers["api-key"] !== undefined) return refuse("missing_api_key", "Api-Key: the header is empty");
  return refuse("missing_auth_headers", "expected Api-Key, or App-Id and Client-Id");
}

/** Returns a header's value. A header that is sent twice is joined by a comma, so it never matches a key. */
export function readHeader(headers: IncomingHttpHeaders, name: Header): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value.join(", ") : value;
}
