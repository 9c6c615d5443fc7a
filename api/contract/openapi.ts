import { type ErrorCode, reservedCodes } from "../../payments/error-codes.ts";
import { scopeDescriptions } from "../../payments/merchants/scopes.ts";
import { statusOf } from "../http/http-errors.ts";
import { errorExamples } from "./error-examples.ts";
import { addExamples } from "./examples.ts";
import { type ResponseHeader, referHeaders, responseHeaders } from "./headers.ts";
import { createSchemas, type Refer, type Schema, type ToJson } from "./json-schema.ts";
import { invalidInputCode, type Operation } from "./operation.ts";
import { listParameters, type Parameter } from "./parameters.ts";
import { errorResponse } from "./response-schemas.ts";
import { type Tag, tagOf, tags } from "./tags.ts";

/** The version of the contract that the document describes (specification, part 9). */
const DOCUMENT_VERSION = "2026-02-19.preview";

type Response = {
  description: string;
  headers: Schema;
  content: { "application/json": { schema: Schema; examples?: Record<string, unknown> } };
};
export type OpenApiOperation = Schema & {
  operationId: string;
  tags: Tag[];
  parameters: Parameter[];
  requestBody?: { required: boolean; content: { "application/json": { schema: Schema } } };
  responses: Record<string, Response>;
};
type OpenApi = {
  openapi: "3.1.0";
  info: Schema;
  servers: { url: string; description: string }[];
  tags: { name: Tag; description: string }[];
  security: Schema[];
  paths: Record<string, Record<string, OpenApiOperation>>;
  components: { schemas: Record<string, Schema>; headers: Schema; securitySchemes: Schema };
};

/** Error codes of a merchant's authentication. */
const keyCodes: readonly ErrorCode[] = [
  "missing_api_key",
  "missing_merchant_api_key",
  "invalid_api_key",
  "unauthorized",
  "conflicting_auth_headers",
  "header_not_ascii",
  "forbidden",
];
/** Error codes of authentication, which every operation of an access may return. */
const authenticationCodes: Record<Operation["access"], readonly ErrorCode[]> = {
  gateway: [
    "missing_auth_headers",
    "missing_api_key",
    "missing_app_id",
    "missing_client_id",
    "invalid_app_id",
    "invalid_api_key",
    "unauthorized",
    "conflicting_auth_headers",
    "header_not_ascii",
    "forbidden",
  ],
  merchant: [...keyCodes, "missing_merchant_id"],
  account: keyCodes,
};
/** Error codes that every operation may return. */
const commonCodes: readonly ErrorCode[] = [
  "invalid_params",
  "invalid_api_version",
  "unknown_api_version",
  "api_version_downgrade",
  "rate_limited",
  "internal_error",
];

/**
 * Returns the contract as an OpenAPI 3.1 document, generated from the same schemas that parse requests.
 * @param closed for tests: responses may have no member that is not described. Clients must tolerate new members.
 */
export function describeApi(
  operations: readonly Operation[],
  { publicUrl, closed = false }: { publicUrl: string; closed?: boolean },
): OpenApi {
  const { schemas, toJson, refer } = createSchemas({ closed });
  const paths: OpenApi["paths"] = {};
  for (const operation of operations) {
    const path = operation.path.replaceAll(/:(\w+)/g, "{$1}");
    const described = describeOperation(operation, { toJson, refer });
    paths[path] = { ...paths[path], [operation.method.toLowerCase()]: described };
  }
  addExamples(schemas);
  const used = new Set(operations.map(({ path }) => tagOf(path)));
  return {
    openapi: "3.1.0",
    info: {
      title: "Payment service",
      version: DOCUMENT_VERSION,
      summary: "Payments in tokens: a wallet signs once, and the merchant is paid.",
      description: `A merchant requests an amount, a buyer's wallet signs once, and the money moves exactly once. Amounts are strings in minor units; times are Unix seconds or ISO 8601, as each member states. Test and live data are separate; the key decides the mode. These error codes are reserved, and nothing returns them: ${reservedCodes.map((code) => `\`${code}\``).join(", ")}.`,
      license: { name: "Proprietary", identifier: "LicenseRef-Proprietary" },
    },
    servers: [
      { url: publicUrl, description: "This deployment. The documentation page sends requests with test keys only." },
    ],
    tags: tags.filter(({ name }) => used.has(name)),
    security: [],
    paths,
    components: { schemas, headers: { ...responseHeaders }, securitySchemes },
  };
}

/** The scopes as a list in Markdown. */
const scopeList = Object.entries(scopeDescriptions)
  .map(([scope, description]) => `- \`${scope}\`: ${description}`)
  .join("\n");

