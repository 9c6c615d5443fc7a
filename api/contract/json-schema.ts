import { z } from "zod";

/** A JSON Schema (2020-12) as OpenAPI 3.1 uses it. */
export type Schema = Record<string, unknown>;
/** Adds a schema to the document's components and returns a reference to it. Several uses of one schema share a name. */
export type Refer = (schema: z.ZodType, io: "input" | "output", name: string) => Schema;
/** Converts a schema; parts with an id of their own go into the document's components. */
export type ToJson = (schema: z.ZodType, io: "input" | "output") => Schema;

/**
 * Returns functions that convert zod schemas, and the named schemas that they have found so far.
 * @param closed objects of responses may have no member that is not described
 */
export function createSchemas({ closed }: { closed: boolean }): {
  schemas: Record<string, Schema>;
  toJson: ToJson;
  refer: Refer;
} {
  const schemas: Record<string, Schema> = {};
  const references = new Map<z.ZodType, Schema>();
  const toJson: ToJson = (schema, io) => {
    const options = { io, unrepresentable: "any", target: "draft-2020-12" } as const;
    const { $schema: _, $defs = {}, ...whole } = z.toJSONSchema(schema, options);
    // A request may have no member that is not described, where its schema says so.
    const staysClosed = closed || io === "input";
    for (const [name, definition] of Object.entries($defs)) schemas[name] = adaptObject(definition, staysClosed);
    return adaptObject(whole, staysClosed);
  };
  const addSchema: Refer = (schema, io, name) => {
    const converted = withoutNull(toJson(schema, io));
    if (typeof converted["$ref"] === "string") return converted;
    if (schemas[name]) throw new Error(`two schemas are named ${name}`);
    schemas[name] = converted;
    return { $ref: `#/components/schemas/${name}` };
  };
  return {
    schemas,
    toJson,
    refer(schema, io, name) {
      // Dozens of responses share the schema of errors, and each conversion takes a millisecond.
      const known = references.get(schema) ?? addSchema(schema, io, name);
      references.set(schema, known);
      return { ...known };
    },
  };
}

/** Returns the schema of a body that may be left out: null stands for that, and the document says it otherwise. */
function withoutNull(schema: Schema): Schema {
  const { anyOf, ...rest } = schema;
  if (!Array.isArray(anyOf)) return schema;
  const others = anyOf.filter((one) => one.type !== "null");
  return others.length === 1 ? { ...others[0], ...rest } : schema;
}

/** Formats of the types that have one by default; `meta({ format: "int32" })` names another one. */
const formats: Record<string, string> = { integer: "int64", number: "double" };

function adapt(node: unknown, closed: boolean): unknown {
  if (Array.isArray(node)) return node.map((one) => adapt(one, closed));
  return typeof node === "object" && node !== null ? adaptObject(node, closed) : node;
}

function adaptObject(node: object, closed: boolean): Schema {
  const given: Schema = { ...node };
  // A query is text: the schema that reads it differs from the value that a client has.
  const { describedAs, description } = given;
  if (typeof describedAs === "object") return { ...describedAs, ...(description === undefined ? {} : { description }) };
  const [type] = [given["type"]].flat();
  // A member of an object may be called format too; its value is a schema.
  const format = typeof given["format"] === "object" ? undefined : (given["format"] ?? formats[String(type)]);
  const entries = Object.entries({ ...given, ...(format === undefined ? {} : { format }) })
    .filter(([name, value]) => !(name === "additionalProperties" && value === false && !closed))
    // The bounds of safe integers carry no information, nor does the pattern of a format.
    .filter(([, value]) => Math.abs(Number(value)) !== Number.MAX_SAFE_INTEGER)
    .filter(([name]) => !(name === "pattern" && format !== undefined))
    .map(([name, value]) => [
      name,
      name === "$ref" ? String(value).replace("#/$defs/", "#/components/schemas/") : adapt(value, closed),
    ]);
  return Object.fromEntries(entries);
}
