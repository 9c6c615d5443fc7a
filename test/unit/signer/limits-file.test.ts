import { expect, test } from "vitest";
import { parseLimits } from "../../../signer/limits.ts";

const amounts = `"perPayout": "1", "perMerchantDay": "2", "newMerchantPerDay": "3", "perHour": "4"`;
const asset = "eip155:1/erc20:0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48";

test("a limits file may have comments, and its assets are compared in lower case", () => {
  const parsed = parseLimits(`{
    // All payouts go on.
    "paused": false,
    "assets": { "${asset}": { ${amounts}, }, },
  }`);
  expect(parsed).toEqual({
    limits: {
      paused: false,
      destinationWaitingHours: 72,
      assets: { [asset.toLowerCase()]: { perPayout: 1n, perMerchantDay: 2n, newMerchantPerDay: 3n, perHour: 4n } },
      operators: [],
    },
  });
});

test.each([
  ["an unknown member", `{ "paused": false, "assets": {}, "allowAll": true }`],
  ["no member paused", `{ "assets": {} }`],
  ["an amount that is a number", `{ "paused": false, "assets": { "${asset}": { ${amounts.replace('"1"', "1")} } } }`],
  ["a negative amount", `{ "paused": false, "assets": { "${asset}": { ${amounts.replace('"1"', '"-1"')} } } }`],
  ["a limit that is missing", `{ "paused": false, "assets": { "${asset}": { "perPayout": "1" } } }`],
  ["no content", ""],
  ["text that is not JSON", "paused = false"],
])("a limits file with %s is invalid", (_what, text) => {
  expect(parseLimits(text)).toEqual({ error: expect.any(String) });
});
