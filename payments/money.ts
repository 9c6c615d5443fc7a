import { parseAssetId } from "../chains/caip.ts";
import { canonicalAsset } from "../chains/canonical-ids.ts";
import type { Token } from "../chains/chain.ts";
import type { Network } from "../runtime/networks/read-networks.ts";
import type { Rates } from "./options/prices.ts";
import type { Money } from "./views.ts";

const currencies = new Set(Intl.supportedValuesOf("currency"));
/**
 * Currencies whose ISO 4217 minor unit is not a hundredth. Intl cannot provide this: it returns the decimals that are
 * customary for display (none for the forint).
 */
const oddDecimals = new Map<string, number>([
  ...[
    "BIF",
    "CLP",
    "DJF",
    "GNF",
    "ISK",
    "JPY",
    "KMF",
    "KRW",
    "PYG",
    "RWF",
    "UGX",
    "UYI",
    "VND",
    "VUV",
    "XAF",
    "XOF",
    "XPF",
  ].map((code): [string, number] => [code, 0]),
  ...["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"].map((code): [string, number] => [code, 3]),
  ...["CLF", "UYW"].map((code): [string, number] => [code, 4]),
]);
const currencyNames = new Intl.DisplayNames("en", { type: "currency" });

/** Returns the form in which units are compared: that of the asset behind `caip19/`. */
export function canonicalUnit(unit: string): string {
  const [prefix, asset] = ["caip19/", unit.slice("caip19/".length)];
  return unit.startsWith(prefix) ? `${prefix}${canonicalAsset(asset)}` : unit;
}

/** Returns the decimals of an ISO 4217 currency's minor unit; undefined when there is no such currency. */
export function currencyDecimals(code: string): number | undefined {
  return currencies.has(code) ? (oddDecimals.get(code) ?? 2) : undefined;
}

/** Validates a unit. Returns the error, or undefined for a known currency or a well-formed asset. */
export function validateUnit(unit: string): string | undefined {
  if (unit.startsWith("caip19/"))
    return parseAssetId(unit.slice(7)) ? undefined : "is not a CAIP-19 asset behind caip19/";
  if (!unit.startsWith("iso4217/")) return "expected iso4217/ and a currency code, or caip19/ and an asset";
  return currencyDecimals(unit.slice(8)) === undefined ? "is not a currency of ISO 4217" : undefined;
}

/**
 * Converts an amount to a token's minor units; undefined when the token cannot pay that unit. A token is worth one unit
 * of its peg currency; other currencies are converted by `rates`. Rounds up, so that a merchant never gets less than
 * the amount requested. `rate` describes the rate that was applied, if any.
 */
export function toTokenAmount(
  amount: { unit: string; value: bigint },
  token: { asset: string; peg: string; decimals: number },
  rates: Rates = new Map(),
): { value: bigint; rate: string | null } | undefined {
  if (canonicalUnit(amount.unit) === `caip19/${token.asset}`) return { value: amount.value, rate: null };
  const decimals = amount.unit.startsWith("iso4217/")
    ? currencyDecimals(amount.unit.slice("iso4217/".length))
    : undefined;
  if (decimals === undefined) return undefined;
  if (amount.unit === token.peg) return { value: rescale(amount.value, decimals, token.decimals), rate: null };
  const rate = rates.get(token.peg);
  if (!rate) return undefined;
  const dividend = amount.value * rate.numerator * 10n ** BigInt(token.decimals);
  const divisor = rate.denominator * 10n ** BigInt(decimals);
  return { value: (dividend + divisor - 1n) / divisor, rate: rate.source };
}

/** Converts a value between numbers of decimals. Rounds up. */
export function rescale(value: bigint, from: number, to: number): bigint {
  if (to >= from) return value * 10n ** BigInt(to - from);
  const step = 10n ** BigInt(from - to);
  return (value + step - 1n) / step;
}

/** Converts a value between numbers of decimals. Rounds down, so that we never owe more than we received. */
export function scaleDown(value: bigint, from: number, to: number): bigint {
  return to >= from ? value * 10n ** BigInt(to - from) : value / 10n ** BigInt(from - to);
}

/** Returns an amount of a token with its display data. */
export function tokenMoney(value: bigint, token: Token, network: Network): Money {
  return {
    unit: `caip19/${token.asset}`,
    value,
    display: {
      assetSymbol: token.symbol,
      assetName: token.name,
      decimals: token.decimals,
      iconUrl: token.iconUrl,
      networkName: network.name,
      networkIconUrl: network.iconUrl,
    },
  };
}

/** Returns an amount of a currency with its display data. */
export function currencyMoney(value: bigint, unit: string): Money {
  const code = unit.slice("iso4217/".length);
  return {
    unit,
    value,
    display: { assetSymbol: code, assetName: currencyNames.of(code) ?? code, decimals: currencyDecimals(code) ?? 2 },
  };
}
