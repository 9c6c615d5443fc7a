import { usageError } from "./cli-error.ts";

/** Currencies whose ISO 4217 minor unit is not a hundredth, by its decimals (payments/money.ts). */
const oddDecimals: Readonly<Record<number, readonly string[]>> = {
  0: [
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
  ],
  3: ["BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND"],
  4: ["CLF", "UYW"],
};

/** An amount in minor units, as the API takes it. */
export type Amount = { unit: string; value: string };

function decimalsOf(currency: string): number {
  const odd = Object.entries(oddDecimals).find(([, codes]) => codes.includes(currency));
  return odd ? Number(odd[0]) : 2;
}

/** Converts an amount as people write it (`12.50`, `USD`) to minor units. Throws CliError for anything else. */
export function parseAmount(text: string, currency: string): Amount {
  const code = currency.toUpperCase();
  if (!/^[A-Z]{3}$/.test(code)) throw usageError(`--currency: expected a code such as USD, and got ${currency}`);
  const [, whole = "", fraction = ""] = /^(\d{1,60})(?:\.(\d+))?$/.exec(text) ?? [];
  if (whole === "") throw usageError(`--amount: expected an amount such as 12.50, and got ${text}`);
  const decimals = decimalsOf(code);
  if (fraction.length > decimals)
    throw usageError(
      `--amount: ${code} has ${decimals === 0 ? "no" : decimals} decimals, and ${text} has ${fraction.length}`,
    );
  const value = `${whole}${fraction.padEnd(decimals, "0")}`.replace(/^0+/, "");
  if (value === "") throw usageError("--amount: expected more than zero");
  return { unit: `iso4217/${code}`, value };
}
