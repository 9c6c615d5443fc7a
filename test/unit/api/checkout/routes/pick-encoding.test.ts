import { expect, test } from "vitest";
import { pickEncoding } from "../../../../../api/checkout/routes/pick-encoding.ts";

test.each([
  ["gzip, deflate, br, zstd", "br"],
  ["gzip, deflate", "gzip"],
  ["br, gzip; q=0", "br"],
  ["br ; q=0, gzip", "gzip"],
  ["br;q=0.000,gzip;q=0", undefined],
  ["br;q=0.2, gzip;q=0.8", "gzip"],
  ["BR;Q=0.5", "br"],
  ["*", "br"],
  ["*, br;q=0", "gzip"],
  ["gzip, *;q=0", "gzip"],
  ["*;q=0", undefined],
  ["identity", undefined],
  ["identity, gzip;q=0.5", undefined],
  ["identity;q=0.5, gzip", "gzip"],
  ["identity;q=0", undefined],
  ["deflate, x-br, brotli", undefined],
  ["br;q=", undefined],
  ["br;q=high", undefined],
  ["", undefined],
])("a browser that accepts %j gets %s", (accepted, encoding) => {
  expect(pickEncoding(accepted)).toBe(encoding);
});
