import { type Command, InvalidArgumentError } from "commander";
import { listAssetUnits } from "../../db/queries/asset-units.ts";
import { csvHeader, toCsvLine } from "../../payments/accounting/statement-csv.ts";
import { readStatementLines, type StatementLine } from "../../payments/accounting/statement-lines.ts";
import { type AddAction, isDay, oneOf, UsageError } from "./command.ts";
import { requireMerchant } from "./require-merchant.ts";

/** Adds to `merchants` the command that lists what a merchant was owed, day by day. */
export function addStatementCommand(merchants: Command, addAction: AddAction): void {
  const day = (text: string) => {
    if (!isDay(text)) throw new InvalidArgumentError("expected a date such as 2026-03-31");
    return text;
  };
  addAction(
    merchants
      .command("statement <merchant>")
      .description(
        "list payments, fees, payouts and refunds of a merchant with opening and closing balances (CSV: minor units)",
      )
      .requiredOption("--from <date>", "the first day, UTC", day)
      .requiredOption("--until <date>", "the last day", day)
      .option("--format <format>", "csv or table", oneOf("csv", "table"), "table")
      .addHelpText(
        "after",
        "\nExample:\n  npm run admin -- merchants statement mrch_… --from 2026-03-01 --until 2026-03-31 --format csv",
      ),
    async (context, [merchantId = ""], { from = "", until = "", format }) => {
      await requireMerchant(context, merchantId);
      if (from > until) throw new UsageError("--until: is before --from");
      const value: StatementLine[] = [];
      for await (const { line } of readStatementLines(context, { merchant: merchantId, from, until })) value.push(line);
      if (format !== "csv") return { value };
      const listed = (context.shownNetworks()?.chains ?? []).flatMap((chain) => [...chain.assets]);
      // An asset that has left the networks file keeps the unit that workers have reported.
      const units = [...(await listAssetUnits(context.db)), ...listed];
      const shown = new Map(units.map(({ asset, symbol, decimals }) => [asset, { symbol, decimals }]));
      const find = (asset: string) => shown.get(asset) ?? { symbol: null, decimals: null };
      const toLine = (line: StatementLine) =>
        toCsvLine(line, { asset: find(line.asset), paid: line.paid && find(line.paid.asset) });
      return { value, csv: [csvHeader, ...value.map(toLine)] };
    },
  );
}
