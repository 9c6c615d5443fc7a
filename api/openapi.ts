import { z } from "zod";
import type { ErrorCode } from "../payments/errors.ts";
import { statusOf } from "./errors.ts";
import { type Operation, unfit } from "./operation.ts";
import { errorResponse } from "./shapes.ts";

type Schema = Record<string, unknown>;
export type OpenApi = {
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

/** What every call may be refused with before its operation is asked. */
const always: Record<Operation["access"], readonly ErrorCode[]> = {
  gateway: [
    ...["missing_auth_headers", "missing_api_key", "missing_app_id", "missing_client_id", "invalid_app_id"],
    ...["invalid_api_key", "unauthorized", "conflicting_auth_headers", "header_not_ascii", "forbidden"],
  ] as ErrorCode[],
  merchant: [
    ...["missing_api_key", "missing_merchant_api_key", "invalid_api_key", "unauthorized", "missing_merchant_id"],
    ...["conflicting_auth_headers", "header_not_ascii", "forbidden"],
  ] as ErrorCode[],
  account: [
    ...["missing_api_key", "missing_merchant_api_key", "invalid_api_key", "unauthorized"],
    ...["conflicting_auth_headers", "header_not_ascii", "forbidden"],
  ] as ErrorCode[],
};
const common: readonly ErrorCode[] = [
  "invalid_params",
  "invalid_api_version",
  "unknown_api_version",
  "api_version_downgrade",
  "rate_limited",
  "internal_error",
];

/**
 * The contract as an OpenAPI 3.1 document, made of the very schemas that requests are parsed with.
 * @param closed for tests: answers may have no member that is not described. Clients have to bear new ones.
 */
export function describeApi(
  operations: readonly Operation[],
  { publicUrl, closed = false }: { publicUrl: string; closed?: boolean },
): OpenApi {
  const schemas: Record<string, Schema> = {};
  const keep = (schema: z.ZodType, io: "input" | "output") => toSchema(schema, { io, closed, schemas });
  const paths: OpenApi["paths"] = {};
  for (const operation of operations) {
    const path = operation.path.replaceAll(/:(\w+)/g, "{$1}");
    const described = describeOperation(operation, keep);
    paths[path] = { ...paths[path], [operation.method.toLowerCase()]: described };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Payment service",
      version: "2026-02-19",
      description:
        "A merchant asks for an amount, a buyer's wallet signs once, and the money moves exactly once. Amounts are texts of minor units; times are Unix seconds or ISO 8601 as each member says.",
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
          description: "svc_test_… or svc_…: the key decides the mode.",
        },
        bearer: { type: "http", scheme: "bearer", description: "The same key as a bearer token." },
        appId: { type: "apiKey", in: "header", name: "App-Id", description: "Public, for wallets; with Client-Id." },
      },
    },
  };
}

type Keep = (schema: z.ZodType, io: "input" | "output") => Schema;

function describeOperation(operation: Operation, keep: Keep): OpenApiOperation {
  const { name, summary, access, schemas, idempotency } = operation;
  const bodyOptional = schemas.body?.safeParse(undefined).success === true;
  const keys = [{ apiKey: [] }, { bearer: [] }];
  return {
    operationId: name,
    summary,
    tags: [
      access === "gateway" ? "Gateway" : operation.path.startsWith("/v1/merchants/:") ? "Merchants" : tagOf(operation),
    ],
    security: access === "gateway" ? [...keys, { appId: [] }] : keys,
    parameters: [
      ...listParameters(schemas.params, "path", keep),
      ...listParameters(schemas.query, "query", keep),
      ...(access === "gateway" ? [header("Client-Id", false, "Needed with App-Id.")] : []),
      ...(access === "merchant" ? [header("Merchant-Id", true, "Whose payments the call is about.")] : []),
      ...(idempotency
        ? [header("Idempotency-Key", idempotency === "required", "A repeat with it is done once; kept 24 h.", 255)]
        : []),
      header("Svc-Version", false, "A version of the contract; the account's own when it is left out."),
    ],
    ...(schemas.body
      ? {
          requestBody: {
            required: !bodyOptional,
            content: { "application/json": { schema: keep(schemas.body, "input") } },
          },
        }
      : {}),
    responses: describeResponses(operation, keep),
  };
}

const tagOf = ({ path }: Operation) => (path === "/v1/merchants" ? "Merchants" : "Payments");

function describeResponses(operation: Operation, keep: Keep): OpenApiOperation["responses"] {
  const { access, schemas, success, refusals, idempotency } = operation;
  const codes = new Set<ErrorCode>([...always[access], ...common, unfit[access], ...refusals]);
  if (idempotency) codes.add("idempotency_conflict").add("params_validation");
  const byStatus = Map.groupBy(codes, (code) => statusOf[code]);
  // Beyond the codes: a body too large or of another type (api/failures.ts).
  for (const status of [413, 414, 415] as const) byStatus.set(status as never, ["invalid_params"]);
  const errors = [...byStatus]
    .toSorted(([a], [b]) => a - b)
    .map(([status, list]) => [
      status,
      {
        description: list.toSorted().join(", "),
        headers: status === 429 ? { "Retry-After": { schema: { type: "integer" }, description: "seconds" } } : {},
        content: { "application/json": { schema: keep(errorResponse, "output") } },
      },
    ]);
  return {
    [success]: {
      description: "It went well.",
      content: { "application/json": { schema: keep(schemas.answer, "output") } },
    },
    ...Object.fromEntries(errors),
  };
}

function listParameters(schema: z.ZodType | undefined, where: "path" | "query", keep: Keep) {
  if (!schema) return [];
  const { properties = {}, required = [] } = keep(schema, "input") as {
    properties?: Record<string, Schema>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, one]) => ({
    name,
    in: where,
    required: where === "path" || required.includes(name),
    schema: one,
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

/** A zod schema as JSON Schema; what has an id of its own goes among the document's schemas. */
function toSchema(
  schema: z.ZodType,
  { io, closed, schemas }: { io: "input" | "output"; closed: boolean; schemas: Record<string, Schema> },
): Schema {
  const {
    $schema: _,
    $defs = {},
    ...whole
  } = z.toJSONSchema(schema, { io, unrepresentable: "any", target: "draft-2020-12" }) as Schema & {
    $defs?: Record<string, Schema>;
  };
  const mend = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(mend);
    if (typeof node !== "object" || node === null) return node;
    const entries = Object.entries(node)
      .filter(([name, value]) => !(name === "additionalProperties" && value === false && !closed))
      // Bounds of JavaScript's own numbers say nothing.
      .filter(([, value]) => Math.abs(Number(value)) !== Number.MAX_SAFE_INTEGER)
      .map(([name, value]) => [
        name,
        name === "$ref" ? String(value).replace("#/$defs/", "#/components/schemas/") : mend(value),
      ]);
    return Object.fromEntries(entries);
  };
  for (const [name, definition] of Object.entries($defs)) schemas[name] = mend(definition) as Schema;
  return mend(whole) as Schema;
}
