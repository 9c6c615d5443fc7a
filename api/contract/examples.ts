import { exampleValues, usualTexts } from "./example-values.ts";
import type { Schema } from "./json-schema.ts";

type Schemas = Readonly<Record<string, Schema>>;
/** A member's name, and the name of what it belongs to: a named schema, or the member that holds an unnamed object. */
type Place = { schema: string; member: string };

/** Adds an example to every named schema that has none. */
export function addExamples(schemas: Record<string, Schema>): void {
  for (const [name, schema] of Object.entries(schemas))
    schema["examples"] ??= [makeExample(schema, { schema: name, member: "" }, schemas)];
}

/** Returns an example of a schema: its own (`meta({ example })`), or one that is composed of the values of its members. */
function makeExample(schema: Schema, place: Place, schemas: Schemas): unknown {
  const target = resolve(schema, schemas);
  const own = schema["example"] ?? target.schema["example"];
  if (own !== undefined) return own;
  const given = findValue(place, target.schema, schemas);
  const name = target.name ?? (place.member || place.schema);
  return given.found ? given.value : composeExample(target.schema, { ...place, schema: name }, schemas);
}

/** Follows references. `name` is that of the schema that the last one leads to. */
function resolve(schema: Schema, schemas: Schemas): { schema: Schema; name?: string } {
  const name = String(schema["$ref"] ?? "").replace("#/components/schemas/", "");
  const named = schemas[name];
  if (!named) return { schema };
  const further = resolve(named, schemas);
  return { schema: further.schema, name: further.name ?? name };
}

/** Finds the example value of a member, if it has one that fits its schema. */
function findValue({ schema: name, member }: Place, schema: Schema, schemas: Schemas) {
  for (const key of [`${name}.${member}`, member]) {
    const value = exampleValues[key];
    if (Object.hasOwn(exampleValues, key) && fits(value, schema, schemas)) return { found: true, value };
  }
  return { found: false, value: undefined };
}

/** Returns true when a value has the type of a schema. The members of objects are not compared. */
function fits(value: unknown, schema: Schema, schemas: Schemas): boolean {
  const { type, anyOf, oneOf, enum: words } = schema;
  const variants = anyOf ?? oneOf;
  if (Array.isArray(variants)) return variants.some((one) => fits(value, resolve(one, schemas).schema, schemas));
  if (Array.isArray(words)) return words.includes(value);
  const types = [type].flat();
  if (value === null) return types.includes("null");
  if (Array.isArray(value)) return types.includes("array");
  if (typeof value === "number")
    return types.includes(Number.isInteger(value) ? "integer" : "number") || types.includes("number");
  if (typeof value === "object") return types.includes("object") && hasMembers(value, schema);
  return types.includes(typeof value) && fitsText(value, schema);
}

/** Returns true when an object has every required member of a schema, and no other than it describes. */
function hasMembers(value: object, { properties = {}, required = [] }: Schema): boolean {
  const [names, needed] = [Object.keys(properties ?? {}), Array.isArray(required) ? required : []];
  return needed.every((name) => name in value) && Object.keys(value).every((name) => names.includes(name));
}

function fitsText(value: unknown, { pattern, format }: Schema): boolean {
  if (format === "date-time") return false;
  return typeof pattern !== "string" || new RegExp(pattern, "u").test(String(value));
}

/** What a member of a type is when no value is given for it. */
const usual: Record<string, unknown> = {
  "date-time": "2026-03-01T12:00:00.000Z",
  uri: "https://shop.example.test/",
  email: "orders@shop.example.test",
  boolean: true,
  integer: 1,
  number: 1,
  null: null,
};

function composeExample(schema: Schema, place: Place, schemas: Schemas): unknown {
  const { anyOf, oneOf, const: only, enum: words, properties, items, type, format } = schema;
  if (only !== undefined) return only;
  if (Array.isArray(words)) return words[0];
  const variants = anyOf ?? oneOf;
  if (Array.isArray(variants))
    return makeExample(variants.find((one) => one.type !== "null") ?? variants[0], place, schemas);
  if (type === "object") return composeObject(properties, place, schemas);
  if (type === "array") return [makeExample(toSchema(items), place, schemas)];
  return usual[String(format)] ?? usual[String([type].flat()[0])] ?? usualTexts.find((text) => fitsText(text, schema));
}

function composeObject(properties: unknown, { schema: name }: Place, schemas: Schemas): Record<string, unknown> {
  const members = Object.entries(toSchema(properties)).filter(([, schema]) => hasShape(toSchema(schema)));
  return Object.fromEntries(
    members.map(([member, schema]) => [member, makeExample(toSchema(schema), { schema: name, member }, schemas)]),
  );
}

/** Returns false for a member that accepts anything, because the service ignores it. */
const hasShape = (schema: Schema) => ["type", "$ref", "anyOf", "oneOf", "enum", "const"].some((key) => key in schema);

function toSchema(node: unknown): Schema {
  return typeof node === "object" && node !== null ? { ...node } : {};
}
