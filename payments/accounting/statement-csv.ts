import type { StatementLine } from "./statement-lines.ts";

const columns = [
  "merchantId",
  "asset",
  "decimals",
  "at",
  "kind",
  "paymentId",
  "referenceId",
  "description",
  "metadata",
  "gross",
  "fee",
  "change",
  "balance",
  "to",
  "txHash",
  "paidAsset",
  "paidDecimals",
  "paidAmount",
  "paidFee",
  "refundId",
  "symbol",
  "paidSymbol",
] as const;

/** The first line of a statement as CSV (RFC 4180). */
export const csvHeader = columns.join(",");

/** How an asset is shown; null where it is not known. */
type Shown = { symbol: string | null; decimals: number | null };

/**
 * Returns a line of a statement as CSV. Amounts are minor units of `asset` or `paidAsset`; `decimals` and `paidDecimals` say how many
 * of their digits are decimals.
 * @param of how the asset is shown, and that of `paid`
 */
export function toCsvLine(line: StatementLine, { asset: shown, paid }: { asset: Shown; paid: Shown | null }): string {
  const { asset: paidAsset = null, amount: paidAmount = null, fee: paidFee = null } = line.paid ?? {};
  const { symbol: paidSymbol, decimals: paidDecimals } = paid ?? { symbol: null, decimals: null };
  const cells = { ...line, ...shown, paidAsset, paidSymbol, paidDecimals, paidAmount, paidFee };
  return columns.map((name) => toCell(cells[name])).join(",");
}

function toCell(value: string | number | bigint | Date | Record<string, string> | null): string {
  if (value === null) return "";
  if (value instanceof Date) return value.toISOString();
  if (typeof value === "number" || typeof value === "bigint") return value.toString();
  const whole = typeof value === "string" ? value : JSON.stringify(value);
  // Prevent formula injection: a spreadsheet evaluates a text that begins like this, in some locales also with full-width signs.
  const text = /^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|^[\t\r\n]/.test(whole) ? `'${whole}` : whole;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
