import { expect, test } from "vitest";
import { pickEncoding } from "../../../../../api/checkout/routes/pick-encoding.ts";

/** As of pages and of scripts. */
const [page, script] = [
  ["zstd", "br", "gzip"],
  ["br", "gzip"],
] as const;

test.each([
  // Chrome, Edge and Firefox over HTTPS.
  ["gzip, deflate, br, zstd", "zstd"],
  // Safari, and every browser over http.
  ["gzip, deflate, br", "br"],
  ["gzip, deflate", "gzip"],
  ["zstd;q=0, br, gzip", "br"],
  ["zstd;q=0.9, br", "br"],
  ["zstd;q=0.5, br;q=0.5, gzip;q=0.5", "zstd"],
  ["gzip;q=0.8, ZSTD;Q=0.8", "zstd"],
  ["zstd;q=0.000", undefined],
  ["*", "zstd"],
  ["*, zstd;q=0", "br"],
  ["gzip, *;q=0", "gzip"],
  ["identity, zstd;q=0.5", undefined],
  ["identity;q=0.5, zstd", "zstd"],
  ["zstandard, x-zstd", undefined],
  ["dcz", undefined],
  ["", undefined],
])("a browser that accepts %j gets a page as %s", (accepted, encoding) => {
  expect(pickEncoding(accepted, page)).toBe(encoding);
});

test.each([
  ["gzip, deflate, br, zstd", "br"],
  ["zstd", undefined],
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
])("a browser that accepts %j gets a script as %s", (accepted, encoding) => {
  expect(pickEncoding(accepted, script)).toBe(encoding);
});
