import { z } from "zod";
import type { ErrorCode } from "../../payments/error-codes.ts";
import { scopeDescriptions } from "../../payments/merchants/scopes.ts";
import { statusOf } from "../http/http-errors.ts";
import { invalidInputCode, type Operation } from "./operation.ts";
import { errorResponse } from "./response-schemas.ts";

type Schema = Record<string, unknown>;
type OpenApi = {
  openapi: "3.1.0";
  info: Schema;
  servers: { url: string }[];
  security: Schema[];
  paths: Record<string, Record<string, OpenApiOperation>>;
  components: { schemas: Record<string, Schema>; securitySchemes: Schema };
};
export type OpenApiOperation = Schema & {
  operationId: string;
  parameters: { name: string; in: "path" | "query" | "header"; required: boolean; schema: Schema }[];
  requestBody?: { required: boolean; content: { "application/json": { schema: Schema } } };
  responses: Record<string, { content: { "application/json": { schema: Schema } } }>;
};

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
  merchant: [
    "missing_api_key",
    "missing_merchant_api_key",
    "invalid_api_key",
    "unauthorized",
    "missing_merchant_id",
    "conflicting_auth_headers",
    "header_not_ascii",
    "forbidden",
  ],
  account: [
    "missing_api_key",
    "missing_merchant_api_key",
    "invalid_api_key",
    "unauthorized",
    "conflicting_auth_headers",
    "header_not_ascii",
    "forbidden",
  ],
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
  const schemas: Record<string, Schema> = {};
  const toJson = (schema: z.ZodType, io: "input" | "output") => toSchema(schema, { io, closed, schemas });
  const paths: OpenApi["paths"] = {};
  for (const operation of operations) {
    const path = operation.path.replaceAll(/:(\w+)/g, "{$1}");
    const described = describeOperation(operation, toJson);
    paths[path] = { ...paths[path], [operation.method.toLowerCase()]: described };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Payment service",
      version: "2026-02-19",
      description:
        "A merchant requests an amount, a buyer's wallet signs once, and the money moves exactly once. Amounts are strings in minor units; times are Unix seconds or ISO 8601, as each member states.",
    },
    servers: [{ url: publicUrl }],
    security: [],
    paths,
    components: {
      schemas,
      securitySchemes: {
        apiKey: {
          type: "apiKey",
          in: "header",
          name: "Api-Key",
          description: `svc_test_… or svc_…: the key decides the mode. An operation lists the scope that the key must have:\n\n${scopeList}`,
        },
        bearer: { type: "http", scheme: "bearer", description: "The same key as a bearer token." },
        appId: { type: "apiKey", in: "header", name: "App-Id", description: "Public, for wallets; with Client-Id." },
      },
    },
  };
}

/** The scopes as a list in Markdown. */
const scopeList = Object.entries(scopeDescriptions)
  .map(([scope, description]) => `- \`${scope}\`: ${description}`)
  .join("\n");

/** Converts a schema; adds its named parts to the components of the document. */
type ToJson = (schema: z.ZodType, io: "input" | "output") => Schema;

function describeOperation(operation: Operation, toJson: ToJson): OpenApiOperation {
  const { name, summary, access, scope, schemas, idempotency } = operation;
  const bodyOptional = schemas.body?.safeParse(undefined).success === true;
  // OpenAPI 3.1 lets a scheme of any type list the roles that an operation requires.
  const keySecurity = [{ apiKey: [scope] }, { bearer: [scope] }];
  return {
    operationId: name,
    summary,
    description: describePermission(operation),
    tags: [tagOf(operation)],
    security: access === "gateway" ? [...keySecurity, { appId: [] }] : keySecurity,
    parameters: [
      ...listParameters(schemas.params, "path", toJson),
      ...listParameters(schemas.query, "query", toJson),
      ...(access === "gateway" ? [header("Client-Id", false, "Required with App-Id.")] : []),
      ...(access === "merchant" ? [header("Merchant-Id", true, "The merchant of the call.")] : []),
      ...(idempotency
        ? [
            header(
              "Idempotency-Key",
              idempotency === "required",
              "Repeated requests with the same key are executed once; kept 24 h.",
              255,
            ),
          ]
        : []),
      header("Svc-Version", false, "Version of the contract; default: the account's version."),
    ],
    ...(schemas.body
      ? {
          requestBody: {
            required: !bodyOptional,
            content: { "application/json": { schema: toJson(schemas.body, "input") } },
          },
        }
      : {}),
    responses: describeResponses(operation, toJson),
  };
}

