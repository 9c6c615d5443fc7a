import { type Balance, type BalanceFilter, listBalances } from "../db/balances.ts";
import { insertGroups } from "../db/ledger.ts";
import { wakeShort } from "../db/payout-queue.ts";
import type { Db } from "../db/tables.ts";
import type { PaymentDeps } from "./deps.ts";
import { done, type Result, refuse } from "./errors.ts";
import { newId } from "./ids.ts";
import { accounts } from "./ledger.ts";
import { chainOf } from "./payout.ts";

type Deps = Pick<PaymentDeps, "now"> & { db: Db };

/** A booking by hand, minor units. */
export type Correction = { debit: string; credit: string; asset: string; amount: bigint; note: string };

/** Accounts that a person may book on. What merchants are owed, and what is on its way, follows from rows of its own. */
const byHand: readonly string[] = [
  accounts.treasury,
  accounts.exceptions,
  accounts.capital,
  accounts.gasSpent,
  accounts.losses,
];

/** Books a correction: nothing in the books is ever changed, so it is an entry of its own. `invalid_state`. */
export async function correctLedger(deps: Deps, correction: Correction): Promise<Result<{ id: string }>> {
  const { debit, credit, asset, amount, note } = correction;
  for (const account of [debit, credit])
    if (!byHand.includes(account) && !/^lane:./.test(account))
      return refuse("invalid_state", `${account}: expected ${byHand.join(", ")} or lane: and an address`);
  const id = newId("corr");
  const entries = [
    { account: debit, asset, amount },
    { account: credit, asset, amount: -amount },
  ];
  await deps.db
    .transaction()
    .execute((db) => insertGroups(db, [{ kind: "correction", subject: id, entries, note }], deps.now()));
  // What the treasury was short for may be covered now.
  await wakeShort(deps.db, chainOf(asset));
  return done({ id });
}

/** Balances at the end of a UTC day (YYYY-MM-DD), or now. */
export function readBalances({ db }: Pick<Deps, "db">, filter: BalanceFilter): Promise<Balance[]> {
  return listBalances(db, filter);
}
