import type { Balance } from "../../db/queries/ledger-balances.ts";
import { countOpenExceptions, exceptionBookings, listAccountTotals } from "../../db/queries/money-gauges.ts";
import { accounts } from "../accounting/ledger-accounts.ts";
import type { PaymentDeps } from "../payment-deps.ts";

/** The state of the ledger, for metrics. */
export type MoneyStatus = {
  /** Balances of the ledger's accounts other than the merchants' and the lanes', and what all merchants are owed. */
  balances: Balance[];
  /** Open exceptions by their booking, also with a count of 0. */
  exceptions: { booking: string; count: number }[];
};

/** The accounts of the ledger that are not one per merchant or lane. */
const commonAccounts = Object.values(accounts).filter((account) => typeof account === "string");

/** Reads the gauges of the ledger. Takes longer than the reads of `createSystemReads` where there are years of bookings. */
export async function readMoneyStatus({ db }: Pick<PaymentDeps, "db">): Promise<MoneyStatus> {
  const balances = await listAccountTotals(db, commonAccounts);
  const exceptions = await countOpenExceptions(db);
  return {
    balances,
    exceptions: exceptionBookings.map(
      (booking) => exceptions.find((one) => one.booking === booking) ?? { booking, count: 0 },
    ),
  };
}
