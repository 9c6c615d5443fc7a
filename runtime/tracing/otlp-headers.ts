/** A name of an HTTP header, and a value without control characters. */
const NAME = /^[\w!#$%&'*+.^`|~-]+$/;
const VALUE = /^[\t\x20-\x7e]*$/;

/**
 * Reads the headers of requests to a trace collector, in the form of OpenTelemetry: `name=value,name=value`, with
 * percent-encoded values. Returns undefined when a part has another form.
 */
export function parseOtlpHeaders(text: string): Record<string, string> | undefined {
  const headers: Record<string, string> = {};
  for (const part of text.split(",").filter((one) => one.trim() !== "")) {
    const [, name = "", encoded = ""] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/s.exec(part) ?? [];
    const value = decode(encoded);
    if (!NAME.test(name) || value === undefined || !VALUE.test(value)) return undefined;
    headers[name.toLowerCase()] = value;
  }
  return headers;
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
