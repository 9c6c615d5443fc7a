import { expect, test } from "vitest";
import { parseLimits } from "../../../signer/limits.ts";

const amounts = `"perPayout": "1", "perMerchantDay": "2", "newMerchantPerDay": "3", "perHour": "4"`;
const asset = "eip155:1/erc20:0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48";

const cold = "0x000000000000000000000000000000000000dEaD";
const mint = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v";

/** Returns a limits file with what the treasury keeps of an asset. */
const hot = (members: string, of = asset) =>
  `{ "paused": false, "assets": { "${of}": { ${amounts}, "hotBalance": { ${members} } } } }`;

test("a floor and a ceiling need no cold address", () => {
  for (const one of [asset, `solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1/token:${mint}`])
    expect(parseLimits(hot(`"floor": "1", "ceiling": "5"`, one))).toHaveProperty("limits");
});

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
      assets: {
        [asset.toLowerCase()]: {
          perPayout: 1n,
          perMerchantDay: 2n,
          newMerchantPerDay: 3n,
          newMerchantsPerDay: 30n,
          perHour: 4n,
        },
      },
      operators: [],
    },
  });
});

test("the limit of all new merchants together is ten times that of one, unless the file names it", () => {
  const limitsOf = (members: string) => {
    const parsed = parseLimits(`{ "paused": false, "assets": { "${asset}": { ${members} } } }`);
    return "limits" in parsed ? parsed.limits.assets[asset.toLowerCase()]?.newMerchantsPerDay : undefined;
  };
  expect([limitsOf(amounts), limitsOf(`${amounts}, "newMerchantsPerDay": "7"`)]).toEqual([30n, 7n]);
});

test.each([
  ["an unknown member", `{ "paused": false, "assets": {}, "allowAll": true }`],
  ["no member paused", `{ "assets": {} }`],
  ["an amount that is a number", `{ "paused": false, "assets": { "${asset}": { ${amounts.replace('"1"', "1")} } } }`],
  ["a negative amount", `{ "paused": false, "assets": { "${asset}": { ${amounts.replace('"1"', '"-1"')} } } }`],
  ["a limit that is missing", `{ "paused": false, "assets": { "${asset}": { "perPayout": "1" } } }`],
  ["a target above the ceiling", hot(`"floor": "1", "ceiling": "5", "cold": { "address": "${cold}", "target": "6" }`)],
  ["a floor above the target", hot(`"floor": "3", "ceiling": "5", "cold": { "address": "${cold}", "target": "2" }`)],
  ["a ceiling below the floor", hot(`"floor": "3", "ceiling": "2"`)],
  ["a cold address that is none", hot(`"floor": "1", "ceiling": "5", "cold": { "address": "0x12", "target": "2" }`)],
  [
    "a cold address of another chain",
    hot(
      `"floor": "1", "ceiling": "5", "cold": { "address": "${cold}", "target": "2" }`,
      `solana:EtWTRABZaYq6iMfeYKouRu166VU2xqa1/token:${mint}`,
    ),
  ],
  ["no content", ""],
  ["text that is not JSON", "paused = false"],
])("a limits file with %s is invalid", (_what, text) => {
  expect(parseLimits(text)).toEqual({ error: expect.any(String) });
});
