import { readStatementLines, type StatementLine } from "../../payments/accounting/statement-lines.ts";
import { collect } from "./collect.ts";
import type { MerchantFixture } from "./merchant-fixture.ts";

/**
 * Returns the first asset of a merchant's statement: its changes since the UTC day of a time, and their sums by kind. A test
 * may run into the next day.
 */
export async function readStatementSince(
  { deps, merchantId }: Pick<MerchantFixture, "deps" | "merchantId">,
  since: Date,
) {
  const [from, until] = [since, deps.now()].map((at) => at.toISOString().slice(0, 10)) as [string, string];
  const read = await collect(readStatementLines(deps, { merchant: merchantId, from, until }));
  const all = read.map(({ line }) => line);
  const asset = all[0]?.asset;
  const ofAsset = all.filter((line) => line.asset === asset);
  const lines = ofAsset.filter(({ change }) => change !== null);
  const sum = (of: (line: StatementLine) => bigint | null) =>
    lines.reduce((total, line) => total + (of(line) ?? 0n), 0n);
  return {
    asset,
    lines,
    payments: sum(({ gross, paid, change }) => gross ?? (paid ? change : null)),
    fees: sum(({ fee }) => fee),
    settled: -sum(({ kind, change }) => (kind === "settlement" ? change : 0n)),
    closing: ofAsset.at(-1)?.balance,
  };
}
