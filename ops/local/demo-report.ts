import { formatUnits } from "viem";
import { openDb } from "../../db/open.ts";
import { type History, readHistory } from "./history.ts";
import { waitUntil } from "./wait.ts";

type Print = (line?: string) => void;

/** Prints what became of a payment once its settlement is paid: every move, the settlement, and what was booked. */
export async function printHistory(databaseUrl: string, paymentId: string, print: Print): Promise<void> {
  const db = openDb(databaseUrl, { max: 1, applicationName: "pay-demo" });
  try {
    const history = await waitUntil(
      "the settlement is booked as paid",
      async () => {
        const seen = await readHistory(db, paymentId);
        return seen.settlement?.state === "paid" ? seen : undefined;
      },
      { withinMs: 30_000, everyMs: 100 },
    );
    for (const line of describeHistory(history)) print(line);
  } finally {
    await db.destroy();
  }
}

/** The history as lines for a person. */
export function describeHistory({ moves, settlement, bookings }: History): string[] {
  const timeline = moves.map(
    ({ at, machine, from, to }) => `  ${clock(at)}  ${machine.padEnd(11)} ${from === "new" ? "" : `${from} → `}${to}`,
  );
  const ledger = bookings.map(
    ({ at, kind, account, amount }) => `  ${clock(at)}  ${kind.padEnd(19)} ${usdc(amount).padStart(12)}  ${account}`,
  );
  const payout =
    settlement === undefined
      ? "  none"
      : `  ${settlement.paidAt ? clock(settlement.paidAt) : ""}  ${settlement.id} ${settlement.state}: ${usdc(settlement.amount)} USDC to ${settlement.destination}`;
  return ["", "Timeline", ...timeline, "", "Settlement", payout, "", "Ledger", ...ledger, ""];
}

const clock = (at: Date): string => at.toISOString().slice(11, 23);
const usdc = (amount: bigint): string => formatUnits(amount, 6);
