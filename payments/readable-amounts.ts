import { currencyDecimals } from "./money.ts";

/** The symbol of a unit, and how many decimals an amount in it has. */
export type Unit = { decimals: number; symbol: string };
/** Returns the unit of a name such as `iso4217/USD`, `caip19/…`, or an asset; undefined for an unknown asset. */
export type FindUnit = (name: string) => Unit | undefined;

/** Returns the function that finds currencies, and these assets by their CAIP-19 ids. */
export function findUnitIn(assets: Iterable<Unit & { asset: string }>): FindUnit {
  const units = new Map(
    [...assets].map(({ asset, decimals, symbol }): [string, Unit] => [asset, { decimals, symbol }]),
  );
  return (name) => {
    if (!name.startsWith("iso4217/")) return units.get(name.replace(/^caip19\//, ""));
    const symbol = name.slice("iso4217/".length);
    const decimals = currencyDecimals(symbol);
    return decimals === undefined ? undefined : { decimals, symbol };
  };
}

/**
 * Returns a copy of a value for people: amounts with their decimals and symbol, instead of minor units. Those are the
 * integers beside a member `asset`, and texts such as `1250 iso4217/USD`. Amounts of an unknown asset stay as they are.
 */
export function withUnits(value: unknown, unitOf: FindUnit): unknown {
  const convert = (one: unknown, unit: Unit | undefined): unknown => {
    if (typeof one === "bigint") return unit ? toText(one, unit) : one;
    if (typeof one === "string") return convertText(one, unitOf);
    if (Array.isArray(one)) return one.map((item) => convert(item, undefined));
    if (typeof one !== "object" || one === null || one instanceof Date) return one;
    const own = "asset" in one && typeof one.asset === "string" ? unitOf(one.asset) : undefined;
    return Object.fromEntries(Object.entries(one).map(([name, member]) => [name, convert(member, own)]));
  };
  return convert(value, undefined);
}

function convertText(text: string, unitOf: FindUnit): string {
  const [, digits, name] = /^(\d+) ((?:iso4217|caip19|eip155:|solana:)\S+)$/.exec(text) ?? [];
  const unit = name === undefined ? undefined : unitOf(name);
  return digits === undefined || !unit ? text : toText(BigInt(digits), unit);
}

/** Returns an amount in minor units as a decimal number with its symbol. */
export function toText(value: bigint, { decimals, symbol }: Unit): string {
  const digits = (value < 0n ? -value : value).toString().padStart(decimals + 1, "0");
  const whole = digits.slice(0, digits.length - decimals);
  return `${value < 0n ? "-" : ""}${whole}${decimals > 0 ? `.${digits.slice(-decimals)}` : ""} ${symbol}`;
}
