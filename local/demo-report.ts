import { formatUnits } from "viem";
import { openDb } from "../db/open.ts";
import { type History, listHistory } from "../payments/maintenance/payment-history.ts";
import { waitUntil } from "./wait-until.ts";

type Print = (line?: string) => void;

/** Waits until the settlement of a payment is paid, then prints its state transitions, settlement and ledger entries. */
export async function printHistory(databaseUrl: string, paymentId: string, print: Print): Promise<void> {
  const db = openDb(databaseUrl, { max: 1, applicationName: "pay-demo" });
  try {
    const history = await waitUntil(
      "the settlement is booked as paid",
      async () => {
        const seen = await listHistory({ db }, paymentId);
        return seen.settlement?.state === "paid" ? seen : undefined;
      },
      { withinMs: 30_000, everyMs: 100 },
    );
    for (const line of describeHistory(history)) print(line);
  } finally {
    await db.destroy();
  }
}

/** Returns the history as lines of text. */
function describeHistory({ moves, transactions, settlement, ledger }: History): string[] {
  const timeline = moves.map(
    ({ at, machine, from, to }) => `  ${clock(at)}  ${machine.padEnd(11)} ${from === "new" ? "" : `${from} → `}${to}`,
  );
  const sent = transactions.map(
    ({ nonce, hash, state, block, gasUsed }) =>
      `  nonce ${nonce}  ${hash}  ${state} in block ${block ?? "none"}${gasUsed === null ? "" : `, ${gasUsed} gas`}`,
  );
  const entries = ledger.map(
    ({ at, kind, account, amount }) => `  ${clock(at)}  ${kind.padEnd(16)} ${usdc(amount).padStart(8)}  ${account}`,
  );
  const payout = settlement && [
    `  ${settlement.paidAt ? clock(settlement.paidAt) : ""}  ${settlement.id} ${settlement.state}: ${usdc(settlement.amount)} USDC`,
    `  to ${settlement.destination} by ${settlement.txHash}`,
  ];
  return [
    ...["", "Timeline", ...timeline],
    ...["", "Transactions", ...sent],
    ...["", "Settlement", ...(payout ?? ["  none"])],
    ...["", "Ledger", ...entries, ""],
  ];
}

const clock = (at: Date): string => at.toISOString().slice(11, 23);
const usdc = (amount: bigint): string => formatUnits(amount, 6);
