/** The buyer data that a payment may need, as JSON Schema 2020-12. The API serves this schema and validates with it. */
export const collectedSchema = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  additionalProperties: false,
  properties: {
    fullName: { type: "string", title: "Full name", minLength: 1, maxLength: 200, pattern: "\\S" },
    dob: { type: "string", title: "Date of birth", format: "date" },
    pobCountry: { type: "string", title: "Country of birth", pattern: "^[A-Z]{2}$" },
    pobAddress: { type: "string", title: "Place of birth", minLength: 1, maxLength: 200, pattern: "\\S" },
    porCountry: { type: "string", title: "Country of residence", pattern: "^[A-Z]{2}$" },
    porAddress: { type: "string", title: "Address of residence", minLength: 1, maxLength: 200, pattern: "\\S" },
    tosConfirmed: { type: "boolean", title: "Terms of service accepted", const: true },
  },
  required: ["fullName", "dob", "tosConfirmed"],
  anyOf: [{ required: ["pobCountry", "pobAddress"] }, { required: ["porCountry", "porAddress"] }],
} as const;

export type CollectedId = keyof typeof collectedSchema.properties;

/** Returns true for the id of a field of the schema. */
export const isCollectedId = (id: string): id is CollectedId => Object.hasOwn(collectedSchema.properties, id);

/** The error text for each invalid field. */
export const fieldErrors: Record<CollectedId, string> = {
  fullName: "expected 1 to 200 characters",
  dob: "expected a date of birth as YYYY-MM-DD",
  pobCountry: "expected a country as two capital letters",
  pobAddress: "expected 1 to 200 characters",
  porCountry: "expected a country as two capital letters",
  porAddress: "expected 1 to 200 characters",
  tosConfirmed: "expected true",
};

const required: readonly string[] = collectedSchema.required;

/** The same fields as a flat list, for clients older than the schema. The list cannot express `anyOf`. */
export const collectedFields = Object.entries(collectedSchema.properties).map(([id, { title }]) => ({
  type: id === "dob" ? ("date" as const) : id === "tosConfirmed" ? ("checkbox" as const) : ("text" as const),
  id,
  name: title,
  required: required.includes(id),
}));
