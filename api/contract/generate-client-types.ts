import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import openapiTS, { type OpenAPI3 } from "openapi-typescript";
import { operations } from "../routes.ts";
import { describeApi, type OpenApiOperation } from "./openapi.ts";

/** The file of the client's types. */
export const clientTypesPath = fileURLToPath(new URL("../../client/api-types.ts", import.meta.url));

const heading = `\
// Generated from the OpenAPI document by \`npm run client:types\`. Amounts are strings of minor units; times are Unix seconds or
// ISO 8601, as each member states.
`;

/**
 * Returns the source text of the client's types: one for each named schema of the OpenAPI document, and one for the query of
 * each operation that has one.
 */
export async function generateClientTypes(): Promise<string> {
  const document = describeApi(operations, { publicUrl: "https://pay.example.com" });
  const described = Object.values(document.paths).flatMap((methods) => Object.values(methods));
  const queries = Object.fromEntries(described.flatMap(describeQuery));
  const schemas = toTypeSchema({ ...document.components.schemas, ...queries });
  const only = { openapi: "3.1.0", info: document.info, paths: {}, components: { schemas } };
  const text = await openapiTS(only as unknown as OpenAPI3, { commentHeader: "", immutableTypes: true });
  return formatSource(`${heading}\n${toNamedTypes(text)}`);
}

/** Returns the query of an operation as a schema of its own; nothing for an operation without one. */
function describeQuery({ operationId, parameters }: OpenApiOperation): [string, object][] {
  const own = parameters.filter((parameter) => parameter.in === "query");
  if (own.length === 0) return [];
  const properties = own.map(({ name, schema, description }) => [name, { ...schema, description }]);
  const required = own.flatMap((one) => (one.required ? [one.name] : []));
  const name = `${operationId.slice(0, 1).toUpperCase()}${operationId.slice(1)}Query`;
  return [[name, { type: "object", properties: Object.fromEntries(properties), required }]];
}

/** Members of a schema that types do not express. */
const untyped = ["default", "examples", "format", "x-enumDescriptions"];

/** Returns a schema as the types need it: without examples, and with unions that compile to `A | B`. */
function toTypeSchema(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(toTypeSchema);
  if (typeof node !== "object" || node === null) return node;
  return Object.fromEntries(
    Object.entries(node)
      .filter(([name]) => !untyped.includes(name))
      .map(([name, value]) => [name === "oneOf" ? "anyOf" : name, toTypeSchema(value)]),
  );
}

/** Returns the schemas of the generated interface as exported types, which refer to each other by name. */
function toNamedTypes(text: string): string {
  const start = text.indexOf("  schemas: {\n") + "  schemas: {\n".length;
  return text
    .slice(start, text.indexOf("\n  };\n", start))
    .replace(/^ {4}/gm, "")
    .replace(/^readonly (\w+): /gm, "export type $1 = ")
    .replace(/components\["schemas"\]\["(\w+)"\]/g, "$1")
    .replace(/^ *\* @(?:enum|constant).*\n/gm, "")
    .replace(/^ *\/\*\* @constant \*\/\n| *\/\*\* @enum .*\*\/\n/gm, "")
    .replaceAll("@description ", "")
    .replace(/;\n(?=\/\*\*|export)/g, ";\n\n");
}

/** Returns a source text as `npm run format` leaves it. */
function formatSource(text: string): string {
  const biome = fileURLToPath(new URL("../../node_modules/.bin/biome", import.meta.url));
  const options = ["format", "--stdin-file-path", clientTypesPath];
  return execFileSync(biome, options, { input: text, encoding: "utf8" });
}

if (import.meta.main) writeFileSync(clientTypesPath, await generateClientTypes());
