/** An amount as the API returns it. */
export type ShownAmount = {
  unit: string;
  value: string;
  display?: { assetSymbol: string; decimals: number } | undefined;
};

/** Returns an amount for people: `12.50 USD`. Without display data it stays in minor units. */
export function formatAmount({ unit, value, display }: ShownAmount): string {
  if (!display) return `${value} (minor units of ${unit})`;
  const { decimals, assetSymbol } = display;
  const digits = value.padStart(decimals + 1, "0");
  const whole = digits.slice(0, digits.length - decimals);
  const fraction = digits.slice(digits.length - decimals);
  // Tokens have more decimals than people write.
  const shown = fraction.replace(/0+$/, "").padEnd(Math.min(decimals, 2), "0");
  return `${whole}${shown === "" ? "" : `.${shown}`} ${assetSymbol}`;
}
