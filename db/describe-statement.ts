import type { SpanDescription } from "../runtime/tracing/spans.ts";

/** What a statement writes, wherever in it, but not the lock of `for update`; else the first table that it reads. */
const WRITE = /(?<!\bfor |\bkey |\bdo )\b(insert|update|delete)\s+(?:into\s+|from\s+)?(?:only\s+)?"?([a-z_]+)"?/i;
const READ = /\b(select)\b.*?\bfrom\s+(?:only\s+)?"?([a-z_]+)"?/is;

/** Returns the span of a statement. Its text has placeholders in place of the values. */
export function describeStatement(text: string): SpanDescription {
  const [, verb, table] = WRITE.exec(text) ?? READ.exec(text) ?? /^\s*(\w+)/.exec(text) ?? [];
  const operation = verb?.toLowerCase() ?? "statement";
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
