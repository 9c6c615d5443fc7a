import { listAssetUnits } from "../../db/queries/asset-units.ts";
import type { Db } from "../../db/tables.ts";
import { findUnitIn, toText } from "../../payments/readable-amounts.ts";
import { html } from "../../runtime/html.ts";
import type { Value } from "./values.ts";

/** Shows amounts as decimal numbers with their symbol, and the minor units when the pointer rests on them. */
export type AmountFormatter = {
  /** Shows an amount in minor units of an asset. */
  of: (amount: bigint | string | null | undefined, asset: string | null | undefined) => Value;
  /** Shows a text such as `1250 iso4217/USD`. */
  read: (text: string | null) => Value;
};

/** Reads the units of the assets that workers have reported. Amounts of other assets are shown in minor units. */
export async function readAmountFormatter({ db }: { db: Db }): Promise<AmountFormatter> {
  const unitOf = findUnitIn(await listAssetUnits(db));
  const of: AmountFormatter["of"] = (amount, asset) => {
    if (amount === null || amount === undefined) return null;
    const unit = unitOf(asset ?? "");
    if (!unit) return `${amount} minor units`;
    return html`<span class="number" title="${String(amount)} minor units">${toText(BigInt(amount), unit)}</span>`;
  };
  return { of, read: (text) => (text === null ? null : of(...split(text))) };
}

function split(text: string): [string, string] {
  const [amount = "", unit = ""] = text.split(" ");
  return [amount, unit];
}