function describePermission({ access, scope, wholeAccount }: Operation): string {
  const key = `Requires a key with the scope \`${scope}\``;
  if (access === "gateway") return `${key}, or an app id.`;
  return wholeAccount ? `${key} that is not restricted to merchants.` : `${key}.`;
}

function tagOf({ access, path }: Operation): string {
  if (access === "gateway") return "Gateway";
  if (path.startsWith("/v1/api-keys")) return "API keys";
  if (path.startsWith("/v1/webhook-")) return "Webhooks";
  return path === "/v1/merchants" || path.startsWith("/v1/merchants/:") ? "Merchants" : "Payments";
}

function describeResponses(operation: Operation, toJson: ToJson): OpenApiOperation["responses"] {
  const { access, scope, schemas, success, refusals, idempotency } = operation;
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
  // The budget of RPC calls is spent.
  byStatus.set(503, ["internal_error"]);
  const errors = [...byStatus]
    .toSorted(([a], [b]) => a - b)
    .map(([status, list]) => [
      status,
      {
        description: `${list.toSorted().join(", ")}${status === 403 ? ` (the key lacks the scope ${scope})` : ""}`,
        headers:
          status === 429 || status === 503
            ? { "Retry-After": { schema: { type: "integer" }, description: "seconds" } }
            : {},
        content: { "application/json": { schema: toJson(errorResponse, "output") } },
      },
    ]);
  return {
    [success]: {
      description: "Success.",
      content: { "application/json": { schema: toJson(schemas.response, "output") } },
    },
    ...Object.fromEntries(errors),
  };
}

/** The members of an object's JSON Schema that parameters are made of. */
const objectSchema = z.object({
  properties: z.record(z.string(), z.record(z.string(), z.unknown())).default({}),
  required: z.array(z.string()).default([]),
});

function listParameters(schema: z.ZodType | undefined, location: "path" | "query", toJson: ToJson) {
  if (!schema) return [];
  const { properties, required } = objectSchema.parse(toJson(schema, "input"));
  return Object.entries(properties).map(([name, property]) => ({
    name,
    in: location,
    required: location === "path" || required.includes(name),
    schema: property,
  }));
}

function header(name: string, required: boolean, description: string, maxLength?: number) {
  return {
    name,
    in: "header" as const,
    required,
    description,
    schema: { type: "string", ...(maxLength ? { maxLength } : {}) },
  };
}

/** Returns a zod schema as JSON Schema; parts with an id of their own go into `schemas`. */
function toSchema(
  schema: z.ZodType,
  { io, closed, schemas }: { io: "input" | "output"; closed: boolean; schemas: Record<string, Schema> },
): Schema {
  const options = { io, unrepresentable: "any", target: "draft-2020-12" } as const;
  const { $schema: _, $defs = {}, ...whole } = z.toJSONSchema(schema, options);
  const adapt = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(adapt);
    return typeof node === "object" && node !== null ? adaptObject(node) : node;
  };
  const adaptObject = (node: object): Schema => {
    const entries = Object.entries(node)
      .filter(([name, value]) => !(name === "additionalProperties" && value === false && !closed))
      // The bounds of safe integers carry no information.
      .filter(([, value]) => Math.abs(Number(value)) !== Number.MAX_SAFE_INTEGER)
      .map(([name, value]) => [
        name,
        name === "$ref" ? String(value).replace("#/$defs/", "#/components/schemas/") : adapt(value),
      ]);
    return Object.fromEntries(entries);
  };
  for (const [name, definition] of Object.entries($defs)) schemas[name] = adaptObject(definition);
  return adaptObject(whole);
}
