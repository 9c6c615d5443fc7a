import { describe, expect, test } from "vitest";
import { parseOtlpHeaders } from "../../../../runtime/tracing/otlp-headers.ts";
import { formatTraceparent, parseTraceparent } from "../../../../runtime/tracing/traceparent.ts";

const [traceId, spanId] = ["0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"];

test("a traceparent is read and written without flags that have no meaning here", () => {
  expect(parseTraceparent(`00-${traceId}-${spanId}-03`)).toEqual({ traceId, spanId, traceFlags: 1, isRemote: true });
  expect(formatTraceparent({ traceId, spanId, traceFlags: 3 })).toBe(`00-${traceId}-${spanId}-01`);
});

test.each([
  ["another version", `01-${traceId}-${spanId}-01`],
  ["upper case", `00-${traceId.toUpperCase()}-${spanId}-01`],
  ["no trace", `00-${"0".repeat(32)}-${spanId}-01`],
  ["no span", `00-${traceId}-${"0".repeat(16)}-01`],
  ["more text", `00-${traceId}-${spanId}-01-more`],
  ["a long text", `00-${traceId}`.repeat(10_000)],
  ["two headers", [`00-${traceId}-${spanId}-01`]],
  ["no text", undefined],
])("a traceparent with %s is ignored", (_, value) => {
  expect(parseTraceparent(value)).toBeUndefined();
});

describe("headers for the collector", () => {
  test("are pairs with percent-encoded values", () => {
    expect(parseOtlpHeaders("Authorization=Bearer%20a%3Db%2Cc, x-team = payments,")).toEqual({
      authorization: "Bearer a=b,c",
      "x-team": "payments",
    });
    expect(parseOtlpHeaders("x=a=b")).toEqual({ x: "a=b" });
  });

  test.each(["no pair", "=value", "a name=x", "x=%", "x=%0d%0aHost:%20evil", "x=é"])("%j is refused", (text) => {
    expect(parseOtlpHeaders(text)).toBeUndefined();
  });
});