const securitySchemes = {
  apiKey: {
    type: "apiKey",
    in: "header",
    name: "Api-Key",
    description: `svc_test_… or svc_…: the key decides the mode. An operation lists the scope that the key must have:\n\n${scopeList}`,
  },
  bearer: { type: "http", scheme: "bearer", description: "The same key as a bearer token." },
  appId: {
    type: "apiKey",
    in: "header",
    name: "App-Id",
    description: "The public id of a wallet's app, together with Client-Id.",
  },
  clientId: {
    type: "apiKey",
    in: "header",
    name: "Client-Id",
    description: "A text that identifies one instance of the app, such as a random UUID.",
  },
};

function describeOperation(operation: Operation, of: { toJson: ToJson; refer: Refer }): OpenApiOperation {
  const { name, summary, access, scope, path, schemas } = operation;
  // OpenAPI 3.1 lets a scheme of any type list the roles that an operation requires.
  const keySecurity = [{ apiKey: [scope] }, { bearer: [scope] }];
  const body = schemas.body && of.refer(schemas.body, "input", `${toTypeName(name)}Request`);
  const required = schemas.body?.safeParse(undefined).success === false;
  return {
    operationId: name,
    summary,
    description: `${summary} ${describePermission(operation)}`,
    tags: [tagOf(path)],
    security: access === "gateway" ? [...keySecurity, { appId: [], clientId: [] }] : keySecurity,
    parameters: listParameters(operation, of.toJson),
    ...(body ? { requestBody: { required, content: { "application/json": { schema: body } } } } : {}),
    responses: describeResponses(operation, of.refer),
  };
}

const toTypeName = (name: string): string => `${name.slice(0, 1).toUpperCase()}${name.slice(1)}`;

function describePermission({ access, scope, wholeAccount }: Operation): string {
  const key = `Requires a key with the scope \`${scope}\``;
  if (access === "gateway") return `${key}, or an app id.`;
  return wholeAccount ? `${key} that is not restricted to merchants.` : `${key}.`;
}

/** Headers that every response of an operation may have. */
const commonHeaders: readonly ResponseHeader[] = [
  "X-Request-Id",
  "RateLimit-Limit",
  "RateLimit-Remaining",
  "RateLimit-Reset",
];
/** Headers of some error responses. */
const headersOf: Record<number, readonly ResponseHeader[]> = {
  401: ["WWW-Authenticate"],
  429: ["Retry-After"],
  503: ["Retry-After"],
};

function describeResponses(operation: Operation, refer: Refer): OpenApiOperation["responses"] {
  const { name, schemas, success, idempotency } = operation;
  const headers: ResponseHeader[] = [
    "Svc-Version",
    ...commonHeaders,
    ...(idempotency ? ["Idempotent-Replayed" as const] : []),
  ];
  const schema = refer(schemas.response, "output", `${toTypeName(name)}Response`);
  return {
    [success]: {
      description: "Success.",
      headers: referHeaders(headers),
      content: { "application/json": { schema } },
    },
    ...Object.fromEntries(
      groupCodes(operation).map(([status, codes]) => [status, describeError(operation, { status, codes, refer })]),
    ),
  };
}

/** Returns the error codes of an operation by HTTP status. */
function groupCodes({ access, refusals, idempotency }: Operation): [number, ErrorCode[]][] {
  const codes = new Set<ErrorCode>([
    ...authenticationCodes[access],
    ...commonCodes,
    invalidInputCode[access],
    ...refusals,
  ]);
  if (idempotency) codes.add("idempotency_conflict").add("params_validation");
  const byStatus = new Map<number, ErrorCode[]>(Map.groupBy(codes, (code) => statusOf[code]));
  // Errors of HTTP itself: a body that is too large or has another type.
  for (const status of [413, 414, 415]) byStatus.set(status, ["invalid_params"]);
  // Postgres or Redis is unavailable.
  byStatus.set(503, ["internal_error", ...(byStatus.get(503) ?? [])]);
  return [...byStatus].toSorted(([a], [b]) => a - b);
}

function describeError(
  { scope }: Operation,
  { status, codes, refer }: { status: number; codes: readonly ErrorCode[]; refer: Refer },
): Response {
  const schema = refer(errorResponse, "output", "ErrorResponse");
  const described = codes
    .toSorted()
    .map((code) => (code === "forbidden" ? `forbidden (such as a key without the scope ${scope})` : code));
  return {
    description: described.join(", "),
    headers: referHeaders([...commonHeaders, ...(headersOf[status] ?? [])]),
    content: { "application/json": { schema, examples: errorExamples(codes) } },
  };
}
