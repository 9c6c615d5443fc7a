import type { SpanDescription } from "../runtime/tracing/spans.ts";

/** The first table that a statement reads or writes, or the table of a common table expression's first part. */
const TABLE = /\b(?:from|into|update|join)\s+(?:only\s+)?"?([a-z_]+)"?/i;

/** Returns the span of a statement. Its text has placeholders in place of the values. */
export function describeStatement(text: string): SpanDescription {
  const operation = /^\s*(\w+)/.exec(text)?.[1]?.toLowerCase() ?? "statement";
  const table = TABLE.exec(text)?.[1];
  return {
    name: table === undefined ? operation : `${operation} ${table}`,
    kind: "client",
    attributes: {
      "db.system.name": "postgresql",
      "db.operation.name": operation,
      ...(table === undefined ? {} : { "db.collection.name": table }),
      "db.query.text": text.replaceAll(/\s+/g, " ").trim(),
    },
  };
}
